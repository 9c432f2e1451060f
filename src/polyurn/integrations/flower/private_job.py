"""A job with a guarantee: how much of the noise each node adds, and the ledger that is charged for it.

What is asked is `server/private/`; how it is asked, `aggregator.py`.
"""

import math
from collections.abc import Sequence

from polyurn.errors import BudgetError, FileError, ParameterError
from polyurn.integrations.flower.aggregator import FlowerAggregator
from polyurn.privacy.accounting import epsilon_of, sigma_for, spent
from polyurn.privacy.aggregator import PrivateAggregator
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.noise import check_installed
from polyurn.secure.graph import choose_graph
from polyurn.storage.federation_folder import FederationFolder
from polyurn.storage.federation_job import Job
from polyurn.storage.journal import Journal
from polyurn.storage.ledger_file import raised_ledger
from polyurn.wording.numbers import counted

# Declared: the share of the nodes that may tell the server all they know.
COLLUDING = 0.2

# As in a ledger, whose sum of shares may be a little above its budget in float64.
_ROUNDING = 1e-9


def private_clients(
    clients: FlowerAggregator, job: Job, place: FederationFolder, answers: Journal | None = None
) -> PrivateAggregator:
    """The nodes of a federation, asked for sums with noise only.

    Parameters
    ----------
    clients : FlowerAggregator
    job : Job
        With epsilon, delta and trust.
    place : FederationFolder
        Its ledger has all that was ever spent on these clients.
    answers : Journal, optional
        The rounds that are kept; a run that goes on is charged under the name that it began with.

    Raises
    ------
    BudgetError
        The run would cost more than the ledger has left; nothing was asked.
    FileError
        The ledger does not have the rounds that are kept: they were charged to another.
    """
    assert job.epsilon is not None
    assert job.delta is not None
    ledger = raised_ledger(
        place.ledger, epsilon=job.ledger_epsilon, delta=job.delta, first=job.epsilon
    )
    run = None if answers is None else answers.name
    lost = [] if answers is None else _lost(ledger, answers, place)
    others = [charge.sigma for charge in ledger.charges if charge.run != run]
    _check_left(ledger, [sigma_for(job.epsilon, job.delta), *lost, *others])
    if job.trust == "local":
        return PrivateAggregator(clients, ledger=ledger, trust="local", run=run)
    if job.trust == "central":
        check_installed("central noise")  # before anything is charged
        return PrivateAggregator(clients, ledger=ledger, trust="central", run=run)
    n_reporters, n_colluding = reporters(len(place.read().nodes), job)
    return PrivateAggregator(
        clients, ledger=ledger, trust="distributed", n_reporters=n_reporters,
        n_colluding=n_colluding, run=run,
    )  # fmt: skip


def _lost(ledger: PrivacyLedger, answers: Journal, place: FederationFolder) -> list[float]:
    """The noise of what the run was charged for before, and brought no answer: it is charged again."""
    own = [charge.sigma for charge in ledger.charges if charge.run == answers.name]
    n_kept = len(answers)
    if len(own) < n_kept:
        raise FileError(
            f"{place.ledger} has {counted(len(own), 'charge')} of the run in {answers.folder}, which "
            f"has {counted(n_kept, 'round')}: put the ledger of that run in its place, or take an "
            "empty folder"
        )
    return sorted(own, reverse=True)[: len(own) - n_kept]  # at the least, the cheapest


def reporters(n_nodes: int, job: Job) -> tuple[int, int]:
    """How many nodes a sum with shares of noise is over at least, and how many of them may collude.

    The fewest are those that the job takes a sum over anyway. On a ring, a node counts its neighbourhood
    only, of which as many stay as a secure sum needs. All that collude may be among those who stay.

    Examples
    --------
    >>> job = Job(federation="fed", command=None)
    >>> [reporters(n, job) for n in (3, 10, 100)]
    [(3, 0), (7, 2), (70, 20)]
    """
    graph = choose_graph(n_nodes, dropout=job.dropout, colluding=COLLUDING)
    n_around = graph.n_neighbours + 1
    fewest = max(job.min_nodes, math.ceil(job.min_fraction * n_nodes - 1e-9))
    n_reporters = fewest if n_around == n_nodes else min(fewest, graph.threshold)
    n_colluding = math.floor(COLLUDING * n_around + 1e-9)
    if n_reporters - n_colluding < 2:
        raise ParameterError(
            f"expected sums over at least {n_colluding + 2} of {counted(n_nodes, 'node')}, "
            f"{n_colluding} of which may collude, for noise in shares, got {n_reporters}: take a "
            "larger min_fraction (--terms)"
        )
    return n_reporters, n_colluding


def _check_left(ledger: PrivacyLedger, sigmas: Sequence[float]) -> None:
    """Refuse a run that the ledger cannot pay to its end, before it has spent what is left."""
    budget = ledger.budget
    if spent(sigmas) > sigma_for(budget.epsilon, budget.delta) ** -2 * (1 + _ROUNDING):
        raise BudgetError(
            f"this run and what was spent before it would bring epsilon to "
            f"{epsilon_of(sigmas, budget.delta):.4g} of {budget.epsilon:g} (delta {budget.delta:g}); "
            "nothing was asked: take a smaller --epsilon, or raise the budget with --ledger-epsilon"
        )
