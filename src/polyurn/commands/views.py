"""How results are shown: tables for a person, documents for JSON, sentences about anything unusual.

Nothing is computed here.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

import polyurn as pu
from polyurn.commands.console import parts_that_fit, print_json, say, show, warn
from polyurn.errors import ParameterError
from polyurn.model.component_summary import (
    HALF_WIDTH,
    HEADS,
    SHOWN,
    component_rows,
    many_components,
)
from polyurn.storage.models import Saved, is_model, load_saved
from polyurn.typed.json_form import to_json
from polyurn.wording import counted, ranges

if TYPE_CHECKING:  # showing a file need not load the search
    from polyurn.comparison.style_comparison import StyleRow
    from polyurn.server.fit_results import Candidate

_MOST_ROWS = 20  # of a table on a terminal


def table_of(
    title: str, heads: Iterable[str], rows: Iterable[Sequence[str]], *, left: Iterable[int] = ()
) -> Table:
    """A table; columns of numbers are aligned to the right, those of texts (`left`) to the left."""
    table, texts = Table(title=title), set(left)
    for position, head in enumerate(heads):
        justify: Any = "left" if position in texts else "right"
        table.add_column(head, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


# ------------------------------------------------------------------------------------- mixtures


def check_order(data: Path, models: Iterable[Path] = ()) -> None:
    """Refuse a model in the place of a table, and tables in the place of models."""
    from polyurn.storage.table_files import is_table

    swapped = [(data, "model", "table")] if is_model(data) else []
    for path, what, expected in swapped + [(m, "table", "model") for m in models if is_table(m)]:
        raise ParameterError(
            f"{path} is a {what} where a {expected} is expected: data first, then models"
        )


def read_model(path: Path) -> Saved[pu.MDM]:
    """Read an MDM file; warn about each part that could not be read."""
    saved = load_saved(path)
    for line in saved.provenance.left_out:
        warn(f"left out of {path}: {line}")
    return saved


def put_learned(saved: Saved[pu.MDM], output: Path | None, *, as_json: bool) -> None:
    """A mixture that was just learned: in words, as a file, and its table unless it is in the file."""
    say_learned(saved)
    put_file(saved, output)
    provenance = saved.provenance
    if as_json:
        fit = provenance.fit
        assert fit is not None
        of_all = {"n_rounds": fit.n_rounds, "n_numbers": fit.n_numbers, "sent": fit.sent}
        document = {**of_all, **to_json(fit), **mdm_json(saved.model, saved.categories)}
        print_json({**document, **provenance.more, "privacy": provenance.privacy_in_words})
        return
    if provenance.fit is not None and provenance.fit.candidates:
        show(choice_table(provenance.fit))
    elif "candidates" in provenance.more:
        show(candidates_table(provenance.more["candidates"], saved.model.n_components))
    elif output is None:
        show(mdm_table(saved.model, saved.categories))


def put_file(saved: Saved[Any], output: Path | None, what: str = "") -> None:
    """Name the nodes that were not in all sums, in which rounds, and why; and write the file."""
    traffic = saved.provenance.traffic
    for sentence in () if traffic is None else traffic.absences:
        warn(sentence)
    if output is not None:
        pu.save(
            saved.model, output, categories=saved.categories, features=saved.features,
            provenance=saved.provenance,
        )  # fmt: skip
        say(f"wrote {output}{what}")


def say_learned(saved: Saved[pu.MDM]) -> None:
    """Sentences about a mixture that was just learned."""
    fit, privacy = saved.provenance.fit, saved.provenance.privacy
    assert fit is not None
    sentences = [f"{fit.cost}; {fit.stopped}"]
    if privacy is not None and privacy.guarantee is not None:
        sentences = [f"stopped {fit.stopped}", saved.provenance.privacy_in_words]
    if fit.candidates:
        judges = counted(fit.n_held_out, "held-out client")
        sentences.insert(0, f"{counted(fit.n_components, 'component')}, by {judges}")
        sentences += [fit.caution] if fit.caution else []
    if "candidates" in saved.provenance.more:
        from polyurn.server.fit_settings import largest_won

        n, offered = saved.model.n_components, saved.provenance.more["candidates"]
        largest = largest_won(n, [one["n_components"] for one in offered])
        sentences = [counted(n, "component"), *sentences, *([largest] if largest else [])]
    if fit.skipped:
        which = ranges(fit.skipped)
        sentences.append(f"left out K = {which}: there are fewer clients to fit than components")
    if fit.n_agreeing is not None and saved.model.n_components > 1:
        sentences.append(f"starts that ended at this optimum: {fit.n_agreeing}")
    if fit.n_dropped:
        sentences.append(
            f"dropped {counted(fit.n_dropped, 'component that was', 'components that were')} left with "
            "less than half a client"
        )
    if multinomial := saved.model.multinomial:
        which = ranges([k + 1 for k in multinomial])
        sentences.append(f"plain multinomials (concentration at the cap): component {which}")
    if fit.no_errors:
        sentences.append(f"no standard errors: {fit.no_errors}")
    for sentence in sentences:
        say(sentence)
    say_findings(saved.model, saved.categories)


def say_findings(mdm: pu.MDM, categories: tuple[str, ...] | None) -> None:
    """A sentence about each component of a mixture with splits."""
    if mdm.splits is None:
        return
    from polyurn.model.split_findings import findings

    names = names_of(mdm, categories)
    for k, found in enumerate(findings(mdm)):
        say(f"component {k + 1}: {found.words(names)}")


def mdm_table(mdm: pu.MDM, categories: tuple[str, ...] | None) -> Table:
    """One row per component; of many, the largest, and a sentence about all."""
    heads = list(HEADS)
    if mdm.splits is not None:
        heads[2] = "concentration of the root"
    title = f"{counted(mdm.n_components, 'component')}, {counted(mdm.n_categories, 'category')}"
    title += ", numbered as in the mixture that the fit began at" if mdm.as_given else ""
    if many := many_components(mdm):
        title += f": {many}; the {SHOWN} largest"
    table = table_of(title, heads, component_rows(mdm, categories), left=[4])
    if mdm.standard_errors is not None:
        table.caption = "± is half of a 95 % interval"
    return table


def names_of(mdm: pu.MDM, categories: tuple[str, ...] | None) -> tuple[str, ...]:
    """The names of the categories, or their numbers."""
    return categories or tuple(str(j) for j in range(mdm.n_categories))


def mdm_json(mdm: pu.MDM, categories: tuple[str, ...] | None) -> dict[str, Any]:
    """The parameters, for JSON."""
    return {
        "n_components": mdm.n_components,
        "n_categories": mdm.n_categories,
        "n_parameters": mdm.n_parameters,
        "max_size": mdm.max_size,
        "categories": None if categories is None else list(categories),
        "weights": mdm.weights.tolist(),
        "alphas": mdm.alphas.tolist(),
        "mean_sizes": mdm.sizes.mean().tolist(),
        "standard_errors": None if mdm.standard_errors is None else to_json(mdm.standard_errors),
        **({} if mdm.splits is None else {"splits": _splits_json(mdm, names_of(mdm, categories))}),
    }


def _splits_json(mdm: pu.MDM, names: tuple[str, ...]) -> dict[str, Any]:
    from polyurn.model.split_findings import findings

    assert mdm.splits is not None
    found = [{"variance": f.variance, "words": f.words(names)} for f in findings(mdm)]
    more = {"tree": mdm.splits.tree.nested(names), "shares": mdm.shares.tolist()}
    return {**to_json(mdm.splits), **more, "findings": found}


def choice_table(choice: "pu.Fit") -> Table:
    """One row per number of components, of many the best; the chosen one is marked."""
    best = choice.best_candidates(_MOST_ROWS)

    def state(candidate: "Candidate") -> str:
        if candidate.overtaken:
            return "early"
        words = ["chosen"] if candidate is choice.chosen else []
        return ", ".join(words + ([] if candidate.converged else ["unfinished"]))

    table = table_of(
        f"held-out log-likelihood per client ({counted(choice.n_held_out, 'client')})",
        ("K", "mean ± 95 %", "behind (s.e.)", "rounds", "parameters", ""),
        [
            (str(c.n_components), f"{c.log_likelihood:.4f} ± {HALF_WIDTH * c.standard_error:.4f}",
             f"{c.behind:.4f} ({c.behind_error:.4f})", f"{c.n_rounds:,}", f"{c.n_parameters:,}",
             state(c))
            for c in best
        ],
    )  # fmt: skip
    captions = []
    if any(c.overtaken for c in best):
        captions.append("early: a smaller K was already better than this one could become")
    if len(best) < len(choice.candidates):
        captions.append(f"the best {len(best)} of {len(choice.candidates)} that were offered")
    table.caption = "; ".join([*captions, *map(str, choice.stages)]) or None
    return table


def candidates_table(candidates: Sequence[dict[str, Any]], chosen: int) -> Table:
    """One row per number of components that was tried with noise; the chosen one is marked."""
    return table_of(
        "log-likelihood per client, with noise",
        ("K", "behind the best", "noise (s.d.)", ""),
        [
            (str(one["n_components"]), f"{one['behind']:.4f}", f"{one['noise']:.4f}",
             "chosen" if one["n_components"] == chosen else "")
            for one in candidates
        ],
    )  # fmt: skip


# --------------------------------------------------------------------------------------- styles


def style_table(style: "pu.Style") -> Table:
    """One row per direction: what it carries, and the variances B, V and E in it with their errors."""

    def cell(name: str, k: int) -> str:
        values = [np.asarray(getattr(of, name)) for of in (style, style.errors) if of is not None]
        numbers = [value[k] if value.ndim == 1 else value[k, k] for value in values]
        return " ± ".join([f"{numbers[0]:z.2f}", *(f"{error:.2f}" for error in numbers[1:])])

    table = table_of(
        f"styles of {counted(style.n_clients, 'client')}",
        ("direction", "carries", "mean", "B: shared", "V: by label", "E: within"),
        [
            (str(k + 1), f"{style.carried[k]:.0%}",
             *(cell(name, k) for name in ("mean", "shared", "by_label", "within")))
            for k in range(style.n_directions)
        ],
    )  # fmt: skip
    table.caption = (
        f"{style.between:.0%} of the variance within labels lies between clients; B eigenvalues "
        + " ".join(f"{value:z.2f}" for value in style.eigenvalues[0])
    )
    return table


def style_json(saved: "Saved[pu.Style]") -> dict[str, Any]:
    """The same numbers and more, for JSON."""
    names, style = ("mean", "shared", "by_label", "within"), saved.model
    errors = style.errors
    return {
        "n_clients": style.n_clients,
        "n_directions": style.n_directions,
        "categories": None if saved.categories is None else list(saved.categories),
        "between": style.between,
        "carried": style.carried.tolist(),
        "eigenvalues": style.eigenvalues.tolist(),
        **{name: getattr(style, name).tolist() for name in names},
        "errors": None if errors is None else {n: getattr(errors, n).tolist() for n in names},
        "far_share": None if np.isnan(style.far_share) else style.far_share,
        "proxy_far_share": style.space.proxy_far_share,
        "radius": style.space.radius,
        "alarm": style.alarm,
    }


# ---------------------------------------------------------------------------------- comparisons


def comparison_tables(verdict: "pu.Comparison") -> list[Table]:
    """How alike each population is to the true clients."""
    title = f"how alike to {counted(verdict.n_clients, 'true client')}"
    head, *lines = verdict.table()
    return population_tables(title, head, lines)


def population_tables(
    title: str, head: Sequence[str], lines: Sequence[Sequence[str]]
) -> list[Table]:
    """One column per population, one line per measure; as many tables as the terminal needs."""

    def table(columns: Sequence[int]) -> Table:
        shown = [0, *columns]
        return table_of(
            title, [head[j] for j in shown], [[line[j] for j in shown] for line in lines], left=[0]
        )

    return [table(columns) for columns in parts_that_fit(range(1, len(head)), table)]


def styles_table(rows: Sequence["StyleRow"]) -> Table:
    """One line per population: how much its clients differ in style."""
    heads = ("by client", "by label")
    lines = []
    for row in rows:
        cells = [row.name]
        for found in (row.directions, row.features):
            cells += [f"{found.by_client:.2f}", f"{found.by_label:.2f}"]
        lines.append(cells)
    columns = [f"{head}, {where}" for where in ("directions", "features") for head in heads]
    title = "how much clients differ in style; 1 is chance"
    return table_of(title, ["clients", *columns], lines, left=[0])
