"""Command lines: every command with options that are foreign, out of range, contradictory or idle.

A case begins with a command that works, in a folder with all that it reads, and changes one to three of
its words. An option that can have no effect has to be refused: whoever gave it expected one.
"""

import os
from dataclasses import dataclass

import numpy as np

from fuzz.case import Case, Ran, chance, one_of
from fuzz.material import some

WHOLE = (
    "0", "-1", "1", "2", "3", "7", "1000000", "2147483648", "9223372036854775807", "9223372036854775808",
    "100000000000000000000", "1.5", "1e3", "", " ", "x", "nan", "inf", "0x10", "1_0", "٣", "--", "True",
    "2,3", "9" * 5000,
)  # fmt: skip
# How often something is done: many times is what the user asked for, and takes its time.
_REPEATED = (
    "0",
    "-1",
    "1",
    "2",
    "3",
    "9223372036854775808",
    "100000000000000000000",
    "1.5",
    "",
    "x",
    "nan",
)
SEEDS = ("0", "1", "42", "-1", "4294967296", "18446744073709551616", "9" * 40, "1.0", "", "x")
REAL = (
    "0", "-1", "0.5", "1", "1e-300", "1e300", "nan", "inf", "-inf", "", "x", "1,5", "1e400",
    "-0.0", "0.1%",
)  # fmt: skip
NAMES = (
    "category,client",
    "category,count",
    "income,client",
    "category,",
    "category,category",
    "client",
    "category",
    "count",
    "Client",
    "nothing",
    "",
    " ",
    "--count",
    "a\nb",
    "\x1b[31m",
    "é",
)
CATEGORIES = (
    "3", "0", "-1", "2", "1000", "1000000000", "99999999999999999999", "apple,pear,plum", "apple,pear",
    "apple,pear,plum,plum", "plum,pear,apple,fig", ",", "", " ", "apple", "Apple,Pear,Plum", "３",
    "a\x1b[31m,b", "apple;pear;plum", "1:3", "apple,,plum", "0,1,2", "²",
)  # fmt: skip
PLACES = (
    "clients.csv", "mdm.json", "nothing.csv", "nothing.json", ".", "", "runs", "labels.csv", "clients",
    "clients.txt", "comparison.json", "sweep.toml", "points.npz", "checkpoint", "missing/clients.csv",
    "clients.csv/inner.csv", "partition.json", "partition.parquet", "/dev/null", "/dev/zero",
    "a" * 300 + ".csv",
    "nul\x00.csv", os.fsdecode(b"caf\xe9.csv"), "clients.csv.gz", "runs/runs.jsonl", "~/x.csv",
    "-", "records.csv",
    "mdm=mdm.json", "=", "x=", "=mdm.json", "simulated.parquet", "selected.json", "plain.json", "~",
)  # fmt: skip
OUTPUTS = (
    "out.json", "out.csv", "out.parquet", "out.html", "out.tsv", "out.csv.gz", "out", "out.txt",
    "out.JSON",
    "missing/out.json", "missing/out.csv", ".", "", "runs", "clients.csv", "mdm.json", "labels.csv",
    "held-out.csv", "simulated.csv", "/dev/null", "/dev/full", "a" * 300 + ".json", "nul\x00.json",
    os.fsdecode(b"caf\xe9.json"), os.fsdecode(b"caf\xe9.html"), "clients.csv/out.json",
    "../../nowhere/out.json",
    "./clients.csv", "comparison.json", "sweep.toml", "points.npz", "é.json", "-", "out.gz",
    ".json", ".csv",
)  # fmt: skip
_TITLES = (
    "",
    "x",
    "<script>alert(1)</script>",
    os.fsdecode(b"caf\xe9"),
    "a\nb",
    "\x1b[31m",
    "x" * 5000,
    "é\u202e",
)
_BINS = (
    "0:50:10",
    "0:50",
    "50:0:1",
    "0:50:0",
    "0:50:-1",
    "nan:5:1",
    "0:inf:1",
    "0:1e9:1e-9",
    "::",
    "x:y:z",
    "quantiles:3",
    "5",
    "0,10,inf",
    "-inf,10,inf",
    "10,0",
    "0,0,1",
    "nan,1",
    "x",
    "",
    "0",
    ",",
    "0,10",
    "0;10;20",
    "1e400,2",
    "0,inf,inf",
)
_SETTINGS = (
    *(f"tol={value}" for value in REAL),
    *(f"patience={n}" for n in _REPEATED),
    "max_upload=9",
    *(f"max_upload={n}" for n in WHOLE),
    "tol=1,patience=2",
    "tol",
    "=",
    "tol=1,",
    "x=1",
    "tol=1=2",
    "",
)
_PRIORS = (
    *(f"size={v}" for v in REAL),
    *(f"category={v}" for v in REAL),
    "size=1,category=0",
    "x=1",
)
_SHARES = ("0", "1", "0.2", "-0.1", "1.1", "nan", "0.0001", "0.9999", "inf", "x", "20%")

