"""`polyurn fit`: learn an MDM from a table whose clients are played in this process.

Parses, calls one library function, writes.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from polyurn.commands._shared.console import INTERRUPTED, print_json, say, show, talk
from polyurn.commands._shared.invocation import check_output, made_by, refuse_options, settings
from polyurn.commands._shared.options import (
    AsJson,
    Categories,
    Category,
    Checkpoint,
    Client,
    Cohort,
    Count,
    Delta,
    DropEmpty,
    Epsilon,
    Ledger,
    LedgerEpsilon,
    MaxSize,
    MaxUpload,
    Output,
    Patience,
    Rounds,
    Sampling,
    Scheduler,
    Seed,
    SizesOption,
    TableArgument,
    Threads,
    Tol,
    declared_categories,
)
from polyurn.commands._shared.private_fits import N_ROUNDS, private_budget
from polyurn.typed.records import to_record
from polyurn.wording.numbers import counted

if TYPE_CHECKING:
    from polyurn.server.results import Fit, Round
    from polyurn.storage.provenance import Made


def fit_command(
    context: typer.Context,
    table: TableArgument,
    components: Annotated[int, typer.Option(help="Number of components, K.")],
    output: Output = None,
    client: Client = None,
    category: Category = None,
    count: Count = None,
    categories: Categories = None,
    max_size: MaxSize = None,
    rounds: Rounds = 50,
    tol: Tol = 1e-3,
    patience: Patience = 3,
    cohort: Cohort = None,
    sampling: Sampling = "fixed",
    method: Annotated[
        Literal["search", "paper"],
        typer.Option(help="Many starts in the same rounds, or the paper's algorithms."),
    ] = "search",
    moments: Annotated[
        Literal["first", "most_frequent", "pooled"],
        typer.Option(help="Where the paper's method starts: moments of which category."),
    ] = "first",
    epsilon: Epsilon = None,
    delta: Delta = None,
    ledger: Ledger = None,
    ledger_epsilon: LedgerEpsilon = None,
    sizes: SizesOption = None,
    size_prior: Annotated[
        float | None, typer.Option(help="Pseudo-clients per component, over the size bins.")
    ] = None,
    category_prior: Annotated[
        float | None, typer.Option(help="Pseudo-tables per category and component.")
    ] = None,
    max_upload: MaxUpload = 50_000,
    checkpoint: Checkpoint = None,
    threads: Threads = 1,
    scheduler: Scheduler = None,
    drop_empty: DropEmpty = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a mixture of Dirichlet-multinomials from a table of clients.

    The table's clients are played in this process: the fit sees sums over them. Unless they are
    given, sizes and priors are binned, 1 and 0.001; for `--method paper` exact, and none. With
    `--epsilon` sums have noise, and the file states the guarantee.

    Example: `polyurn fit clients.csv --components 3 -o mdm.json`
    """
    from polyurn.client.layout import Columns
    from polyurn.commands._shared.checkpoints import recorded
    from polyurn.commands._shared.client_tables import Reading, largest_size
    from polyurn.commands._shared.packed_clients import clients_of, read_all
    from polyurn.commands._shared.progress import fit_progress
    from polyurn.server.fit import fit
    from polyurn.server.paper import fit_paper
    from polyurn.server.private.fitting import fit_private
    from polyurn.server.settings import few_clients
    from polyurn.storage.files import check_place
    from polyurn.storage.provenance import Made

    budget = private_budget(context, epsilon=epsilon, delta=delta)
    if budget is None:
        _check_options(context, method, cohort)
    made = Made(**made_by(context, seed))
    if output is not None:
        check_output(context, output)
        check_place(output)
    reading = Reading(say, Columns(client, category, count), drop_empty=drop_empty)
    read = read_all(table, reading, declared_categories(categories))
    aggregator = clients_of(read, seed, sampling, threads, scheduler)
    model = {"sizes": sizes, "size_prior": size_prior, "category_prior": category_prior}
    given: dict[str, Any] = {name: value for name, value in model.items() if value is not None}
    kept: list[Round] = []
    if few := few_clients(cohort or read.shape[0], [components]):
        say(few)
    try:
        most = rounds if budget is None else N_ROUNDS
        with fit_progress(talk, most, kept.append) as on_round:
            asked = recorded(aggregator, checkpoint, settings(context), read, say)
            common = {
                "n_components": components,
                "n_categories": read.shape[1],
                "max_size": largest_size(max_size, read, say),
                "on_round": on_round,
                **given,
            }
            if budget is not None:
                done = fit_private(asked, rng=seed, **budget, **common)
            elif method == "paper":
                done = fit_paper(
                    asked, n_rounds=rounds, moments=moments, cohort_size=cohort, **common
                )
            else:
                done = fit(
                    asked, max_rounds=rounds, cohort_size=cohort, tol=tol, patience=patience,
                    max_upload=max_upload, rng=seed, **common,
                )  # fmt: skip
    except KeyboardInterrupt:
        _keep_interrupted(kept, output, checkpoint, read.categories, made)
    for sentence in _sentences(done):
        say(sentence)
    # How many clients and points there are is private too.
    data = read.record if budget is None else table.name
    _write(done, replace(made, data=data), output, read.categories, as_json)


