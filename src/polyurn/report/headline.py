"""The verdict at the top of a page: one sentence with a clause for each of three numbers, and what these
mean.

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
# From which α on clients are called so: 0.1 is extreme in papers, 0.5 usual, and 100 IID.
_WORDS = {50: "almost alike", 2: "mildly different", 0.5: "clearly different", 0: "very different"}
_TOO_SMALL = "too small to tell how different they are"


@dataclass(frozen=True)
class Number:
    """One of the three numbers; if it is not known, `means` says how to measure it."""

    label: str
    value: str
    means: str
    known: bool


@dataclass(frozen=True)
class Headline:
    """The verdict: one sentence, and three numbers."""

    sentence: str
    numbers: tuple[Number, ...]


def headline(material: Material) -> Headline:
    """The verdict on what there is."""
    measured = {label: measure(material) for label, measure in _MEASURES.items()}
    numbers = (
        Number(label, value or "–", means if value else f"Not measured: {means}", bool(value))
        for label, (_, value, means) in measured.items()
    )
    parts = [clause for clause, _, _ in measured.values() if clause]
    parts = parts or [_other_verdict(material)]
    n_true = material.n_clients.get(material.true)
    if material.comparison is not None:
        parts.append(material.comparison.few)
    elif n_true is not None:
        parts.append(few_true_clients(n_true))
    sentence = "; ".join(filter(None, parts))
    named = sentence.split()[1] == "clients" and not sentence.startswith(("clients", "simulated"))
    # A population's name stays as it is.
    return Headline(f"{sentence if named else capital(sentence)}.", tuple(numbers))


def _other_verdict(material: Material) -> str:
    """What there is to say where none of the three was measured."""
    if material.style is not None:
        between = material.style.style.between
        return f"{between:.0%} of the variance among points of the same label lies between clients"
    if material.description is not None:
        return material.description.sentence
    if material.looks:
        return f"at the last look, {material.looks[-1].drift.sentence}"
    return "there are runs to look at, and no verdict yet"


def _heterogeneity(material: Material) -> tuple[str, str, str]:
    """Clause of the sentence, number, and what it means; or how to measure it."""
    clients, whose = material.clients.get(material.true), "true clients"
    if clients is None and material.mdm is not None and material.comparison is None:
        clients, whose = material.mdm.sample(_N_DRAWN, rng=_SEED), "clients that the model draws"
    if material.comparison is not None:
        measured = material.comparison.heterogeneity
    elif clients is not None:
        measured = heterogeneity(clients, n_bootstrap=100, rng=_SEED)
    else:
        return "", "", "add a model or clients (polyurn report clients.csv mdm.json)."
    alpha, away = measured.alpha.value, measured.total_variation.value
    means = (
        f"{capital(whose)} are about as different as under one Dirichlet(α); "
        f"a client’s mix is {100 * away:.0f} % away from the whole federation’s."
    )
    low, high = measured.alpha.low, measured.alpha.high
    if not math.isnan(low):
        means += f" 95 % interval of α: {short(low)} to {short(high)}."
    words = next((words for least, words in _WORDS.items() if alpha >= least), _TOO_SMALL)
    return f"clients are {words}", f"α ≈ {short(alpha)}", means


def _closeness(material: Material) -> tuple[str, str, str]:
    if material.comparison is None:
        return "", "", "polyurn compare held-out.csv mdm.json -o comparison.json"
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
    return material.comparison.verdict, f"{short(row.energy_ratio)}×", means


def _training(material: Material) -> tuple[str, str, str]:
    verdict = material.verdict
    if material.no_verdict:
        return "", "", f"{material.no_verdict}."
    if verdict is None or verdict.reference is None:
        return "", "", "polyurn sweep config.toml -o runs/, with true clients among them"
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
    return words, f"{off} pts off" if say.in_points else f"{off} off", means


_MEASURES = {
    "How different clients are": _heterogeneity,
    "How close simulated clients are": _closeness,
    "What training on them predicts": _training,
}