_COLUMNS = {"--client": NAMES, "--category": NAMES, "--count": NAMES}
_EVERY = {"--json": None, "--quiet": None, "--help": None, "-q": None}
_SEARCH = {
    "--components": (
        "1",
        "2",
        "3",
        "0",
        "-1",
        "19",
        "20",
        "21",
        "1000000",
        "1.5",
        "x",
        "",
        "1:3",
        "9" * 30,
    ),
    "--categories": CATEGORIES,
    "--max-size": WHOLE,
    "--rounds": _REPEATED,
    "--search": _SETTINGS,
    "--cohort": (
        "1",
        "5",
        "20",
        "21",
        "0",
        "-1",
        "1000000",
        "1.5",
        "x",
        "",
        "poisson:5",
        "poisson:",
        "fixed:5",
        "poisson:x",
        "5:poisson",
    ),
    "--sizes": ("exact", "binned", "shared", "other", ""),
    "--checkpoint": (
        "kept",
        "checkpoint",
        "clients.csv",
        "runs",
        ".",
        "",
        "clients.csv/kept",
        "a" * 300,
    ),
    "--threads": ("1", "2", "0", "-1", "1.5", "x", "100000"),
    "--drop-empty": None,
    "--seed": SEEDS,
    **_COLUMNS,
}


@dataclass(frozen=True)
class Command:
    """A command that works, and what can be done to it.

    Attributes
    ----------
    words : tuple of str
        The command without options that may be left out.
    options : dict of str to tuple of str, or None
        The values that an option is given; None for a flag.
    idle : tuple of tuple of str
        Options that can have no effect with `words`, so that they are refused.
    """

    words: tuple[str, ...]
    options: dict[str, tuple[str, ...] | None]
    idle: tuple[tuple[str, ...], ...] = ()


