"""`polyurn fit`: learn an MDM from a table whose clients are played in this process.

With several numbers of components, held-out clients choose.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

import polyurn as pu
from polyurn.commands.console import INTERRUPTED, say, talk
from polyurn.commands.declare import Unless, also, option, provenance_of, refuse_options
from polyurn.commands.options import (
    AS_JSON,
    CHECKPOINT,
    OUTPUT,
    SCHEDULER,
    SEED,
    START,
    TABLE,
    THREADS,
    Priors,
    PrivacyOptions,
    SearchOptions,
    TableOptions,
    component_numbers,
    drawn_cohort,
    named_values,
)
from polyurn.errors import ParameterError
from polyurn.wording import counted

if TYPE_CHECKING:
    from polyurn.sources.clients import ClientTable, PackedClients
    from polyurn.storage.provenance import Provenance
    from polyurn.wire import Aggregator

# Options that may differ between a run and its continuation.
_NO_MATTER = {"output", "checkpoint", "as_json", "threads", "scheduler", "quiet"}


def fit_command(
    *,
    context: typer.Context,
    table: Path = TABLE,
    columns: TableOptions,
    search: SearchOptions,
    privacy: PrivacyOptions,
    components: str = option(
        "auto",
        "Number of components, K; or several to choose from: 1:6, 2,4,8. auto goes on until doubling "
        "gains less than a standard error.",
        Unless("start"),
    ),
    start: Path | None = START,
    output: Path | None = OUTPUT,
    max_size: int | None = option(None, "Declared maximum number of points per client."),
    cohort: str | None = option(
        None,
        "Clients per round: 1000; or poisson:1000, a random number with that mean; default: all.",
        Unless("epsilon"),
    ),
    method: Literal["search", "paper", "paper:most_frequent", "paper:pooled"] = option(
        "search",
        "Many starts in the same rounds, or the paper's algorithms, which start at the moments of the "
        "first category, the most frequent one, or all of them pooled.",
        Unless("epsilon"),
    ),
    sizes: Literal["exact", "binned", "shared"] | None = option(
        None, "Size model: one by one, in bins, or in bins that all components share."
    ),
    priors: str | None = option(
        None,
        "NAME=VALUE with commas: size=1, pseudo-clients per component, over the size bins; "
        "category=0.001, pseudo-tables per category and component.",
        Unless("epsilon"),
    ),
    checkpoint: Path | None = also(CHECKPOINT, Unless("epsilon")),
    threads: int = THREADS,
    scheduler: str | None = SCHEDULER,
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Learn a mixture of Dirichlet-multinomials from a table of clients.

    The table's clients are played in this process: the fit sees sums over them. Several numbers of
    components are fitted in the same rounds; the one that held-out clients find likeliest is kept, and
    goes on with all clients. With `--held-out` a single number is scored, too. By default
    sizes are binned and the priors are 1 and 0.001; with `--method paper` sizes are exact, without
    priors. With `--epsilon` sums have noise, nobody is held out, and the file states the guarantee.

    Examples: `polyurn fit clients.csv --components 3 -o mdm.json`,
    `polyurn fit clients.csv --components 1:6 -o mdm.json`
    """
    from polyurn.commands.progress import learning_progress
    from polyurn.commands.views import put_learned
    from polyurn.server.fit_settings import few_clients
    from polyurn.server.fitting import HELD_OUT
    from polyurn.server.learning import learn, selects
    from polyurn.sources.clients import data_provenance, play, read_all
    from polyurn.storage.models import Saved, load_saved
    from polyurn.storage.provenance import PrivacyProvenance, Provenance

    numbers = component_numbers(components)
    begin = None if start is None else load_saved(start)
    cohort_size, sampling = drawn_cohort(cohort)
    prior = named_values(priors, Priors, "--priors")
    scored, budget = begin is None and selects(numbers, search.held_out), privacy.budget()
    _check_options(context, columns, several=selects(numbers), scored=scored, private=bool(budget))
    known = None if begin is None or table.is_dir() else begin.declared
    read = read_all(table, columns.reading(), columns.declared() or known)
    given = search.given(read.categories)
    clients = play(read, seed=seed, sampling=sampling, threads=threads, scheduler=scheduler)
    asked = _recorded(privacy.asked(clients), context, scored, read)
    n_fitted = cohort_size or read.shape[0]
    if numbers != "auto" and not scored and (few := few_clients(n_fitted, numbers)):
        say(few)
    if max_size is None:
        max_size = read.max_size if begin is None else max(read.max_size, begin.model.max_size)
        if begin is None or begin.model.max_size < max_size:
            say(f"max_size {max_size}, from the table; declare it with --max-size")
    of_method, _, moments = method.partition(":")
    given |= {"method": of_method, "moments": moments or "first", **budget}
    given["start"] = None if begin is None else begin.model.in_order_of(read.categories)
    kept: list[pu.Round] = []
    # The rounds of a selection are those of several mixtures.
    then = None if scored else kept.append
    try:
        with learning_progress(talk, given["max_rounds"], scored, bool(budget), then) as on_round:
            learned = learn(
                asked, numbers, n_categories=read.shape[1], max_size=max_size,
                cohort_size=cohort_size, sizes=sizes, size_prior=prior.size,
                category_prior=prior.category, rng=seed, on_round=on_round, at_once=False, **given,
            )  # fmt: skip
    except KeyboardInterrupt:
        spent = PrivacyProvenance.by(asked)
        begun = Provenance(**provenance_of(context, seed), privacy=spent)
        _keep_interrupted(kept[-1] if kept else None, begun, context, read.categories)
        raise typer.Exit(INTERRUPTED) from None
    # How many clients and points there are is private too.
    share = (search.held_out or HELD_OUT) if scored else None
    data = table.name if budget else data_provenance(read, held_out=share)
    provenance = Provenance.of(learned, data=data, **provenance_of(context, seed))
    put_learned(Saved(learned.mdm, read.categories, provenance), output, as_json=as_json)


