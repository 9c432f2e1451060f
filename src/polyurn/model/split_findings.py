"""What the splits of a mixture say of its clients, in numbers and words.

How even a component's clients are, and which categories go together, is measured on clients that it
draws, all of its mean size; what one split does is exact, at the total that its node has in the mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.splits import Splits

# Enough for a correlation to 0.02 and a variance to 3 %.
_N_DRAWN = 4_000
EVENNESS = ("more even than chance", "as even as chance", "less even than chance")
_EVEN, _UNEVEN = 0.9, 1.1  # times the variance of a multinomial
_TOGETHER, _MOST_PAIRS = 0.25, 3


@dataclass(frozen=True)
class Finding:
    """What a component's clients are like.

    Attributes
    ----------
    variance : float
        Of their counts, as a multiple of that of a multinomial with the same shares: below 1 they vary
        less than chance, which no Dirichlet-multinomial can.
    pairs : tuple of (int, int, float)
        Categories that go together, and the correlation of their counts, the strongest first.
    """

    variance: float
    pairs: tuple[tuple[int, int, float], ...]

    def words(self, names: Sequence[str]) -> str:
        """A sentence.

        Examples
        --------
        >>> Finding(0.072, ((0, 1, 0.712),)).words(["Animation", "Children"])
        'more even than chance (0.07 times its variance); Animation and Children (+0.71) go together'
        """
        text = f"{evenness(self.variance)} ({self.variance:.2f} times its variance)"
        together = ", ".join(f"{names[i]} and {names[j]} ({r:+.2f})" for i, j, r in self.pairs)
        return f"{text}; {together} go together" if together else text


@dataclass(frozen=True)
class SplitLaw:
    """What one split of a component does with the points of a typical client.

    Attributes
    ----------
    component, node : int
    total : int
        How many points arrive, in the mean.
    law, beta_binomial : float arrays of shape (total + 1,)
        The probability that so many go left; without the law, by the two concentrations only.
    """

    component: int
    node: int
    total: int
    law: NDArray[np.float64]
    beta_binomial: NDArray[np.float64]

    @property
    def variance(self) -> float:
        """The variance of what goes left, as a multiple of a binomial's; NaN if all goes to one side."""
        x = np.arange(self.total + 1)
        mean = float(self.law @ x)
        chance = mean * (1 - mean / self.total)
        return float(self.law @ (x - mean) ** 2) / chance if chance > 1e-9 else float("nan")

    @property
    def bend(self) -> float:
        """How far the law is from the beta-binomial: half of the sum of |differences|."""
        return float(np.abs(self.law - self.beta_binomial).sum() / 2)


def evenness(variance: float) -> str:
    """Which of `EVENNESS` is text of a multiple of chance's variance."""
    return EVENNESS[0 if variance < _EVEN else 2 if variance > _UNEVEN else 1]


def findings(mdm: MDM, *, rng: int | np.random.Generator | None = 0) -> list[Finding]:
    """What each component of a mixture with splits is like.

    Examples
    --------
    >>> from polyurn.model.sizes import Sizes
    >>> from polyurn.model.trees import Tree
    >>> splits = Splits(Tree([[1, 4], [2, 3]]), [[[1.0, 2.0], [300.0, 200.0]]])
    >>> findings(MDM([1.0], None, Sizes.constant(40), splits=splits))[0].words(["a", "b", "c"])
    'less even than chance (7.91 times its variance); a and b (+0.75) go together'
    """
    _splits_of(mdm)
    rng = np.random.default_rng(rng)
    found = []
    for k, size in enumerate(np.maximum(np.rint(mdm.sizes.mean()), 2).astype(np.int64)):
        counts = mdm.draw(np.full(_N_DRAWN, k), np.full(_N_DRAWN, size), rng).astype(np.float64)
        mean, covariance = counts.mean(axis=0), np.cov(counts.T)
        deviation = np.sqrt(np.diag(covariance))
        chance = float((mean * (1 - mean / size)).sum())
        scale = np.outer(deviation, deviation)
        correlation = np.triu(covariance / np.where(scale > 0, scale, np.inf), 1)
        best = np.argsort(-correlation, axis=None)[:_MOST_PAIRS]
        pairs = [divmod(int(at), mdm.n_categories) for at in best]
        together = [(i, j, float(correlation[i, j])) for i, j in pairs]
        found.append(
            Finding(
                variance=float(np.diag(covariance).sum()) / chance if chance > 0 else 1.0,
                pairs=tuple(one for one in together if one[2] >= _TOGETHER),
            )
        )
    return found


def split_laws(mdm: MDM, components: Sequence[int]) -> list[SplitLaw]:
    """What every split of some components does, but for those that get no points."""
    splits = _splits_of(mdm).some([*components])
    points = (mdm.shares * mdm.sizes.mean()[:, None])[[*components]]
    totals = np.maximum(np.rint(splits.tree.totals(points)), 2).astype(np.int64)
    most = int(totals.max())
    plain = Splits(splits.tree, splits.concentrations)
    both = splits.log_laws(most), plain.log_laws(most)
    found = []
    for k, node in zip(*np.nonzero(splits.of_inner > 0), strict=True):
        total = int(totals[k, node])
        law, beta_binomial = (_law(logs[k, node], total) for logs in both)
        found.append(SplitLaw(components[k], int(node), total, law, beta_binomial))
    return found


def _law(log_laws: NDArray[np.float64], total: int) -> NDArray[np.float64]:
    logs = log_laws[0, : total + 1] + log_laws[1, total::-1]
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))


def _splits_of(mdm: MDM) -> Splits:
    if mdm.splits is None:
        raise ParameterError("expected a mixture with splits")
    return mdm.splits
