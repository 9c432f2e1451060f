"""`polyurn fit` and `polyurn select`: learn an MDM from a table whose clients are played here.

Parses, calls one library function, writes.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from polyurn.aggregate.local import LocalAggregator
from polyurn.client.histogram import Histograms
from polyurn.commands._shared.console import (
    INTERRUPTED,
    check_output,
    made_by,
    print_json,
    say,
    settings,
    show,
    talk,
)
from polyurn.commands._shared.inputs import data_record, largest_size, read_clients, recorded
from polyurn.commands._shared.options import (
    AsJson,
    Categories,
    Category,
    Checkpoint,
    Client,
    Cohort,
    Count,
    DropEmpty,
    MaxSize,
    MaxUpload,
    Output,
    Rounds,
    Sampling,
    Seed,
    SizesOption,
    TableArgument,
    Threads,
    Tol,
    component_numbers,
    declared_categories,
)
from polyurn.commands._shared.terminal import (
    fit_sentences,
    mdm_record,
    mdm_table,
    progress,
    selection_progress,
    selection_sentences,
    selection_table,
)
from polyurn.server.fit import fit
from polyurn.server.paper import Moments, fit_paper
from polyurn.server.records import fit_record, selection_record
from polyurn.server.results import Round
from polyurn.server.select import select
from polyurn.storage import files


def fit_command(
    context: typer.Context,
    table: TableArgument,
    components: Annotated[int, typer.Option(help="Number of components, K.")],
    output: Output = None,
    client: Client = "client",
    category: Category = "category",
    count: Count = None,
    categories: Categories = None,
    max_size: MaxSize = None,
    rounds: Rounds = 50,
    tol: Tol = 1e-3,
    cohort: Cohort = None,
    sampling: Sampling = "fixed",
    method: Annotated[
        Literal["search", "paper"],
        typer.Option(help="Many starts in the same rounds, or the paper's algorithms."),
    ] = "search",
    moments: Annotated[
        Moments, typer.Option(help="Where the paper's method starts: moments of which category.")
    ] = "first",
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
    drop_empty: DropEmpty = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a mixture of Dirichlet-multinomials from a table of clients.

    The table's clients are played in this process: the fit sees sums over them. Unless they are
    given, sizes and priors are binned, 1 and 0.001; for `--method paper` exact, and none.

    Example: `polyurn fit clients.csv --components 3 -o mdm.json`
    """
    made = made_by(context, seed)
    if output is not None:
        check_output(context, output)
        files.check_place(output)
    read = read_clients(
        table, client, category, count, declared_categories(categories), drop_empty, say
    )
    aggregator = LocalAggregator(read.counts, rng=seed, sampling=sampling, n_threads=threads)
    model = {"sizes": sizes, "size_prior": size_prior, "category_prior": category_prior}
    given: dict[str, Any] = {name: value for name, value in model.items() if value is not None}
    kept: list[Round] = []
    try:
        with progress(talk, rounds, kept.append) as on_round:
            asked = recorded(aggregator, checkpoint, settings(context), read, say)
            common = {
                "n_components": components,
                "n_categories": read.shape[1],
                "max_size": largest_size(max_size, read, say),
                "cohort_size": cohort,
                "on_round": on_round,
                **given,
            }
            if method == "paper":
                done = fit_paper(asked, n_rounds=rounds, moments=moments, **common)
            else:
                done = fit(
                    asked, max_rounds=rounds, tol=tol, max_upload=max_upload, rng=seed, **common
                )
    except KeyboardInterrupt:
        _keep_interrupted(kept, output, checkpoint, read, made)
    for sentence in fit_sentences(done):
        say(sentence)
    if output is not None:
        made = {**made, "data": data_record(table, read), "fit": fit_record(done)}
        files.save(done.mdm, output, categories=read.categories, made=made)
        say(f"wrote {output}")
    if as_json:
        print_json({**fit_record(done), **mdm_record(done.mdm, read.categories)})
    elif output is None:
        show(mdm_table(done.mdm, read.categories))


def select_command(
    context: typer.Context,
    table: TableArgument,
    components: Annotated[
        str, typer.Option(help="Numbers of components: 1:6, or 2,4,8, or auto.")
    ] = "1:6",
    output: Output = None,
    client: Client = "client",
    category: Category = "category",
    count: Count = None,
    categories: Categories = None,
    max_size: MaxSize = None,
    held_out: Annotated[
        float, typer.Option(help="Share of the clients that scores and is never fitted.")
    ] = 0.2,
    rounds: Rounds = 50,
    tol: Tol = 1e-3,
    cohort: Cohort = None,
    sampling: Sampling = "fixed",
    sizes: SizesOption = None,
    max_upload: MaxUpload = 50_000,
    checkpoint: Checkpoint = None,
    threads: Threads = 1,
    drop_empty: DropEmpty = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Choose the number of components by the likelihood of held-out clients.

    All are fitted in the same rounds; the smallest within one standard error of the best is kept.

    Example: `polyurn select clients.csv --components 1:6 -o mdm.json`
    """
    made = made_by(context, seed)
    if output is not None:
        check_output(context, output)
        files.check_place(output)
    numbers = component_numbers(components)
    read = read_clients(
        table, client, category, count, declared_categories(categories), drop_empty, say
    )
    aggregator = LocalAggregator(read.counts, rng=seed, sampling=sampling, n_threads=threads)
    try:
        with selection_progress(talk) as on_round:
            choice = select(
                recorded(aggregator, checkpoint, settings(context), read, say),
                numbers,
                n_categories=read.shape[1],
                max_size=largest_size(max_size, read, say),
                held_out=held_out,
                max_rounds=rounds,
                cohort_size=cohort,
                tol=tol,
                max_upload=max_upload,
                sizes=sizes or "binned",
                rng=seed,
                on_round=on_round,
            )
    except KeyboardInterrupt:
        kept = (
            f"repeat the command to go on from {checkpoint}" if checkpoint else "nothing was kept"
        )
        say(f"interrupted; {kept}")
        raise typer.Exit(INTERRUPTED) from None
    for sentence in selection_sentences(choice):
        say(sentence)
    if output is not None:
        made = {**made, "data": data_record(table, read), "selection": selection_record(choice)}
        files.save(choice.mdm, output, categories=read.categories, made=made)
        say(f"wrote {output}")
    if as_json:
        print_json({**selection_record(choice), **mdm_record(choice.mdm, read.categories)})
    else:
        show(selection_table(choice))


def _keep_interrupted(
    kept: list[Round],
    output: Path | None,
    checkpoint: Path | None,
    read: Histograms,
    made: dict[str, Any],
) -> NoReturn:
    last = kept[-1] if kept else None
    again = f"repeat the command to go on from {checkpoint}" if checkpoint else "nothing was kept"
    if last is None or last.mdm is None:
        say(f"interrupted before there were any parameters; {again}")
    elif output is None:
        why = "" if checkpoint else " (no --output)"
        say(f"interrupted after round {last.number}; {again}{why}")
    else:
        made = {**made, "interrupted_after_round": last.number}
        files.save(last.mdm, output, categories=read.categories, made=made)
        say(f"interrupted; the parameters after round {last.number} are in {output}")
    raise typer.Exit(INTERRUPTED)
