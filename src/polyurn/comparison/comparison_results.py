"""The result of a comparison of populations: values, a table, a document for JSON.

Nothing is measured here.
"""

from dataclasses import dataclass
from math import isfinite, isinf, isnan, sqrt
from typing import Any, Self

from polyurn.comparison.distances import Floor
from polyurn.comparison.estimates import Estimate
from polyurn.comparison.summaries import Dispersion, Heterogeneity
from polyurn.errors import ParameterError
from polyurn.typed.arguments import checked
from polyurn.typed.json_form import Count, from_json, to_json
from polyurn.typed.plotted import Plotted, data_frame
from polyurn.wording import aligned, counted

SIMULATED = "mdm"  # the population that the verdict is about, where it is among them


@checked
@dataclass(frozen=True)
class Likeness:
    """How alike one population is to the true clients.

    Ratios are to the noise floor: 1 says that true clients differ as much from true clients.

    Attributes
    ----------
    name : str
    n_clients : int
        How many of its clients were compared.
    log_likelihood, log_likelihood_given_size : Estimate or None
        Mean log q(c, n) and log q(c | n) of a true client; for an MDM only.
    energy_distance, energy_ratio : float
        Between normalised histograms; the distance is unbiased, so that it may be below 0.
    energy_null : (float, float)
        95 % of the energy ratios of as many true clients would be in here.
    sliced_wasserstein, sliced_wasserstein_ratio : float
        Wasserstein-1 distance between normalised histograms, over random directions.
    auc : Estimate or None
        Of a classifier that tells simulated from true clients; 0.5 is perfect.
    size_distance, size_ratio : float
        Wasserstein-1 distance of the sizes, in points, and its ratio.
    n_shared : int
        How many of the true clients that were compared have a client of this population with the very
        same histogram.
    heterogeneity : Heterogeneity
    dispersion : Dispersion or None
        Whether true clients vary less than the components allow; for an MDM only.
    n_expected : float or None
        How many `n_shared` would be by chance if the model were the truth; for an MDM only.
    """

    name: str
    n_clients: Count
    log_likelihood: Estimate | None
    log_likelihood_given_size: Estimate | None
    energy_distance: float
    energy_ratio: float
    energy_null: tuple[float, float]
    sliced_wasserstein: float
    sliced_wasserstein_ratio: float
    auc: Estimate | None
    size_distance: float
    size_ratio: float
    n_shared: Count
    heterogeneity: Heterogeneity
    dispersion: Dispersion | None
    n_expected: float | None = None


@dataclass(frozen=True)
class Floors:
    """How far true clients are from true clients, in each distance."""

    energy: Floor
    sliced_wasserstein: Floor
    sizes: Floor


