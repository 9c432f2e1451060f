"""The command line: parse, call one library function, write.

Data go to stdout or `-o`, talk to stderr. What results look like is `terminal.py`.
"""

import json
import shlex
import sys
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import polyurn
from polyurn import files
from polyurn.aggregate.local import LocalAggregator
from polyurn.client.histogram import Histograms
from polyurn.demo import run_demo
from polyurn.errors import ParameterError, PolyurnError
from polyurn.inputs import largest_size, read_clients, recorded
from polyurn.options import (
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
from polyurn.server.fit import Method, Round, fit
from polyurn.server.select import select
from polyurn.server.start import Moments
from polyurn.terminal import (
    demo_record,
    demo_sentences,
    demo_table,
    fit_record,
    fit_sentences,
    mdm_record,
    mdm_table,
    mean_record,
    progress,
    selection_progress,
    selection_record,
    selection_table,
)

INTERRUPTED = 130  # what shells report for a command ended by Ctrl-C

app = typer.Typer(
    name="polyurn",
    help="Learn what your federation looks like, then simulate it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
# Names and paths are the user's: they are shown as they are.
AS_IT_IS: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
talk = Console(stderr=True, **AS_IT_IS)


def main(arguments: list[str] | None = None) -> None:
    """Run the command; our own errors become one line and exit code 2."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        app(given, obj=shlex.join(["polyurn", *given]))
    except (PolyurnError, MemoryError) as error:
        cause = "not enough memory: " if isinstance(error, MemoryError) else ""
        message = cause + " ".join(str(error).split())
        talk.print(Text("error: ", style="bold red") + Text(message), soft_wrap=True)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"polyurn {polyurn.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command("demo")
def demo_command(
    clients: Annotated[int, typer.Option(help="How many clients to play.")] = 5_000,
    rounds: Annotated[int, typer.Option(help="Rounds that may be asked for.")] = 50,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Hide a mixture among clients who hold digits, and learn it back from sums.

    Example: `polyurn demo`
    """
    _say(
        f"{clients:,} clients hold handwritten digits; who holds which is drawn from a hidden "
        "mixture of three components."
    )
    with progress(talk, rounds) as on_round:
        story = run_demo(n_clients=clients, max_rounds=rounds, rng=seed, on_round=on_round)
    if as_json:
        _print_json(demo_record(story))
        return
    _show(demo_table(story))
    for sentence in demo_sentences(story):
        _say(sentence)


@app.command("fit")
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
        Method, typer.Option(help="Many starts in the same rounds, or the paper's algorithms.")
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
    made = _made(context, seed)
    if output is not None:
        files.check_place(output)
    read = read_clients(
        table, client, category, count, declared_categories(categories), drop_empty, _say
    )
    aggregator = LocalAggregator(read.counts, rng=seed, sampling=sampling, n_threads=threads)
    kept: list[Round] = []
    try:
        with progress(talk, rounds, kept.append) as on_round:
            done = fit(
                recorded(aggregator, checkpoint, _settings(context), _say),
                n_components=components,
                n_categories=read.shape[1],
                max_size=largest_size(max_size, read, _say),
                method=method,
                max_rounds=rounds,
                cohort_size=cohort,
                tol=tol,
                max_upload=max_upload,
                sizes=sizes,
                size_prior=size_prior,
                category_prior=category_prior,
                moments=moments,
                rng=seed,
                on_round=on_round,
            )
    except KeyboardInterrupt:
        _keep_interrupted(kept, output, read, made)
    for sentence in fit_sentences(done):
        _say(sentence)
    if output is not None:
        files.save(done.mdm, output, categories=read.categories, made=made)
        _say(f"wrote {output}")
    if as_json:
        _print_json({**fit_record(done), **mdm_record(done.mdm, read.categories)})
    elif output is None:
        _show(mdm_table(done.mdm, read.categories))


@app.command("select")
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
    made = _made(context, seed)
    if output is not None:
        files.check_place(output)
    numbers = component_numbers(components)
    read = read_clients(
        table, client, category, count, declared_categories(categories), drop_empty, _say
    )
    aggregator = LocalAggregator(read.counts, rng=seed, sampling=sampling, n_threads=threads)
    try:
        with selection_progress(talk) as on_round:
            choice = select(
                recorded(aggregator, checkpoint, _settings(context), _say),
                numbers,
                n_categories=read.shape[1],
                max_size=largest_size(max_size, read, _say),
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
        _say(f"interrupted; {kept}")
        raise typer.Exit(INTERRUPTED) from None
    _say(f"{choice.n_components} components, by {choice.n_held_out:,} held-out clients")
    if output is not None:
        files.save(choice.mdm, output, categories=read.categories, made=made)
        _say(f"wrote {output}")
    if as_json:
        _print_json({**selection_record(choice), **mdm_record(choice.mdm, read.categories)})
    else:
        _show(selection_table(choice))


@app.command("sample")
def sample_command(
    context: typer.Context,
    mdm: Annotated[Path, typer.Argument(metavar="MDM", help="File that `fit` wrote.")],
    clients: Annotated[int, typer.Option(help="How many clients to draw.")],
    output: Output = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw simulated clients: a long table (client, category, count).

    Example: `polyurn sample mdm.json --clients 500 -o clients.parquet`
    """
    if clients < 1:
        raise ParameterError(f"expected at least one client, got {clients}")
    if output is not None:
        files.check_table_place(output)
    saved = files.load_saved(mdm)
    counts = saved.mdm.sample(clients, rng=seed)
    if output is not None:
        files.write_histograms(
            counts, output, categories=saved.categories, made=_made(context, seed)
        )
        _say(f"wrote {clients:,} clients to {output}")
    elif not as_json:
        typer.echo(files.csv_text(counts, categories=saved.categories), nl=False)
    if as_json:
        _print_json({"n_clients": clients, "seed": seed, "counts": counts.tolist()})


@app.command("score")
def score_command(
    mdm: Annotated[Path, typer.Argument(metavar="MDM", help="File that `fit` wrote.")],
    table: TableArgument,
    client: Client = "client",
    category: Category = "category",
    count: Count = None,
    drop_empty: DropEmpty = False,
    as_json: AsJson = False,
) -> None:
    """Mean log-likelihood of a table's clients under an MDM.

    Example: `polyurn score mdm.json held-out.csv`
    """
    saved = files.load_saved(mdm)
    declared = saved.categories or saved.mdm.n_categories
    read = read_clients(table, client, category, count, declared, drop_empty, _say)
    result = {
        "n_clients": read.shape[0],
        **mean_record("log_likelihood", saved.mdm.logpmf(read.counts)),
        **mean_record("log_likelihood_given_size", saved.mdm.logpmf_given_size(read.counts)),
    }
    if as_json:
        _print_json({name: value if isfinite(value) else None for name, value in result.items()})
        return
    for name, value in result.items():
        typer.echo(f"{name:<42} {value:,}" if name == "n_clients" else f"{name:<42} {value:.4f}")


@app.command("show")
def show_command(
    mdm: Annotated[Path, typer.Argument(metavar="MDM", help="File that `fit` wrote.")],
    as_json: AsJson = False,
) -> None:
    """The components of an MDM as a table.

    Example: `polyurn show mdm.json`
    """
    saved = files.load_saved(mdm)
    if as_json:
        _print_json(mdm_record(saved.mdm, saved.categories))
    else:
        _show(mdm_table(saved.mdm, saved.categories))


# ------------------------------------------------------------------------------ writing


def _settings(context: typer.Context) -> dict[str, object]:
    return {"command": context.info_name, **context.params}


def _made(context: typer.Context, seed: int) -> dict[str, Any]:
    return {"seed": seed, "command": context.obj}


def _keep_interrupted(
    kept: list[Round], output: Path | None, read: Histograms, made: dict[str, Any]
) -> NoReturn:
    last = kept[-1] if kept else None
    if last is None or last.mdm is None:
        _say("interrupted before there were any parameters; nothing was kept")
    elif output is None:
        _say(f"interrupted after round {last.number}; nothing was kept (no --output)")
    else:
        made = {**made, "interrupted_after_round": last.number}
        files.save(last.mdm, output, categories=read.categories, made=made)
        _say(f"interrupted; the parameters after round {last.number} are in {output}")
    raise typer.Exit(INTERRUPTED)


# ------------------------------------------------------------------------------ showing


def _say(text: str) -> None:
    talk.print(text, soft_wrap=True)


def _show(table: Table) -> None:
    Console(**AS_IT_IS).print(table)


def _print_json(record: dict[str, Any]) -> None:
    typer.echo(json.dumps(record, allow_nan=False))