_COMMANDS = (
    Command(
        ("features", "records.csv", "--category", "category"),
        {
            "--category": (*NAMES, "client,category"), "--candidates": (*NAMES, "income,client", ","),
            "--proxy": PLACES,
            "--bins": WHOLE, "--range": ("income=0:9", "income=9:0", "x=0:1", "=", "income", "a=b:c",
                "income=nan:1", "income=0:inf"), "--seed": SEEDS, "--client": NAMES,
            "--count": NAMES,
        },
    ),
    Command(
        ("histogram", "records.csv", "--bins", "0:50:10"),
        {
            "--output": OUTPUTS, "--categories": CATEGORIES, "--bins": _BINS,
            "--cap": WHOLE, "--seed": SEEDS,
            **_COLUMNS,
        },
    ),
    Command(
        ("histogram", "clients.csv"),
        {"--output": OUTPUTS, "--categories": CATEGORIES, "--cap": WHOLE, "--seed": SEEDS,
            **_COLUMNS},
    ),
    Command(
        ("fit", "clients.csv", "--components", "2", "--rounds", "2"),
        {
            **_SEARCH, "--output": OUTPUTS, "--priors": _PRIORS,
            "--method": ("search", "paper", "paper:pooled", "paper:most_frequent", "paper:x", "x"),
        },
    ),
    Command(
        ("fit", "clients.csv", "--components", "2", "--rounds", "2", "--method", "paper"),
        {"--output": OUTPUTS, "--priors": _PRIORS,
            "--sizes": ("exact", "binned", "shared")},
        idle=(("--search", "patience=7"), ("--search", "tol=0.5"), ("--search", "max_upload=40000")),
    ),
    Command(
        ("fit", "clients.csv", "--components", "1:2", "--rounds", "3"),
        {
            **_SEARCH, "--output": OUTPUTS, "--held-out": _SHARES,
            "--components": ("1:2", "2,1", "auto", "1", "0:2", "3:1", "1,1", "x", "", "1:2:3",
                "1:", "-1:2", "1:1000000", "1:99999999999", ","),
        },
    ),
    Command(("show", "mdm.json"), {}),
    Command(("score", "held-out.csv", "mdm.json"), {"--drop-empty": None, **_COLUMNS}),
    Command(
        ("sample", "mdm.json", "--clients", "5"),
        {"--clients": WHOLE, "--output": OUTPUTS, "--seed": SEEDS},
    ),
    Command(
        ("partition", "labels.csv", "simulated.csv"),
        {
            "--output": OUTPUTS, "--category": ("label", "client", "x", ""),
                "--categories": CATEGORIES,
            "--replace": None, "--no-replace": None, "--shortfall": ("reuse", "refuse", "resample", "x"),
            "--cover": None, "--test": _SHARES, "--drop-empty": None, "--drop-missing": None,
            "--seed": SEEDS, **_COLUMNS,
        },
        idle=(("--match", "rank"),),
    ),
    Command(
        ("partition", "labels.csv", "mdm.json", "--cover"),
        {"--output": OUTPUTS, "--categories": CATEGORIES, "--seed": SEEDS,
            "--category": ("label", "x")},
        idle=(
            ("--client", "x"), ("--count", "x"), ("--drop-empty",), ("--no-replace",),
            ("--shortfall", "refuse"), ("--categories", "3"),
        ),
    ),
    Command(
        ("compare", "held-out.csv", "mdm=mdm.json", "--draws", "splits=100", "--folds", "0"),
        {
            "--output": OUTPUTS, "--fitted": PLACES, "--categories": CATEGORIES,
            "--draws": ("splits=100", "splits=0,clients=12", "splits=99", "splits=-1", "splits", "x=1",
                "splits=1e3", "clients=0", "clients=9" + "9" * 30, "max_clients=7", "max_clients=20"),
                "--folds": ("0", "1", "2", "13", "-1", "1000000", "x"),
            "--drop-empty": None, "--drop-missing": None,
            "--seed": SEEDS, **_COLUMNS,
        },
        idle=(("--true", "x"), ("--metric", "loss")),
    ),
    Command(
        ("compare", "held-out.csv", "other=simulated.csv", "--draws", "splits=100", "--folds", "0"),
        {"--output": OUTPUTS, "--categories": CATEGORIES},
        idle=(("--draws", "clients=20"), ("--true", "x"), ("--metric", "loss")),
    ),
    Command(
        ("compare", "runs"),
        {"--true": ("true", "iid", "x", ""), "--metric": ("accuracy", "loss", "x", "")},
        idle=(
            ("--client", "x"), ("--seed", "3"), ("--folds", "3"), ("--output", "out.json"),
                ("--draws", "splits=200"),
            ("--drop-empty",), ("--categories", "3"), ("--fitted", "clients.csv"),
        ),
    ),
    Command(
        ("report", "mdm.json", "-o", "out.html"),
        {
            "--output": OUTPUTS, "--title": _TITLES, "--true": ("true", "x", ""),
                "--metric": ("accuracy", "x", ""),
            "--categories": CATEGORIES, "--drop-empty": None, "--drop-missing": None, "--seed": SEEDS,
            **_COLUMNS,
        },
        idle=(
            ("--client", "x"), ("--category", "x"), ("--count", "x"), ("--drop-empty",),
                ("--metric", "loss"),
            ("--true", "x"), ("--categories", "a,b,c"),
        ),
    ),
    Command(
        ("report", "mdm.json", "true=held-out.csv", "-o", "out.html"),
        {"--title": _TITLES, "--true": ("true", "x"), "--seed": SEEDS,
            "--categories": CATEGORIES, **_COLUMNS},
        idle=(("--metric", "loss"),),
    ),
    Command(
        ("report", "runs", "-o", "out.html"),
        {"--metric": ("accuracy", "loss", "x", ""), "--true": ("true", "iid", "x")},
        idle=(("--client", "x"), ("--category", "x"), ("--count", "x"), ("--drop-empty",)),
    ),
    Command(
        ("sweep", "sweep.toml", "-o", "swept", "--jobs", "1"),
        {"--output": ("swept", "runs", ".", "clients.csv", "", "missing/swept", "checkpoint",
            "/dev/null"), "--jobs": ("1", "0", "-0", "x", "1.5", "")},
    ),
    Command(("demo",), {"--data": ("x", ""), "--clients": ("0", "-1", "x"),
        "--output": (".", "missing/x.html", "")}),
)  # fmt: skip