@checked
@dataclass(frozen=True)
class Comparison(Plotted):
    """How alike populations are to true clients; `print` shows it as a table.

    Attributes
    ----------
    rows : tuple of Likeness
        One per population.
    floors : Floors
    heterogeneity : Heterogeneity
        Of the true clients themselves.
    n_clients, n_compared : int
        How many true clients there are, and how many of them, drawn at random, stand for all in what
        is not a likelihood.
    n_fitted : int or None
        How many of them had been fitted; None if it is not known.
    n_twins : int
        How many of those compared have the very same histogram as another of them.
    """

    rows: tuple[Likeness, ...]
    floors: Floors
    heterogeneity: Heterogeneity
    n_clients: Count
    n_compared: Count
    n_fitted: Count | None
    n_twins: Count

    def __post_init__(self) -> None:
        if not self.rows or not self.n_compared:
            raise ParameterError("expected at least one population and one client to compare with")

    def __getitem__(self, name: str) -> Likeness:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    @property
    def standing(self) -> str:
        """Whether the clients were held out, as far as it is known."""
        whom = counted(self.n_clients, "client")
        if self.n_fitted is None:
            return f"compared with {whom}; polyurn cannot tell whether the model was fitted to them"
        if self.n_fitted == 0:
            return f"compared with {whom} that were held out from fitting"
        n_fitted = f"{self.n_fitted:,} of {self.n_clients:,}"
        return f"compared with the clients that were fitted: {n_fitted}"

    @property
    def simulated(self) -> Likeness:
        """The population that the verdict is about: "mdm", or else the closest one."""
        named = [row for row in self.rows if row.name == SIMULATED]
        return (named or sorted(self.rows, key=lambda row: row.energy_ratio))[0]

    @property
    def verdict(self) -> str:
        """Whether simulated clients are like true ones, by energy, a classifier, and who was fitted.

        It says that they cannot be told apart only if a classifier tried, on enough held-out clients.
        """
        row, who = self.simulated, f"simulated clients ({self.simulated.name})"
        low, high = row.energy_null
        ratio, auc = row.energy_ratio, row.auc
        tried = f"AUC {with_error(auc, 2)}" if auc else "no classifier tried to tell them"
        fitted = {None: "; polyurn cannot tell whether these were fitted", 0: ""}.get(
            self.n_fitted, f"; {self.n_fitted or 0:,} of these true ones were fitted"
        )
        words = f"{who} are about as near to true ones as other true ones are"
        if not ratio <= high:
            words = f"{who} are {short(ratio)} times as far from true ones as other true ones are"
        elif auc and auc.low > 0.5:
            words = f"{words}, but a classifier tells them apart"
        elif self.few:
            words = f"whether {who} are like true ones cannot be told"
        elif ratio < low or (auc and auc.high < 0.5):
            words = f"{who} are more like these true ones than other true ones are"
        elif auc and self.n_fitted == 0:
            words = f"{who} cannot be told from true ones that were held out"
        return f"{words} ({tried}){fitted}"

    @property
    def few(self) -> str:
        """What so few true clients cannot tell; empty if there are enough."""
        return few_true_clients(self.n_compared)

    def sentences(self) -> tuple[str, ...]:
        """What belongs under the table."""
        sliced, sizes = f"{self.floors.sliced_wasserstein:.2f}", f"{self.floors.sizes:.2f}"
        sentences = [
            self.verdict,
            self.standing,
            "a ratio of 1 is the distance of true clients to true clients, in brackets the range of "
            f"95 % of them (energy); 95 % of {self.floors.energy.n_splits:,} splits of them had "
            f"{sliced} (sliced Wasserstein), {sizes} (size)",
        ]
        if self.n_compared < self.n_clients:
            sentences.append(
                f"{self.n_compared:,} of them, drawn at random, stand for all but in the likelihood"
            )
        if self.few:
            sentences.append(
                f"{self.few}; a ratio in its range does not say that populations are alike"
            )
        sentences += [
            f"population {row.name!r} seems to hold true clients themselves: "
            f"{row.n_shared:,} of {self.n_compared:,} are in it with the very same histogram "
            f"({self.n_twins:,} have a twin among each other), so that its AUC may be far below 0.5 "
            "and its ratios below 1: compare with clients that it does not hold"
            for row in self.rows
            if self._has_copies(row)
        ]
        return tuple(sentences)

    def _has_copies(self, row: Likeness) -> bool:
        """Whether a population shares more clients with those held out than chance would have it."""
        if row.n_expected is not None:  # a sum of chances, whose variance is no larger
            return row.n_shared > row.n_expected + 4 * sqrt(row.n_expected) + _UNSEEN
        most_twins = self.n_twins + _UNSEEN
        return row.n_shared > most_twins * max(1.0, row.n_clients / self.n_compared)

    def table(self) -> tuple[tuple[str, ...], ...]:
        """The table as texts: a head, and a line for each measure, with the true clients' last."""
        columns = {row.name: _measures(row) for row in self.rows}
        true = dict.fromkeys(_measures(self.rows[0]), "–") | {
            "clients": f"{self.n_compared:,}",
            "sliced Wasserstein, ratio": f"{self.floors.sliced_wasserstein:.2f}",
            "sizes, ratio": f"{self.floors.sizes:.2f}",
            **_heterogeneity_measures(self.heterogeneity),
        }
        lines = ((name, *(of[name] for of in columns.values()), true[name]) for name in true)
        return ("", *columns, "true"), *lines

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON: "Infinity" and "-Infinity" are texts, what is not defined is null."""
        return {**to_json(self), "standing": self.standing}

    @classmethod
    def from_dict(cls, document: object) -> Self:
        """What `to_dict` returned, or what a comparison file holds; a missing or damaged field is a
        FileError.
        """
        return from_json(cls, document)

    def __str__(self) -> str:
        return "\n".join([*aligned(self.table()), *self.sentences()])

    def to_pandas(self) -> Any:
        """A data frame with a row for each measure and a column of texts for each population."""
        (_, *names), *rows = self.table()
        columns = {name: [row[i] for row in rows] for i, name in enumerate(names, start=1)}
        return data_frame(columns, [row[0] for row in rows])


def few_true_clients(n_clients: int) -> str:
    """What so few true clients cannot tell; empty if there are enough."""
    if n_clients >= _FEW_CLIENTS:
        return ""
    return (
        f"{counted(n_clients, 'true client is', 'true clients are')} few: intervals are wide, and only "
        "large differences can be seen"
    )


# With fewer, intervals are so wide that words about them would mislead: a convention, not measured.
_FEW_CLIENTS = 50
# What was not seen once may well be expected three times (the "rule of three").
_UNSEEN = 3


def _measures(row: Likeness) -> dict[str, str]:
    """What tables say about a population, in their order."""
    low, high = row.energy_null
    return {
        "clients": f"{row.n_clients:,}",
        "log-likelihood ± 95 %": with_error(row.log_likelihood),
        "given size ± 95 %": with_error(row.log_likelihood_given_size),
        "energy, ratio [range of 1]": f"{short(row.energy_ratio)} [{low:.2f} to {high:.2f}]",
        "sliced Wasserstein, ratio": short(row.sliced_wasserstein_ratio),
        "AUC ± 95 % (0.5: perfect)": with_error(row.auc, 2),
        "sizes, ratio": short(row.size_ratio),
        "sizes, points apart": short(row.size_distance),
        **_heterogeneity_measures(row.heterogeneity),
    }


def _heterogeneity_measures(summary: Heterogeneity) -> dict[str, str]:
    return {
        "total variation": _with_interval(summary.total_variation),
        "Jensen-Shannon": _with_interval(summary.jensen_shannon),
        "effective categories": _with_interval(summary.effective_categories, 2),
        "about Dirichlet(α)": _with_interval(summary.alpha),
    }


def short(value: float, digits: int = 2) -> str:
    """A number for a table: few digits, and signs for what is endless or not defined."""
    if isnan(value):
        return "–"
    if isinf(value):
        return "∞"
    if 0 < abs(value) < 10**-digits:
        return f"{value:.2g}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.{digits}f}"


def _with_interval(estimate: Estimate, digits: int = 3) -> str:
    value, low, high = (short(x, digits) for x in (estimate.value, estimate.low, estimate.high))
    return value if value == low == high else f"{value} ({low} to {high})"


def with_error(estimate: Estimate | None, digits: int = 3) -> str:
    """A number and half the width of its interval."""
    if estimate is None:
        return "–"
    if not isfinite(estimate.value):
        return "-∞"
    half = (estimate.high - estimate.low) / 2
    return f"{estimate.value:.{digits}f} ± {half:.{digits}f}"
