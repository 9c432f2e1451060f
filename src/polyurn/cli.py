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
from rich.text import Text

import polyurn
from polyurn import files
from polyurn.aggregate.local import LocalAggregator
from polyurn.client.histogram import Histograms
from polyurn.client.tables import observed_categories, table_histograms
from polyurn.counts import check_counts, client_sizes, drop_empty
from polyurn.demo import run_demo
from polyurn.errors import ParameterError, PolyurnError
from polyurn.server.fit import Round, fit
from polyurn.server.start import Moments
from polyurn.terminal import demo_record, demo_table, mdm_record, mdm_table, progress

INTERRUPTED = 130  # what shells report for a command ended by Ctrl-C

app = typer.Typer(
    name="polyurn",
    help="Learn what your federation looks like, then simulate it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
talk = Console(stderr=True, highlight=False)

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
Seed = Annotated[int, typer.Option(help="Seed of everything that is random.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write.")]


def main(arguments: list[str] | None = None) -> None:
    """Run the command; our own errors become one line and exit code 2."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        app(given, obj=shlex.join(["polyurn", *given]))
    except PolyurnError as error:
        message = " ".join(str(error).split())
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
    rounds: Annotated[int, typer.Option(help="Rounds of Algorithm 2.")] = 200,
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
        story = run_demo(n_clients=clients, n_rounds=rounds, rng=seed, on_round=on_round)
    if as_json:
        _print_json(demo_record(story))
        return
    Console(highlight=False).print(demo_table(story))
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
    rounds: Annotated[int, typer.Option(help="Rounds of Algorithm 2, T.")] = 200,
    cohort: Annotated[
        int | None, typer.Option(help="Clients per round; all of them by default.")
    ] = None,
    sampling: Annotated[
        Literal["fixed", "poisson"], typer.Option(help="How a cohort is drawn: fixed or poisson.")
    ] = "fixed",
    moments: Annotated[
        Moments, typer.Option(help="Start from the moments of: first, most_frequent or pooled.")
    ] = "pooled",
    sizes: Annotated[
        Literal["exact", "binned"], typer.Option(help="Sizes in bins or one by one: binned, exact.")
    ] = "binned",
    size_prior: Annotated[
        float, typer.Option(help="Pseudo-clients per component, over the size bins.")
    ] = 1.0,
    category_prior: Annotated[
        float, typer.Option(help="Pseudo-tables per category and component.")
    ] = 0.01,
    threads: Annotated[int, typer.Option(help="Threads.")] = 1,
    drop_empty: DropEmpty = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a mixture of Dirichlet-multinomials from a table of clients.

    The table's clients are played in this process: the fit sees sums over them. The defaults suit
    real data; `--moments first --sizes exact --size-prior 0 --category-prior 0` is the paper to the
    letter.

    Example: `polyurn fit clients.csv --components 3 -o mdm.json`
    """
    made = _made(context, seed)
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
            fit(
                aggregator,
                n_components=components,
                n_categories=read.shape[1],
                max_size=max_size,
                n_rounds=rounds,
                cohort_size=cohort,
                moments=moments,
                sizes=sizes,
                size_prior=size_prior,
                category_prior=category_prior,
                on_round=on_round,
            )
    except KeyboardInterrupt:
        _keep_interrupted(kept, output, read, made)
    last = kept[-1]
    if output is not None:
        files.save(last.mdm, output, categories=read.categories, made=made)
        _say(f"wrote {output}")
    if as_json:
        _print_json(
            {
                "n_clients": last.n_clients,
                "n_rounds": len(kept),
                "log_likelihoods": [r.log_likelihood for r in kept[1:]],
                **mdm_record(last.mdm, read.categories),
            }
        )
    elif output is None:
        Console(highlight=False).print(mdm_table(last.mdm, read.categories))


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
    saved = files.load_saved(mdm)
    counts = saved.mdm.sample(clients, rng=seed)
    if output is not None:
        files.write_histograms(
            counts, output, categories=saved.categories, made=_made(context, seed)
        )
        _say(f"wrote {clients:,} clients to {output}")
    elif not as_json:
        table = files.long_table(counts, categories=saved.categories)
        typer.echo("client,category,count")
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            typer.echo(",".join(map(str, row)))
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
        _print_json(result)
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
        Console(highlight=False).print(mdm_table(saved.mdm, saved.categories))


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
    return int(text) if text.isdigit() else tuple(name.strip() for name in text.split(","))


def _made(context: typer.Context, seed: int) -> dict[str, Any]:
    return {"seed": seed, "command": context.obj}


def _keep_interrupted(
    kept: list[Round], output: Path | None, read: Histograms, made: dict[str, Any]
) -> NoReturn:
    if not kept:
        _say("interrupted before the first round ended; nothing was kept")
    elif output is None:
        _say(f"interrupted after round {kept[-1].number}; nothing was kept (no --output)")
    else:
        made = {**made, "interrupted_after_round": kept[-1].number}
        files.save(kept[-1].mdm, output, categories=read.categories, made=made)
        _say(f"interrupted; the parameters after round {kept[-1].number} are in {output}")
    raise typer.Exit(INTERRUPTED)


# ------------------------------------------------------------------------------ showing


def _say(text: str) -> None:
    talk.print(text, soft_wrap=True)


def _print_json(record: dict[str, Any]) -> None:
    typer.echo(json.dumps(record))


def _mean(name: str, values: np.ndarray) -> dict[str, float]:
    spread = values.std(ddof=1) if len(values) > 1 else float("nan")
    return {
        name: float(values.mean()),
        f"{name}_standard_error": float(spread / len(values) ** 0.5),
    }