_FOREIGN = ("--unknown", "--componets=2", "-x", "--seed", "--", "extra", "", "--no-json", "-oout",
    "--json=1", "\x1b[31m", "é", "--ｊson")  # fmt: skip
_ENCODINGS = ("ascii", "latin-1", "utf-8", "utf-8", "utf-8", "utf-8")


def cases(rng: np.random.Generator) -> Case:
    """A command line with a few words that it should not have."""
    files = some(
        *("clients.csv", "held-out.csv", "records.csv", "labels.csv", "mdm.json", "plain.json"),
        *(
            "simulated.csv",
            "simulated.parquet",
            "comparison.json",
            "sweep.toml",
            "points.npz",
            "runs",
        ),
        *("checkpoint", "partition.json", "partition.parquet", "selected.json"),
    )
    return misused(one_of(rng, _COMMANDS), files, rng)


def misused(base: Command, files: dict[str, bytes | None], rng: np.random.Generator) -> Case:
    """A command that works with these files, with words that it should not have."""
    words, oracle = list(base.words), None
    if base.idle and chance(rng, 0.15):
        words += one_of(rng, base.idle)
        oracle = _refuses(words[len(base.words) :])
    else:
        must_fail = base.words[0] == "demo"  # one that works takes minutes
        for _ in range(int(rng.integers(1, 4))):
            words = _changed(words, base, rng, only_options=must_fail)
    outputs, keeps = _writes(words)
    return Case(tuple(words), files, outputs, keeps, oracle, encoding=one_of(rng, _ENCODINGS))


def _changed(
    words: list[str], base: Command, rng: np.random.Generator, *, only_options: bool
) -> list[str]:
    """The words with one more that is strange, or one less."""
    options = [*base.options] or ["--json"]
    if only_options or chance(rng, 0.6):
        option = one_of(rng, options)
        values = base.options.get(option)
        if values is None:
            return [*words, option]
        value = one_of(rng, values)
        if option in words:
            at = words.index(option)
            return [*words[: at + 1], value, *words[at + 2 :]]
        return [*words, f"{option}={value}"] if chance(rng, 0.5) else [*words, option, value]
    at = int(rng.integers(1, len(words) + 1))
    match int(rng.integers(5)):
        case 0:
            return [*words[:at], *words[at + 1 :]]
        case 1:
            return [*words[:at], one_of(rng, _FOREIGN), *words[at:]]
        case 2:
            return [*words, one_of(rng, [*_EVERY])]
        case _:
            return [*words[:at], one_of(rng, PLACES), *words[at + 1 :]]


def _writes(words: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files that a command line names as outputs, and the folders that keep what was finished."""
    from pathlib import PurePosixPath

    outputs, keeps = [], []
    pairs = list(zip(words, [*words[1:], ""], strict=True))
    pairs += [tuple(word.split("=", 1)) for word in words if word.startswith("--") and "=" in word]
    for option, value in pairs:
        name = str(PurePosixPath(value))
        if option in ("-o", "--output"):
            folder = words[0] == "sweep" or (
                words[0] == "sample" and not PurePosixPath(name).suffix
            )
            (keeps if folder else outputs).append(name)
        if option == "--checkpoint":
            keeps.append(name)
        if option == "-oout":
            outputs.append("out")
    if words[0] in ("report", "demo"):
        outputs.append("report.html")
    return tuple(outputs), tuple(keeps)


def _refuses(idle: list[str]):
    """An option without an effect has to be refused."""

    def oracle(ran: Ran) -> str | None:
        return f"{' '.join(idle)} was ignored"

    return oracle
