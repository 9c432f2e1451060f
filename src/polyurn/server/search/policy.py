"""Every tuned number of the search, each with its reason, in one frozen value.

docs/method.md has the paired ablation behind each of them. Nothing is computed here.
"""

from dataclasses import dataclass

from polyurn.typed.arguments import checked


@checked
@dataclass(frozen=True)
class Policy:
    """What the search tries, how often, and when it believes that it has converged."""

    # Successive halving (Jamieson and Talwalkar, 2016): likelihood says little about a start at first.
    starts: int = 48  # random groupings of the clients
    halve_every: int = 2  # rounds after which half of the starts leave ...
    finalists: int = 6  # ... until so many are left; so many climbers take Newton steps

    # Recombination: the leader with one component of another start, present or retired.
    children: int = 8  # that begin in each round; a steady stream finds what generations miss
    children_from: int = 4  # the round of trials in which the first begin
    childhood: int = 3  # rounds in which a child is not compared with the others

    # Newton steps (saddle-free: Dauphin et al., 2014), with Levenberg and Marquardt's damping.
    damping: float = 1e-4  # of the first step, in the units of the mean Hessian's eigenvalues
    dampings: tuple[float, ...] = (0.03, 1.0, 30.0)  # times the damping that was best last time
    longest: float = 3.0  # no logarithm of a parameter moves further in one step
    caution: float = 0.25  # the fraction of an EM step that is tried after one that gained nothing

    # Stopping.
    met: float = 0.1  # climbers this close in every logarithm, and within tol, are at one optimum
    safety: float = 10.0  # the remaining gain is an estimate, so it is taken tenfold

    # Screening on a part of the clients, where there are many.
    clients_per_parameter: int = 30  # in the part, which is then off by 1/60 nats per client
    fewest_clients: int = 1_000  # in the part
    screened_from: int = 8  # parts: with fewer clients than that, screening saves nothing

    # Sampled cohorts: stepwise EM and averaged Newton steps.
    averaging: float = 0.6  # cohort n has weight n^-0.6 in the average (Cappé and Moulines, 2009)
    full_weight: int = 20  # cohorts before this one count for less: their parameters were poor
    lag: int = 5  # rounds over which gains are compared with the noise of the cohorts


DEFAULT = Policy()
