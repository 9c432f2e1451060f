"""The command line: parse, call one library function, write.

Data go to stdout or `-o`, talk to stderr. What results look like is `terminal.py`.
"""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import polyurn
from polyurn import files
from polyurn.aggregate.local import LocalAggregator
from polyurn.client.histogram import Histograms
from polyurn.client.tables import observed_categories, table_histograms
from polyurn.counts import check_counts, client_sizes, drop_empty
from polyurn.demo import run_demo
from polyurn.errors import ParameterError, PolyurnError
from polyurn.server.fit import Method, Round, fit
from polyurn.server.start import Moments
from polyurn.terminal import (
    demo_record,
    demo_table,
    fit_record,
    fit_sentences,
    mdm_record,
    mdm_table,
    progress,
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


def _seed(seed: int) -> int:
    if seed < 0:
        raise ParameterError(f"expected a seed of at least 0, got {seed}")
    return seed


TableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="CSV or Parquet: (client, category, count), or one row per point."
    ),
]
Client = Annotated[str, typer.Option(help="Column with the client's id.")]
Category = Annotated[str, typer.Option(help="Column with the category.")]
Categories = Annotated[
    str | None,
    typer.Option(help="Declared categories: a number C (0 to C-1) or names, comma-separated."),
]
DropEmpty = Annotated[bool, typer.Option("--drop-empty", help="Leave out clients without points.")]
Seed = Annotated[int, typer.Option(callback=_seed, help="Seed of everything that is random.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write.")]


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
    _say(
        f"Log-likelihood per client: {story.true_log_likelihood:.4f} under the true parameters, "
        f"{story.learned_log_likelihood:.4f} under the learned ones."
    )
    _say(
        f"In each of {story.fit.n_rounds} rounds a client sent at most {story.n_numbers} numbers, "
        f"and the server saw only their sum over {story.n_clients:,} clients."
    )


@app.command("fit")
def fit_command(
    context: typer.Context,
    table: TableArgument,
    components: Annotated[int, typer.Option(help="Number of components, K.")],
    output: Output = None,
    client: Client = "client",
    category: Category = "category",
    count: Annotated[
        str | None, typer.Option(help="Column with counts; 'count' is used when it is there.")
    ] = None,
    categories: Categories = None,
    max_size: Annotated[
        int | None, typer.Option(help="Declared largest number of points of a client.")
    ] = None,
    rounds: Annotated[
        int, typer.Option(help="How often clients may be asked; the paper's method always does.")
    ] = 50,
    tol: Annotated[
        float, typer.Option(help="Stop when less is left to gain, in nats per client.")
    ] = 1e-3,
    cohort: Annotated[
        int | None, typer.Option(help="Clients per round; all of them by default.")
    ] = None,
    sampling: Annotated[
        Literal["fixed", "poisson"], typer.Option(help="How a cohort is drawn: fixed or poisson.")
    ] = "fixed",
    method: Annotated[
        Method, typer.Option(help="Many starts in the same rounds, or the paper's algorithms.")
    ] = "search",
    moments: Annotated[
        Moments, typer.Option(help="Where the paper's method starts: moments of which category.")
    ] = "first",
    sizes: Annotated[
        Literal["exact", "binned", "shared"] | None,
        typer.Option(help="Sizes one by one, in bins, or in bins that all components share."),
    ] = None,
    size_prior: Annotated[
        float | None, typer.Option(help="Pseudo-clients per component, over the size bins.")
    ] = None,
    category_prior: Annotated[
        float | None, typer.Option(help="Pseudo-tables per category and component.")
    ] = None,
    max_upload: Annotated[
        int, typer.Option(help="Numbers that a client may send in a round.")
    ] = 50_000,
    threads: Annotated[int, typer.Option(help="Threads.")] = 1,
    drop_empty: DropEmpty = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a mixture of Dirichlet-multinomials from a table of clients.

    The table's clients are played in this process: the fit sees sums over them. Sizes and priors
    are the method's own unless they are given: bins, 1 and 0.001 for the search; single sizes and
    none for `--method paper`.

    Example: `polyurn fit clients.csv --components 3 -o mdm.json`
    """
    made = _made(context, seed)
    if output is not None:
        files.check_place(output)
    read = _read(table, client, category, count, _declared(categories), drop_empty)
    aggregator = LocalAggregator(
        read.counts,
        rng=seed,
        sampling=sampling,
        n_threads=threads,
    )
    if max_size is None:
        max_size = int(client_sizes(read.counts).max())
        _say(f"max_size {max_size}, from the table; declare it with --max-size")
    kept: list[Round] = []
    try:
        with progress(talk, rounds, kept.append) as on_round:
            done = fit(
                aggregator,
                n_components=components,
                n_categories=read.shape[1],
                max_size=max_size,
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
    count: Annotated[
        str | None, typer.Option(help="Column with counts; 'count' is used when it is there.")
    ] = None,
    drop_empty: DropEmpty = False,
    as_json: AsJson = False,
) -> None:
    """Mean log-likelihood of a table's clients under an MDM.

    Example: `polyurn score mdm.json held-out.csv`
    """
    saved = files.load_saved(mdm)
    declared = saved.categories or saved.mdm.n_categories
    read = _read(table, client, category, count, declared, drop_empty)
    result = {
        "n_clients": read.shape[0],
        **_mean("log_likelihood", saved.mdm.logpmf(read.counts)),
        **_mean("log_likelihood_given_size", saved.mdm.logpmf_given_size(read.counts)),
    }
    if as_json:
        _print_json({name: value if np.isfinite(value) else None for name, value in result.items()})
    else:
        for name, value in result.items():
            typer.echo(
                f"{name:<42} {value:,}" if isinstance(value, int) else f"{name:<42} {value:.4f}"
            )


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


# ------------------------------------------------------------------------------ reading


def _read(
    path: Path,
    client: str,
    category: str,
    count: str | None,
    declared: int | tuple[str, ...] | None,
    drop: bool,
) -> Histograms:
    table = files.read_table(path)
    if count is None and "count" in table.column_names:
        count = "count"
    if declared is None:
        declared = observed_categories(table, category=category)
        n = declared if isinstance(declared, int) else len(declared)
        _say(f"{n} categories, from the table; declare them with --categories")
    read = table_histograms(
        table, categories=declared, client=client, category=category, count=count
    )
    if drop:
        counts, kept = drop_empty(read.counts)
        _say(f"left out {read.shape[0] - len(kept)} clients without points")
        read = Histograms(counts, read.clients[kept], read.categories)  # type: ignore[arg-type]
    check_counts(read.counts)
    return read


def _declared(text: str | None) -> int | tuple[str, ...] | None:
    if text is None:
        return None
    return int(text) if text.isdecimal() else tuple(name.strip() for name in text.split(","))


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


def _mean(name: str, values: np.ndarray) -> dict[str, float]:
    spread = values.std(ddof=1) if len(values) > 1 and np.isfinite(values).all() else np.nan
    return {
        name: float(values.mean()),
        f"{name}_standard_error": float(spread / len(values) ** 0.5),
    }
