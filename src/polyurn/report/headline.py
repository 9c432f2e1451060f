"""The verdict at the top of a page: a sentence for each of three numbers, and what these mean.

Words for numbers that others have measured: how heterogeneous the federation is, how close simulated
clients are, what training on them predicts. How close they are, a `Comparison` says itself.
"""

import math
from dataclasses import dataclass

from polyurn.comparison.comparison_results import few_true_clients, short, with_error
from polyurn.comparison.summaries import heterogeneity
from polyurn.report.material import Material
from polyurn.wording import capital, counted

# Clients that stand for an MDM whose heterogeneity is asked for; its own seed, so that it is the same.
_N_DRAWN, _SEED = 2_000, 0


@dataclass(frozen=True)
class Number:
    """One of the three numbers; if it is not known, `means` says how to measure it."""

    label: str
    value: str
    means: str
    known: bool = True


@dataclass(frozen=True)
class Headline:
    """The verdict: its sentences as one text, and three numbers."""

    sentence: str
    numbers: tuple[Number, Number, Number]


def headline(material: Material) -> Headline:
    """The verdict on what there is."""
    how_different, first = _heterogeneity(material)
    how_close, second = _closeness(material)
    how_predictive, third = _training(material)
    parts = [part for part in (how_different, how_close, how_predictive) if part]
    parts = [*(parts or ["there are runs to look at, and no verdict yet"]), _few(material)]
    return Headline(" ".join(map(_sentence, filter(None, parts))), (first, second, third))


def _few(material: Material) -> str:
    """What so few true clients cannot tell; empty if there are enough, or none."""
    if material.comparison is not None:
        return material.comparison.few
    n_true = material.n_clients.get(material.true)
    return "" if n_true is None else few_true_clients(n_true)


def _heterogeneity(material: Material) -> tuple[str, Number]:
    label = "How different clients are"
    if material.comparison is not None:
        measured, whose = material.comparison.heterogeneity, "true clients"
    elif material.true in material.clients:
        measured = heterogeneity(material.clients[material.true], n_bootstrap=100, rng=_SEED)
        whose = "true clients"
    elif material.mdm is not None:
        drawn = material.mdm.sample(_N_DRAWN, rng=_SEED)
        measured = heterogeneity(drawn, n_bootstrap=100, rng=_SEED)
        whose = "clients that the model draws"
    else:
        hint = "Not measured: add a model or clients (polyurn report clients.csv mdm.json)."
        return "", Number(label, "–", hint, known=False)
    alpha, away = measured.alpha.value, measured.total_variation.value
    means = (
        f"{capital(whose)} are about as different as under one Dirichlet(α); "
        f"a client’s mix is {100 * away:.0f} % away from the whole federation’s."
    )
    low, high = measured.alpha.low, measured.alpha.high
    if not math.isnan(low):
        means += f" 95 % interval of α: {short(low)} to {short(high)}."
    words = _how_different(alpha)
    return f"clients are {words}", Number(label, f"α ≈ {short(alpha)}", means)


def _how_different(alpha: float) -> str:
    # The values that papers use: 0.1 is called extreme, 0.5 usual, and 100 IID.
    if math.isnan(alpha):
        return "too small to tell how different they are"
    if alpha >= 50:
        return "almost alike"
    if alpha >= 2:
        return "mildly different"
    return "clearly different" if alpha >= 0.5 else "very different"


def _closeness(material: Material) -> tuple[str, Number]:
    label = "How close simulated clients are"
    if material.comparison is None:
        hint = "Not measured: polyurn compare held-out.csv mdm.json -o comparison.json"
        return "", Number(label, "–", hint, known=False)
    row = material.comparison.simulated
    low, high = row.energy_null
    means = (
        f"Distance of {row.name} clients to true ones, over that of true clients to true clients: 95 % "
        f"of these would be at {low:.2f} to {high:.2f}."
    )
    if row.auc is not None:
        means += f" A classifier’s AUC: {with_error(row.auc, 2)}; 0.5 is chance."
    other = [r for r in material.comparison.rows if r.name == "iid" and r is not row]
    if other:
        means += f" IID clients: {short(other[0].energy_ratio)}."
    return material.comparison.verdict, Number(label, f"{short(row.energy_ratio)}×", means)


def _training(material: Material) -> tuple[str, Number]:
    label = "What training on them predicts"
    verdict = material.verdict
    if material.no_verdict:
        return "", Number(label, "–", f"Not measured: {material.no_verdict}.", known=False)
    if verdict is None or verdict.reference is None:
        hint = "Not measured: polyurn sweep config.toml -o runs/, with true clients among them"
        return "", Number(label, "–", hint, known=False)
    about, say = verdict.reference, verdict.wording
    off = say.number(about.difference.value)
    has_iid = any(v.population == "iid" and v is not about for v in verdict.simulated)
    means = (
        f"How far {material.metric} on {about.population} clients is from that on true ones, over "
        f"{counted(about.n_settings, 'setting')} and {counted(about.n_seeds, 'seed')}."
    )
    if verdict.floor is not None and verdict.floor.n_seeds:
        means += f" {capital(say.floor(verdict.floor.difference))}."
    words = (
        verdict.pair_sentence("iid", about.population)
        if has_iid
        else say.promises({about.population: (about.signed, about.difference)})
    )
    return words, Number(label, f"{off} pts off" if say.in_points else f"{off} off", means)


def _sentence(part: str) -> str:
    first, second, *_ = part.split()
    named = second == "clients" and first != "simulated"  # a population's name stays as it is
    return f"{part}." if named else capital(f"{part}.")