def _check_options(
    context: typer.Context, columns: TableOptions, *, several: bool, scored: bool, private: bool
) -> None:
    """Refuse a method that a choice would not use, and what would be released without noise."""
    if scored:
        why = "several numbers of components" if several else "--held-out"
        refuse_options(context, ["method"], f"with {why}")
    if not private:
        return
    if columns.categories is None or context.params["max_size"] is None:
        raise ParameterError(
            "expected --categories and --max-size with --epsilon: what is taken from the table would "
            "be released without noise"
        )
    if context.params["sizes"] == "exact":
        raise ParameterError("expected --sizes binned or shared with --epsilon, got exact")


def _recorded(
    clients: "Aggregator", context: typer.Context, scored: bool, read: "ClientTable | PackedClients"
) -> "Aggregator":
    """The same clients, with a log of their sums if there is a folder for it."""
    folder = context.params["checkpoint"]
    if folder is None:
        return clients

    # A fit of one K with fewer rounds begins with the same rounds.
    no_matter = _NO_MATTER if scored else _NO_MATTER | {"max_rounds"}
    matter = {k: str(v) for k, v in context.params.items() if k not in no_matter}
    journal = pu.Journal(folder, {**matter, "histograms": read.digest})
    if len(journal):
        say(f"going on after {counted(len(journal), 'round')} from {folder}")
    return pu.ReplayAggregator(clients, journal)


def _keep_interrupted(
    last: "pu.Round | None", begun: "Provenance", context: typer.Context,
    categories: tuple[str, ...],
) -> None:  # fmt: skip
    """Write the parameters of the last round, if there are any and a file for them; say what is kept."""
    output, checkpoint = context.params["output"], context.params["checkpoint"]
    if last is None or last.mdm is None or output is None:
        again = f"repeat the command to go on from {checkpoint}"
        after = f" after round {last.number}" if last else ""
        say(f"interrupted{after}; {again if checkpoint else 'nothing was kept'}")
        return
    provenance = replace(begun, interrupted_after_round=last.number)
    pu.save(last.mdm, output, categories=categories, provenance=provenance)
    say(f"interrupted; the parameters after round {last.number} are in {output}")
