"""How often held-out clients keep a stage where the truth is a mixture of Dirichlet-multinomials.

    python experiments/stages_of_truths.py  # half a minute; prints a line per truth

Truths have 1 to 3 components, 4 to 15 categories, and 400 to 1,999 clients of up to 199 points.
"""

import numpy as np

import polyurn as pu

N_TRUTHS = 20


def clients_of(rng: np.random.Generator) -> tuple[pu.MDM, int]:
    """A mixture of Dirichlet-multinomials, and how many clients it has."""
    n_categories, k = int(rng.integers(4, 16)), int(rng.integers(1, 4))
    n_clients, most = int(rng.integers(400, 2_000)), int(rng.integers(30, 200))
    shares = rng.dirichlet(np.ones(n_categories), k)
    alphas = shares * rng.lognormal(1.5, 1, (k, 1)) + 0.02
    sizes = np.zeros((k, most + 1))
    sizes[:, 1:] = rng.dirichlet(np.ones(most), k)
    return pu.MDM(rng.dirichlet(5 * np.ones(k)), alphas, sizes), n_clients


def main() -> None:
    """Fit each truth's clients, and count what is kept."""
    n_kept = 0
    for seed in range(N_TRUTHS):
        rng = np.random.default_rng([37, seed])
        mdm, n_clients = clients_of(rng)
        done = pu.fit(
            pu.LocalAggregator(mdm.sample(n_clients, rng=rng), rng=[seed, 1]),
            n_components=(1, 2, 3, 4, 6), n_categories=mdm.n_categories, max_size=mdm.max_size,
            shape="auto", rng=np.random.default_rng([seed, 2]),
        )  # fmt: skip
        n_kept += any(stage.kept for stage in done.stages)
        found = [f"{s.shape} {s.gain:+.4f} ({s.gain_error:.4f})" for s in done.stages]
        print(f"{seed}: {', '.join(found)}", flush=True)
    print(f"a stage was kept for {n_kept} of {N_TRUTHS}")


if __name__ == "__main__":
    main()
