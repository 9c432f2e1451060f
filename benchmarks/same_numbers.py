"""Do seeded results stay the same, bit for bit, from one commit to another?

Fourteen cases: fits, selections, private fits, partitions, styles, comparisons and a training. Each case
is reduced to a digest of its numbers. Both trees run in processes of their own, with this environment.

    python benchmarks/same_numbers.py                    # digests of this tree, as JSON
    python benchmarks/same_numbers.py --against 517f078  # a table of this tree and that commit
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import polyurn as pu
from polyurn.model.paper_truths import truth

ROOT = Path(__file__).parents[1]
TRUTH = truth("medium/3")
BOUNDS = {"n_categories": TRUTH.n_categories, "max_size": 60}


def main() -> None:
    """Print this tree's digests, or compare them with another commit's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", help="the other commit")
    other = parser.parse_args().against
    here = {name: digest(case()) for name, case in CASES.items()}
    if other is None:
        print(json.dumps(here, indent=1))
        return
    there = digests_at(other)
    for name, found in here.items():
        print(f"{name:<34} {found} {'same' if there[name] == found else 'DIFFERENT'}")
    if here != there:
        sys.exit("some numbers changed")


def digests_at(commit: str) -> dict[str, str]:
    """The digests of another commit's tree, computed by this script."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            environment = os.environ | {"PYTHONPATH": str(tree / "src")}
            script = [sys.executable, str(Path(__file__))]
            output = subprocess.run(script, env=environment, check=True, stdout=subprocess.PIPE)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    return dict(json.loads(output.stdout))


def digest(arrays: Iterator[object]) -> str:
    """Sixteen digits that change when any bit of the arrays does."""
    found = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(array)
        found.update(f"{values.dtype.str}{values.shape}".encode() + values.tobytes())
    return found.hexdigest()[:16]


def clients() -> pu.LocalAggregator:
    """Clients of one of the paper's truths; cohorts are drawn from a seed."""
    return pu.LocalAggregator(TRUTH.sample(3000, rng=1), rng=1)


def mixture(mdm: pu.MDM) -> Iterator[object]:
    """The numbers of a mixture."""
    yield from (mdm.weights, mdm.alphas, mdm.sizes.masses, mdm.sizes.bins.edges)


def seeded_noise(seed: int) -> Callable[[int, float], np.ndarray]:
    """Rounded Gaussian noise of a seed, in the place of OpenDP's, which has none."""
    rng = np.random.default_rng(seed)
    return lambda n_numbers, scale: np.rint(rng.normal(0.0, scale, n_numbers)).astype(np.int64)


def records() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels and client ids of points whose clients differ in style."""
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(200), 30)
    labels = rng.integers(0, 5, len(ids))
    features = rng.normal(size=(len(ids), 8)) + rng.normal(size=(200, 8))[ids] * 0.5
    return features, labels, ids


def partitioned(**settings: object) -> Iterator[object]:
    """A partition of 20,000 points."""
    labels = np.random.default_rng(3).integers(0, TRUTH.n_categories, 20_000)
    parts = pu.partition(labels, TRUTH.sample(300, rng=4), rng=5, **settings)  # type: ignore[arg-type]
    yield from (parts.offsets, parts.indices)


def styled() -> Iterator[object]:
    """A style, and a partition that follows it."""
    features, labels, ids = records()
    space = pu.style_space(features, labels)
    style = pu.fit_style(pu.LocalAggregator(pu.Records(features, labels, ids), rng=1), space)
    yield from (style.mean, style.shared, style.by_label, style.within)
    counts = np.random.default_rng(6).integers(1, 6, (40, 5))
    parts = pu.partition(labels, counts, style=style, features=features, rng=7)
    yield from (parts.offsets, parts.indices)


def compared() -> Iterator[object]:
    """Distances to held-out clients of a mixture and of IID clients."""
    held_out = TRUTH.sample(400, rng=8)
    populations = {"mdm": TRUTH, "iid": pu.IID.like(held_out)}
    for row in pu.compare(populations, held_out, n_splits=100, n_bootstrap=100, rng=9).rows:
        yield from (row.energy_ratio, row.sliced_wasserstein_ratio, row.size_ratio)


def trained() -> Iterator[object]:
    """Weights after three rounds."""
    features, labels, _ = records()
    data = pu.Examples(features[:4000], labels[:4000], features[4000:], labels[4000:])
    parts = pu.partition(labels[:4000], np.full((20, 5), 4), rng=10)
    settings = pu.FedAvg(
        n_rounds=3, cohort_size=5, local_epochs=1, local_learning_rate=0.1, batch_size=4
    )
    run = pu.train(settings, "softmax", data, parts, seed=11, n_workers=1)
    yield from (run.state[name].numpy() for name in sorted(run.state))


def selected(selection: pu.Fit) -> Iterator[object]:
    """The chosen mixture, and the scores that it was chosen by."""
    yield from mixture(selection.mdm)
    yield [candidate.log_likelihood for candidate in selection.candidates]


PRIVATE = {"epsilon": 4.0, "delta": 1e-5, **BOUNDS}
CASES: dict[str, Callable[[], Iterator[object]]] = {
    "fit, one component": lambda: mixture(pu.fit(clients(), n_components=1, rng=2, **BOUNDS).mdm),
    "fit": lambda: mixture(pu.fit(clients(), n_components=3, rng=2, **BOUNDS).mdm),
    "fit, exact sizes": lambda: mixture(
        pu.fit(clients(), n_components=3, sizes="exact", rng=2, **BOUNDS).mdm
    ),
    "fit, cohorts": lambda: mixture(
        pu.fit(clients(), n_components=3, cohort_size=500, max_rounds=20, rng=2, **BOUNDS).mdm
    ),
    "fit, small uploads": lambda: mixture(
        pu.fit(clients(), n_components=4, max_upload=500, rng=2, **BOUNDS).mdm
    ),
    "fit of the paper": lambda: mixture(
        pu.fit_paper(clients(), n_components=3, n_rounds=15, cohort_size=500, **BOUNDS).mdm
    ),
    "select": lambda: selected(pu.fit(clients(), n_components=range(1, 5), rng=2, **BOUNDS)),
    "select, auto": lambda: selected(pu.fit(clients(), n_components="auto", rng=2, **BOUNDS)),
    "select, cohorts": lambda: selected(
        pu.fit(clients(), n_components=range(1, 4), cohort_size=800, max_rounds=20, rng=2, **BOUNDS)
    ),
    "private fit": lambda: mixture(
        pu.fit_private(clients(), n_components=3, rng=2, noise=seeded_noise(3), **PRIVATE).mdm
    ),
    "private selection": lambda: mixture(
        pu.fit_private(
            clients(), n_components=[1, 2, 3], rng=2, noise=seeded_noise(3), **PRIVATE
        ).mdm
    ),
    "partition": partitioned,
    "style and styled partition": styled,
    "comparison and training": lambda: (x for case in (compared, trained) for x in case()),
}


if __name__ == "__main__":
    main()