def _write(
    done: "Fit",
    made: "Made",
    output: Path | None,
    categories: tuple[str, ...] | None,
    as_json: bool,
) -> None:
    """The file, and what is shown."""
    from polyurn.commands._shared.fitted_mdm import mdm_record, mdm_table
    from polyurn.storage.models import save
    from polyurn.storage.provenance import PrivacyRecord

    privacy = PrivacyRecord.of(done.guarantee)
    if output is not None:
        made = replace(made, fit=done, privacy=privacy)
        save(done.mdm, output, categories=categories, made=made)
        say(f"wrote {output}")
    if as_json:
        shown = {**to_record(done), **mdm_record(done.mdm, categories)}
        print_json({**shown, "privacy": privacy.statement})
    elif output is None:
        show(mdm_table(done.mdm, categories))


def _check_options(context: typer.Context, method: str, cohort: int | None) -> None:
    """Refuse options that would have no effect."""
    if method == "paper":
        refuse_options(context, ["tol", "patience", "max_upload"], "with --method paper")
    else:
        refuse_options(context, ["moments"], "without --method paper")
    if cohort is None:
        refuse_options(context, ["sampling"], "without --cohort")


def _sentences(done: "Fit") -> list[str]:
    """What there is to say about a fit besides its parameters."""
    from polyurn.commands._shared.fitted_mdm import component_sentences
    from polyurn.privacy.statement import in_words

    said = [f"{counted(done.n_rounds, 'round')}; {done.stopped}"]
    if done.guarantee is not None:
        said = [f"stopped {done.stopped}", in_words(done.guarantee)]
    if done.n_agreeing is not None and done.mdm.n_components > 1:
        said.append(f"starts that ended at this optimum: {done.n_agreeing}")
    return said + component_sentences(done)


def _keep_interrupted(
    kept: list["Round"],
    output: Path | None,
    checkpoint: Path | None,
    categories: tuple[str, ...],
    made: "Made",
) -> NoReturn:
    """Write the parameters of the last round, if there are any and a place for them; then end."""
    from polyurn.storage.models import save

    last = kept[-1] if kept else None
    again = f"repeat the command to go on from {checkpoint}" if checkpoint else "nothing was kept"
    if last is None or last.mdm is None:
        say(f"interrupted before there were any parameters; {again}")
    elif output is None:
        why = "" if checkpoint else " (no --output)"
        say(f"interrupted after round {last.number}; {again}{why}")
    else:
        made = replace(made, interrupted_after_round=last.number)
        save(last.mdm, output, categories=categories, made=made)
        say(f"interrupted; the parameters after round {last.number} are in {output}")
    raise typer.Exit(INTERRUPTED)
