"""What the splits of a mixture say of its clients, in numbers and words.

How even a component's clients are, and which categories go together, is measured on clients that it
draws, all of its mean size; what one split does is exact, at the total that its node has in the mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.splits import Splits
from polyurn.typed.declared import Floats, Seed

# Enough for a correlation to 0.02 and a variance to 3 %.
_N_DRAWN = 4_000
EVENNESS = ("more even than chance", "as even as chance", "less even than chance")
_EVEN, _UNEVEN = 0.9, 1.1  # times the variance of a multinomial
_TOGETHER, _MOST_PAIRS = 0.25, 3


@dataclass(frozen=True)
class Finding:
    """What a component's clients are like.

    `variance` is that of their counts as a multiple of a multinomial's with the same shares; `pairs` are
    categories that go together, with the correlation of their counts.
    """

    variance: float
    pairs: tuple[tuple[int, int, float], ...]

    def words(self, names: Sequence[str]) -> str:
        """A sentence.

        >>> Finding(0.072, ((0, 1, 0.712),)).words(["Animation", "Children"])
        'more even than chance (0.07 times its variance); Animation and Children (+0.71) go together'
        """
        text = f"{evenness(self.variance)} ({self.variance:.2f} times its variance)"
        together = ", ".join(f"{names[i]} and {names[j]} ({r:+.2f})" for i, j, r in self.pairs)
        return f"{text}; {together} go together" if together else text


@dataclass(frozen=True)
class SplitLaw:
    """How many of `total` points go left at a node: by its law, and by the two concentrations alone.

    `variance` is that of the law as a multiple of a binomial's, NaN if all points go to one side.
    """

    component: int
    node: int
    law: Floats
    beta_binomial: Floats

    @property
    def total(self) -> int:
        return len(self.law) - 1

    @property
    def variance(self) -> float:
        x = np.arange(self.total + 1)
        mean = float(self.law @ x)
        chance = mean * (1 - mean / self.total)
        return float(self.law @ (x - mean) ** 2) / chance if chance > 1e-9 else float("nan")


def evenness(variance: float) -> str:
    """Which of `EVENNESS` is said of a multiple of chance's variance."""
    return EVENNESS[0 if variance < _EVEN else 2 if variance > _UNEVEN else 1]


def findings(mdm: MDM, *, rng: Seed = 0) -> list[Finding]:
    """What each component of a mixture with splits is like."""
    rng, found = np.random.default_rng(rng), []
    for k, size in enumerate(np.maximum(np.rint(mdm.sizes.mean()), 2).astype(np.int64)):
        counts = mdm.draw(np.full(_N_DRAWN, k), np.full(_N_DRAWN, size), rng).astype(np.float64)
        mean, covariance = counts.mean(axis=0), np.cov(counts.T)
        variances = np.diag(covariance)
        chance = float((mean * (1 - mean / size)).sum())
        scale = np.sqrt(np.outer(variances, variances))
        correlation = np.triu(covariance / np.where(scale > 0, scale, np.inf), 1)
        best = np.argsort(-correlation, axis=None)[:_MOST_PAIRS]
        at = (divmod(int(one), mdm.n_categories) for one in best)
        likely = ((i, j, float(correlation[i, j])) for i, j in at)
        pairs = tuple(pair for pair in likely if pair[2] >= _TOGETHER)
        found.append(Finding(float(variances.sum()) / chance if chance > 0 else 1.0, pairs))
    return found


def split_laws(mdm: MDM) -> list[SplitLaw]:
    """What every split of each component does, but for those that get no points."""
    splits = mdm.splits
    if splits is None:
        raise ParameterError("expected a mixture with splits")
    points = splits.tree.totals(mdm.shares * mdm.sizes.mean()[:, None])
    totals = np.maximum(np.rint(points), 2).astype(np.int64)
    plain, most = Splits(splits.tree, splits.concentrations), int(totals.max())
    both = splits.log_laws(most), plain.log_laws(most)
    return [
        SplitLaw(int(k), int(node), *(_law(logs[k, node], totals[k, node]) for logs in both))
        for k, node in zip(*np.nonzero(splits.of_inner > 0), strict=True)
    ]


def _law(log_laws: Floats, total: int) -> Floats:
    logs = log_laws[0, : total + 1] + log_laws[1, total::-1]
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))
