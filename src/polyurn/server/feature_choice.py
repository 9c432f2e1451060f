"""How much clients differ in a label, in a feature, and in the feature given the label; what to model.

The measure is the intraclass correlation of categories (Landis and Koch, Biometrics 33, 1977), which is
Wright's F_ST: with W the probability that two points of one client have the same category, and B that of
two points of two clients, ρ = (W - B) / (1 - B). It is 0 for IID clients and 1 where each client holds
one category, negative where clients are more even than chance, and 1 / (1 + α_0) under a
Dirichlet-multinomial, whatever the clients' sizes are. Everything is estimated from one round of sums.
`client/candidates.py` finds the candidate columns and turns their values into categories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from scipy.special import stdtrit

from polyurn.comparison.estimates import COVERAGE, Estimate
from polyurn.errors import ParameterError
from polyurn.server.describing import REACH, Asked, LookResult, Sums, correlation
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Bools, Floats
from polyurn.typed.json_form import Count
from polyurn.wire import (
    Aggregator,
    Batch,
    Contrast,
    ContrastStatistics,
    Part,
    RecordColumn,
    Scaled,
    total,
)
from polyurn.wording import counted

# Groups of clients that the jackknife leaves out one by one: enough for a t quantile (2.09) near the
# normal's, and few enough that a client, who sends zeros for all groups but its own, sends little. Of
# 200 federations of 60, 200 and 400 clients that differ in labels only, the intervals given the label
# covered 0 in 94.5, 95 and 95.5 %.
N_GROUPS = 20
# Below this, two points of one client are hardly more alike than those of two: clients are like those
# of a Dirichlet with α_0 above 19. IID clients predicted training about as well as the true
# histograms did where nine clients in ten had α_0 = 20 (high/2 of the paper).
LEAST_CORRELATION = 0.05
# Numbers that a client may send in one round, by the default of its owner's policy; with more, exact
# sums are over fewer groups.
_MOST_NUMBERS = 50_000
# A share of this many standard deviations of its noise is some.
_CLEAR = 4.0
# Between-client pairs that rounding alone produces, as a share of all pairs.
_ROUNDING = 1e-9


@checked
@dataclass(frozen=True)
class FeatureDifference:
    """How much clients differ, as intraclass correlations with 95 % intervals.

    Attributes
    ----------
    label, feature, joint : Estimate
        Of the label, of the feature, and of both together. NaN if all points are alike.
    given_label : Estimate
        Of the feature among points of the same label: 0 where clients differ in their labels only.
    n_clients : int
        Those with at least two points; others have no pair of points.
    n_categories : int
        The combinations of label and value that occur.
    """

    label: Estimate
    feature: Estimate
    joint: Estimate
    given_label: Estimate
    n_clients: int
    n_categories: int


@checked
@dataclass(frozen=True)
class Recommendation:
    """What to model, the feature to cross the label with, and a sentence with the reason.

    "cannot tell" if there are too few clients for any of the others.
    """

    model: Literal["label × feature", "label", "IID", "cannot tell"]
    feature: str | None
    sentence: str


@checked
@dataclass(frozen=True, kw_only=True)
class FeatureChoice(LookResult):
    """How much clients differ in several columns, given a label of this name, and what to model.

    `sentences` are the recommendation, and what there is to say about it.
    """

    label: str
    n_labels: Count
    differences: Mapping[str, FeatureDifference]
    recommendation: Recommendation
    sentences: tuple[str, ...]

    @classmethod
    def of(cls, label: str, n_labels: int, differences: Mapping[str, FeatureDifference]) -> Self:
        """The choice among columns in which clients differ so much."""
        advice = recommend_feature(differences, label=label)
        own, sentences = next(iter(differences.values())).label, [advice.sentence]
        if differs(own):
            alike = f"α_0 = {concentration_of(own.value):.2g}"
            sentences.insert(
                0, f"clients differ in {label} about as those of one Dirichlet with {alike}"
            )
        return cls(
            label=label, n_labels=n_labels, differences=differences, recommendation=advice,
            sentences=tuple(sentences),
        )  # fmt: skip


@checked
def feature_differences(
    aggregator: Aggregator, *, n_labels: int, n_values: int, cohort_size: int | None = None,
    epsilon: float | None = None, delta: float | None = None,
) -> FeatureDifference:  # fmt: skip
    """Measure how much clients differ in a label, in a feature, and in the feature given the label.

    It takes one round. The intervals are of a delete-a-group jackknife over 20 groups of clients, which
    are formed by each client's own bucket. With noise there are no groups of clients to leave out: the
    intervals are those of the noise, and of variances that no law of the clients exceeds.

    Parameters
    ----------
    aggregator : Aggregator
        Of clients whose categories are label × value of the feature, label after label:
        category y * n_values + f.
    n_labels, n_values : int
    cohort_size : int, optional
        Clients that are asked; all of them by default, and always with `epsilon`.
    epsilon, delta : float, optional
        Ask for a sum with this guarantee; of a `PrivateAggregator` its ledger is charged.

    Returns
    -------
    FeatureDifference

    Raises
    ------
    ParameterError
        Fewer than two clients hold two points.

    Examples
    --------
    Clients that hold label 0 or label 1, with a feature that is anybody's:

    >>> import polyurn as pu
    >>> rng = np.random.default_rng(0)
    >>> counts = np.zeros((200, 2, 3), int)
    >>> counts[np.arange(200), np.arange(200) % 2] = rng.multinomial(30, [0.5, 0.3, 0.2], size=200)
    >>> found = feature_differences(
    ...     pu.LocalAggregator(counts.reshape(200, 6), rng=0), n_labels=2, n_values=3
    ... )
    >>> f"{found.label.value:.2f}, {abs(found.given_label.value):.2f}"
    '1.00, 0.00'
    """
    asked, query = Asked(aggregator, epsilon, delta), Contrast(n_labels, n_values)
    if epsilon is None:
        return _exactly(aggregator, query, N_GROUPS, cohort_size)
    if cohort_size is not None:
        raise ParameterError(
            f"expected cohort_size None, all clients, with epsilon, got {cohort_size}"
        )
    return _with_noise(query, asked.sums(Scaled(query)))


@checked
def choose_feature(
    aggregator: Aggregator,
    columns: Mapping[str, RecordColumn],
    *,
    label: str,
    n_labels: int,
    epsilon: float | None = None,
    delta: float | None = None,
) -> FeatureChoice:
    """Measure how much clients differ in columns of their records, cut into bins, in one round each.

    `epsilon` and `delta` are as in `describe`; the columns share them evenly.
    """
    if not columns:
        raise ParameterError("expected at least one column to look at, got none")
    asked = Asked(aggregator, epsilon, delta, len(columns))
    found = {}
    for name, column in columns.items():
        query = Contrast(n_labels, column.n_bins, column)
        if epsilon is not None:
            found[name] = _with_noise(query, asked.sums(Scaled(query)))
            continue
        n_groups = int(np.clip(_MOST_NUMBERS // query.n_numbers, 2, N_GROUPS))
        found[name] = _exactly(aggregator, query, n_groups, None)
    return replace(FeatureChoice.of(label, n_labels, found), guarantee=asked.guarantee)


def _exactly(
    aggregator: Aggregator, query: Contrast, n_groups: int, cohort_size: int | None
) -> FeatureDifference:
    """From exact sums over groups of clients."""
    edges = np.linspace(0.0, 1.0, n_groups + 1)
    bounds = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    parts = Batch(tuple(Part(query, low, high) for low, high in bounds))
    answers = aggregator.aggregate(parts, cohort_size).answers
    groups = [a for a in answers if isinstance(a, ContrastStatistics) and a.n_clients > 0]
    n_clients = int(sum(group.n_clients for group in groups))
    if n_clients < 2:
        raise ParameterError(
            f"expected at least two clients with two points each, got {n_clients}: one point says "
            "nothing about how alike a client's points are"
        )
    n_labels, whole = query.n_labels, total(groups)
    others = [total(groups[:g] + groups[g + 1 :]) for g in range(len(groups)) if len(groups) > 1]
    label, feature, joint, given_label = _jackknife(
        _correlations(whole, n_labels), [_correlations(sums, n_labels) for sums in others]
    )
    n_categories = int((whole.proportions > 0).sum())
    return FeatureDifference(label, feature, joint, given_label, n_clients, n_categories)


def _with_noise(query: Contrast, sums: Sums) -> FeatureDifference:
    """From one sum with noise."""
    n, noise, means = sums.n_clients.value, query.shaped(sums.noise), query.shaped(sums.means)
    # Where there are no points, nothing but this noise.
    variance = float(noise.proportions.min()) ** 2
    whole = query.shaped(sums.means * n)
    within, between = _agreement(whole, query.n_labels, variance * n**2)
    both = means.proportions.reshape(query.n_labels, -1)
    of_noise = (noise.pairs**2).sum(), noise.feature_matches**2, (noise.matches**2).sum()
    of_clients = (
        _spread(means, noise, [1, 2, 1], within[0]),
        max(within[1] * (1 - within[1]), 0.0),
        _spread(means, noise, [1, 0, 0], within[2]),
    )
    tables = both.sum(axis=1), both.sum(axis=0), both.ravel()
    label, feature, joint = [
        correlation(
            w, np.sqrt(s / n + e), b, p, np.full(len(p), (variance * both.size / len(p)) ** 0.5), n
        )
        for w, b, s, e, p in zip(within, between, of_clients, of_noise, tables, strict=True)
    ]
    n_categories = int((means.proportions > _CLEAR * np.sqrt(variance)).sum())
    given = _given_with_noise(query, whole, noise, variance)
    return FeatureDifference(label, feature, joint, given, round(n), n_categories)


def _spread(
    means: ContrastStatistics, noise: ContrastStatistics, weights: Sequence[float], mean: float
) -> float:
    """The variance between clients of a number whose square is so much of the moments, or more."""
    second = np.dot(weights, means.moments) + 2 * np.sqrt(
        np.dot(np.square(weights), noise.moments**2)
    )
    return max(float(second) - float(mean) ** 2, 0.0)


def _given_with_noise(
    query: Contrast, whole: ContrastStatistics, noise: ContrastStatistics, variance: float
) -> Estimate:
    """ρ of the feature given the label, (M - S) / (P - S) with M matches, P pairs and S = Σ pairs_y b_y.

    With b the mean of b_y, a client's M - (ρ + (1 - ρ) b) P has the variance that the moments say, and
    its Σ pairs_y (b_y - b) a second moment of at most Σ pairs_y (b_y - b)². A client with the share l of
    label y moves b_y by 2 l (x - b_y) / L_y, where x is a mean of the values' shares s = P_y / L_y. Over
    clients, weighted by l, x has the mean b_y, and so at most the variance (max s - b_y) (b_y - min s)
    (Bhatia and Davis). As Σ l = 1, the square of a sum over labels is at most Σ l times the squares.
    """
    n = whole.n_clients
    means = query.shaped(whole.to_vector() / n)
    both = means.proportions.reshape(query.n_labels, -1)
    value, seen, b = _given_label(whole, both * n, variance * n**2)
    pairs = np.clip(means.pairs[seen], 0.0, None)
    room = float((pairs * (1 - b)).sum())
    if np.isnan(value) or room <= _ROUNDING:
        return Estimate(np.nan, np.nan, np.nan)
    label, rho = both[seen].sum(axis=1), float(np.clip(value, 0.0, 1.0))
    shares = both[seen] / label[:, None]
    c = rho + (1 - rho) * float(pairs @ b / pairs.sum())
    off = (1 - rho) * b - (c - rho)
    mean = float(means.matches.sum() - c * means.pairs.sum())
    own = _spread(means, noise, [(1 - c) ** 2, -2 * c * (1 - c), c**2], mean)
    varied = np.clip((shares.max(axis=1) - b) * (b - shares.min(axis=1)), 0.0, None)
    # The errors of the clients may go together, so that they are added.
    of_clients = np.sqrt(own) + np.sqrt((pairs * off**2).sum())
    of_clients += (1 - rho) * np.sqrt((4 * pairs**2 * varied / label).sum())
    # Shares with noise make this larger, by twice as much as the squares of noise that are left out.
    moved = 4 * ((shares - b[:, None]) ** 2).sum(axis=1) / label**2
    of_noise = (noise.matches[seen] ** 2 + (off + c) ** 2 * noise.pairs[seen] ** 2).sum()
    of_noise += (1 - rho) ** 2 * (pairs**2 * variance * moved).sum()
    half = REACH * np.sqrt(of_clients**2 / n + of_noise) / room
    return Estimate.around(value, half, -1.0, 1.0)


@checked
def recommend_feature(
    differences: Mapping[str, FeatureDifference], *, label: str = "the label"
) -> Recommendation:
    """Say what to model: the label crossed with a feature, the label alone, or nothing.

    Clients differ if the correlation is at least 0.05 and its interval lies above 0. They hardly differ
    if the upper end of the interval is below 0.05. The label is crossed with the feature in which they
    differ most given the label. It is modelled alone if they differ in it, and given the label hardly
    in any feature. IID clients will do if they hardly differ in anything. Else there are too few
    clients to tell.

    Parameters
    ----------
    differences : mapping of str to FeatureDifference
        By feature, of the same clients and the same label. Offer only what the network sees.
    label : str
        Its name in the sentence.

    Examples
    --------
    >>> much, none = Estimate(0.4, 0.3, 0.5), Estimate(0.0, -0.1, 0.1)
    >>> found = FeatureDifference(none, much, much, much, n_clients=90, n_categories=12)
    >>> recommend_feature({"region": found}, label="income").sentence
    'model income × region: two points of one client with the same income are alike in region more often
     than those of two clients (0.40, 0.30 to 0.50)'
    """
    if not differences:
        raise ParameterError("expected at least one feature to recommend from, got none")
    given = {name: found.given_label for name, found in differences.items()}
    able = {name: rho.value for name, rho in given.items() if differs(rho)}
    if able:
        best = max(able, key=able.__getitem__)
        return Recommendation(
            "label × feature",
            best,
            f"model {label} × {best}: two points of one client with the same {label} are alike in "
            f"{best} more often than those of two clients ({_shown(given[best])})",
        )
    first = next(iter(differences.values()))
    unclear = {name: rho for name, rho in given.items() if not _hardly_differs(rho)}
    if unclear or not (differs(first.label) or _hardly_differs(first.label)):
        sentence = _cannot_tell(label, first.label, unclear, first.n_clients)
        return Recommendation("cannot tell", None, sentence)
    if differs(first.label):
        what = "the candidate" if len(given) == 1 else f"any of {counted(len(given), 'candidate')}"
        return Recommendation(
            "label",
            None,
            f"model {label} alone: clients differ in it ({_shown(first.label)}), and given {label} "
            f"hardly in {what}",
        )
    return Recommendation(
        "IID",
        None,
        f"clients do not differ enough to model: not in {label} ({_shown(first.label)}), nor given "
        f"{label} in any candidate; IID clients will do",
    )


def differs(rho: Estimate) -> bool:
    """Whether clients differ, more than by chance and enough to be modelled.

    >>> differs(Estimate(0.4, 0.3, 0.5)), differs(Estimate(0.4, -0.1, 0.9))
    (True, False)
    """
    return rho.low > 0 and rho.value >= LEAST_CORRELATION


def concentration_of(correlation: float) -> float:
    """The α_0 of the Dirichlet-multinomial whose clients differ as much: ρ = 1 / (1 + α_0).

    >>> concentration_of(0.25)
    3.0
    """
    return 1 / correlation - 1


def thin_categories(n_categories: int, mean_size: float) -> str | None:
    """A warning if there are more categories than points of ten clients together; else None.

    >>> thin_categories(223, 70.0) is None
    True
    """
    if n_categories <= 10 * mean_size:
        return None
    return (
        f"{counted(n_categories, 'category')} are many for clients of {mean_size:,.0f} points on "
        "average: ten clients together hold less than a point of each; merge categories, or bins"
    )


def _hardly_differs(rho: Estimate) -> bool:
    """Whether even the upper end is too small to be modelled; NaN means that nothing can differ.

    Not the opposite of `differs`: an interval from below 0 to above the threshold allows both.
    """
    return bool(np.isnan(rho.value)) or rho.high < LEAST_CORRELATION


def _cannot_tell(label: str, own: Estimate, unclear: Mapping[str, Estimate], n_clients: int) -> str:
    """The sentence for too few clients, with the candidate whose interval has the largest upper end."""
    too_few = f"{counted(n_clients, 'client')} are too few"
    perhaps = [] if differs(own) or _hardly_differs(own) else [f"in {label} ({_shown(own)})"]
    if unclear:
        furthest = max(unclear, key=lambda name: np.nan_to_num(unclear[name].high, nan=np.inf))
        others = counted(len(unclear) - 1, "other candidate")
        perhaps.append(
            f"given {label} in {furthest} ({_shown(unclear[furthest])})"
            f"{f' and {others}' if len(unclear) > 1 else ''}"
        )
    if differs(own):
        return (
            f"cannot tell whether to cross {label}: {too_few}; they differ in {label} ({_shown(own)}), "
            f"and perhaps {perhaps[0]}; ask more clients"
        )
    return f"cannot tell: {too_few}; they may differ {', and '.join(perhaps)}; ask more clients"


def _shown(rho: Estimate) -> str:
    """An estimate inside of a bracket."""
    if np.isnan(rho.low):
        return f"{rho:.2f}"
    return f"{rho.value:.2f}, {rho.low:.2f} to {rho.high:.2f}"


def _correlations(sums: ContrastStatistics, n_labels: int) -> Floats:
    """ρ of the label, of the feature, of both, and of the feature given the label, shape (4,)."""
    if sums.n_clients < 2:
        return np.full(4, np.nan)
    within, between = _agreement(sums, n_labels)
    given, _, _ = _given_label(sums, sums.proportions.reshape(n_labels, -1))
    return np.append(_ratio(within - between, 1 - between), given)


def _agreement(
    sums: ContrastStatistics, n_labels: int, variance: float = 0.0
) -> tuple[Floats, Floats]:
    """How often two points agree in label, feature and both: of one client, and of two, shape (3,) each.

    `variance` is that of the noise of each proportion, which the squares of sums do not keep.
    """
    m, both = sums.n_clients, sums.proportions.reshape(n_labels, -1)
    label, feature = both.sum(axis=1), both.sum(axis=0)
    # |Σ p|² - Σ |p|² is the sum over ordered pairs of different clients.
    between = np.array([
        label @ label - sums.label_squares.sum(),
        feature @ feature - sums.feature_squares,
        (both**2).sum() - sums.squares.sum(),
    ]) - both.size * variance  # fmt: skip
    within = np.array([sums.pairs.sum(), sums.feature_matches, sums.matches.sum()]) / m
    return within, between / (m * (m - 1))


def _given_label(
    sums: ContrastStatistics, both: Floats, variance: float = 0.0
) -> tuple[float, Bools, Floats]:
    """ρ of the feature given the label: (W_y - B_y) / (1 - B_y), averaged over labels y.

    W_y and B_y are the probabilities that two points of one client, or of two, match in the feature
    given that both have label y. If f is independent of the client given y they are equal, whatever the
    clients' labels are. The weight of a label is the number of the clients' same-label pairs times the
    share 1 - B_y of pairs that could differ: a label with one value of the feature has no weight, nor
    has one that noise hides. The labels with weight are returned, too, and their B_y.
    """
    label, noise = both.sum(axis=1), both.shape[1] * variance
    pairs_between = label**2 - noise - sums.label_squares
    # By two clients at least.
    seen = (pairs_between > np.maximum(_ROUNDING * label**2, _CLEAR**2 * noise)) & (label > 0)
    pairs = sums.pairs[seen]
    b = ((both**2).sum(axis=1) - noise - sums.squares)[seen] / pairs_between[seen]
    excess, room = (sums.matches[seen] - pairs * b).sum(), (pairs * (1 - b)).sum()
    return float(_ratio(np.array([excess]), np.array([room]))[0]), seen, b


def _ratio(excess: Floats, room: Floats) -> Floats:
    """NaN if all points are alike, so that nothing can differ."""
    nothing = room <= _ROUNDING
    return np.where(nothing, np.nan, excess / np.where(nothing, 1.0, room))


def _jackknife(values: Floats, without: list[Floats]) -> list[Estimate]:
    """Each value with its interval, from the values without one group of clients each."""
    n_groups = len(without)
    if n_groups < 2:
        return [Estimate.around(value, np.nan) for value in values]
    deviations = np.array(without) - np.mean(without, axis=0)
    errors = np.sqrt((n_groups - 1) / n_groups * (deviations**2).sum(axis=0))
    half = stdtrit(n_groups - 1, (1 + COVERAGE) / 2) * errors
    return [Estimate.around(value, h) for value, h in zip(values, half, strict=True)]
