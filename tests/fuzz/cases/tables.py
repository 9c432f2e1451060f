"""Tables of clients written in every way that people write them; the true histograms are known.

A case begins with histograms, writes them as a table in an unusual way, and reads the table with
`polyurn histogram` or `polyurn fit`. Either the table is refused, or the histograms are the true ones.
"""

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from fuzz.case import Case, Ran, chance, one_of

# The names of the three columns. Only those of the first row are found without an option.
_HEADS = (
    ("client", "category", "count"),
    ("client", "category", "n"),
    ("Client", "Category", "Count"),
    ("CLIENT", "CATEGORY", "COUNT"),
    (" client", " category ", " count"),
    ("user", "app", "opens"),
    ("client_id", "label", "count"),
    ("id", "category", "Count"),
    ("client", "klasse", "anzahl"),
    ("client", "category name", "number of points"),
    ("--client", "--category", "--count"),
    ("名前", "種類", "数"),
    ("", "category", "count"),
    ("client", "client", "count"),
    ("client", "category", "client"),
)  # fmt: skip

_CATEGORIES = (
    ("a", "b", "c", "d"),
    ("0", "1", "2", "3"),
    ("3", "1", "0", "2"),
    ("1", "2", "3", "4"),
    ("01", "1", "001", "0"),
    ("10115", "80331", "20095", "50667"),
    ("1.0", "2.0", "3.0", "4.0"),
    ("-1", "0", "1", "2"),
    ("café", "naïve", "Ω", "漢字"),
    ("a,b", 'say "x"', "semi;colon", "tab\there"),
    ("NA", "nan", "null", "None"),
    ("True", "False", "true", "false"),
    ("x" * 300, "y", "z", "w"),
    ("9" * 30, "8" * 25, "7", "6"),
    ("2024-01-01", "2024-01-02", "12:30", "1e5"),
    ("=1+1", "+x", "@cmd", "-y"),
    ("\x1b[31mred", "b", "c", "d"),
    ("count", "client", "category", "total"),
)  # fmt: skip

_CLIENTS = (
    ("a", "b", "c", "d", "e", "f"),
    ("0", "1", "2", "3", "4", "5"),
    ("01", "1", "001", "10", "010", "0"),
    ("1.0", "1", "2.0", "2", "3", "3.0"),
    ("Ann", "ann", "ANN", "Bob", "bob", "Eve"),
    ("émile", "Zoë", "Łukasz", "张", "नेहा", "😀"),
    ("a b", "a  b", "c,d", "e;f", '"g"', "h'i"),
    ("NA", "NaN", "null", "-", "?", "None"),
)

_PART = "airport"  # the column that a category is crossed with

# Counts as they should not be written: the text, and whether it may still be read as the number.
_STRANGE_COUNTS = (
    ("{}.0", True), ("+{}", True), (" {}", True), ("{} ", True), ("{}e0", True), ("00{}", True),
    ("{}.5", False), ("-{}", False), ("", False), ("NA", False), ("nan", False), ("inf", False),
    ("x", False), ("1{:_}000", False), ("0x{}", True), ("{}%", False), ("~{}", False),
    ("1e400", False), ("99999999999", False), ("9223372036854775808", False), ("{},5", False),
    ("1,23{}", False), ("1 23{}", False), ("1.23{}.000", False), ("{}\x00", False),
    ("９", False), ("true", False), ("\u2212{}", False),
)  # fmt: skip


@dataclass(frozen=True)
class _Style:
    """How a table is written.

    Attributes
    ----------
    head : three names
    layout : {"long", "points", "wide", "pieces"}
        One row per cell; per point; per client; or several rows per cell.
    named : bool
        Whether the command is told the columns' names.
    crossed : bool
        Whether the category is crossed with one more column, which is the same in every row.
    """

    head: tuple[str, str, str] = _HEADS[0]
    layout: str = "long"
    named: bool = False
    delimiter: str = ","
    suffix: str = ".csv"
    end: str = "\n"
    encoding: str = "utf-8"
    quoting: int = csv.QUOTE_MINIMAL
    packed: bool = False
    extra: tuple[str, ...] = ()
    shuffled: bool = False
    turned: bool = False
    has_head: bool = True
    crossed: bool = False


def cases(rng: np.random.Generator) -> Case:
    """A table, and the command that reads it."""
    truth = _truth(rng)
    style = _style(rng)
    if chance(rng, 0.3):  # what is wrong with half of the real files is one thing
        style = replace(_Style(), **_one_change(rng))
    rows = list(_rows(truth, style, rng))
    if _is_crossed(style):
        truth = Counter({(client, f"{name} × EWR"): n for (client, name), n in truth.items()})
    rows, readable = _spoiled(rows, style, rng) if chance(rng, 0.45) else (rows, True)
    if _is_ambiguous(style, truth):
        readable = None
    if style.turned:
        rows = [row[::-1] for row in rows]
    name = f"table{style.suffix}{'.gz' if style.packed else ''}"
    options = _options(style)
    files = {name: _written(rows, style, rng)}
    if chance(rng, 0.75):
        command = ("histogram", name, *options, "--json")
        return Case(command, files, oracle=_same_counts(truth, style, readable))
    command = ("fit", name, *options, "--components", "1", "--rounds", "2", "-o", "mdm.json")
    return Case(command, files, outputs=("mdm.json",), oracle=_same_sums(truth, style, readable))


# --------------------------------------------------------------------------------------- the truth


def _truth(rng: np.random.Generator) -> Counter[tuple[str, str]]:
    """Points by client and category; every client holds some."""
    n_clients, n_categories = int(rng.integers(1, 7)), int(rng.integers(2, 5))
    clients, categories = one_of(rng, _CLIENTS), one_of(rng, _CATEGORIES)
    if chance(rng, 0.5):
        clients, categories = _CLIENTS[0], _CATEGORIES[int(rng.integers(2))]
    counts = rng.integers(0, 6, (n_clients, n_categories))
    counts[:, 0] += 1
    return Counter(
        {
            (clients[i], categories[j]): int(counts[i, j])
            for i in range(n_clients)
            for j in range(n_categories)
            if counts[i, j]
        }
    )


def _style(rng: np.random.Generator) -> _Style:
    style = _Style()
    for _ in range(int(rng.integers(1, 5))):
        style = replace(style, **_one_change(rng))
    return style


def _one_change(rng: np.random.Generator) -> dict[str, object]:
    match int(rng.integers(13)):
        case 12:
            return {"crossed": True, "named": True, "layout": "long", "extra": (_PART,)}
        case 0 | 1:
            return {"head": one_of(rng, _HEADS)}
        case 2:
            return {"head": one_of(rng, _HEADS), "named": True}
        case 3 | 4:
            return {"layout": one_of(rng, ("points", "wide", "pieces"))}
        case 5:
            return {"delimiter": one_of(rng, ";\t| :"), "suffix": one_of(rng, (".csv", ".tsv"))}
        case 6:
            return {"end": one_of(rng, ("\r\n", "\r", "\n\n", " \n", ",\n", "\n\r\n"))}
        case 7:
            codes = ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252")
            return {"encoding": one_of(rng, codes)}
        case 8:
            kinds = (csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)
            return {"quoting": one_of(rng, kinds), "packed": chance(rng, 0.2)}
        case 9:
            names = ("age", "total", "weight", "Count", "note", "", "client", "counts", "Client")
            return {"extra": tuple(one_of(rng, names) for _ in range(rng.integers(1, 3)))}
        case 10:
            return {"shuffled": True, "turned": chance(rng, 0.5)}
        case _:
            return {"has_head": False}


def _is_ambiguous(style: _Style, truth: Mapping[tuple[str, str], int]) -> bool:
    """Whether another column bears the better name, or the first row may be a head and is none."""
    if style.layout == "wide":
        return not style.has_head or bool(style.extra) or "client" in {name for _, name in truth}
    roles = {name.lower() for name in style.extra} & {"client", "count", "counts"}
    is_plain = style.head == _HEADS[0] and style.layout != "points"
    # Where rows are points, no option says so: a column called count is taken for the counts.
    is_named = style.named and (style.layout != "points" or roles <= {"client"})
    return bool(roles) and not is_plain and not is_named


def _is_crossed(style: _Style) -> bool:
    """Whether there is another column to cross, and the command is told so."""
    return style.crossed and style.named and _PART in style.extra and style.layout != "wide"


def _options(style: _Style) -> tuple[str, ...]:
    if not style.named:
        return ()
    client, category, count = style.head
    crossed = f",{_PART}" if _is_crossed(style) else ""
    named = (f"--client={client}", f"--category={category}{crossed}")
    return named if style.layout == "points" else (*named, f"--count={count}")


# ---------------------------------------------------------------------------------------- the rows


def _rows(
    truth: Mapping[tuple[str, str], int], style: _Style, rng: np.random.Generator
) -> Iterator[list[str]]:
    """The cells of a table, its head first."""
    if style.layout == "wide":
        categories = sorted({category for _, category in truth})
        yield [style.head[0], *categories, *style.extra]
        for client in dict.fromkeys(client for client, _ in truth):
            cells = [str(truth.get((client, category), 0)) for category in categories]
            yield [client, *cells, *_extra_cells(style, rng)]
        return
    yield [*(style.head[:2] if style.layout == "points" else style.head), *style.extra]
    rows = [
        [client, category, *(() if n is None else [str(n)])]
        for (client, category), total in truth.items()
        for n in _pieces(total, style.layout, rng)
    ]
    if style.shuffled:
        rng.shuffle(rows)
    yield from ([*row, *_extra_cells(style, rng)] for row in rows)


def _pieces(total: int, layout: str, rng: np.random.Generator) -> list[int | None]:
    """The counts of the rows that a cell has; None where a row is a point."""
    if layout == "points":
        return [None] * total
    if layout == "pieces" and total > 1:
        first = int(rng.integers(1, total))
        return [first, total - first]
    return [total]


def _extra_cells(style: _Style, rng: np.random.Generator) -> list[str]:
    cells = {"note": one_of(rng, ("a note", "x")), _PART: "EWR"}
    return [cells.get(name) or str(rng.integers(100)) for name in style.extra]


def _spoiled(
    rows: list[list[str]], style: _Style, rng: np.random.Generator
) -> tuple[list[list[str]], bool | None]:
    """The rows with one thing wrong, and whether they can still be read as meant; None: perhaps."""
    rows = [list(row) for row in rows]
    at = int(rng.integers(1, len(rows)))
    match int(rng.integers(8)):
        case 0:
            rows[at].pop()
            return rows, False
        case 1:
            rows[at].append(one_of(rng, ("", "7", "x")))
            return rows, rows[at][-1] == ""
        case 2:
            rows[at][int(rng.integers(2))] = ""
            return rows, None if style.quoting != csv.QUOTE_MINIMAL else False  # "" is a name
        case 3:
            rows.insert(at, one_of(rng, ([], [""], ["", "", ""], ["# a comment"], rows[0])))
            return rows, True
        case 4:
            rows.append(["total", "", str(sum(map(len, rows)))])
            return rows, None if style.quoting != csv.QUOTE_MINIMAL else False
        case 5 if style.layout == "points":
            return rows, True
        case _ if style.layout == "points":
            return rows[:1], False
        case _:
            text, may_be_read = one_of(rng, _STRANGE_COUNTS)
            last = (1 if style.layout == "wide" else 2) if len(rows[at]) > 2 else -1
            rows[at][last] = text.replace("{:_}", "_").replace("{}", rows[at][last])
            return rows, may_be_read


def _written(rows: list[list[str]], style: _Style, rng: np.random.Generator) -> bytes:
    text = io.StringIO()
    writer = csv.writer(
        text, delimiter=style.delimiter, lineterminator=style.end, quoting=style.quoting
    )
    writer.writerows(rows if style.has_head else rows[1:])
    whole = text.getvalue()
    if chance(rng, 0.05):
        whole = whole.rstrip()
    if chance(rng, 0.05):
        whole = one_of(rng, ("\n", "sep=;\n", "# made by hand\n", " \n")) + whole
    data = whole.encode(style.encoding, errors="replace")
    return gzip.compress(data, mtime=0) if style.packed else data


# -------------------------------------------------------------------------------------- the oracle


def _same_counts(truth: Counter[tuple[str, str]], style: _Style, readable: bool | None):
    """Whether `polyurn histogram --json` has read the true histograms."""

    def oracle(ran: Ran) -> str | None:
        record = json.loads(ran.out)
        if readable is None:
            return None
        read: Counter[tuple[str, str]] = Counter()
        for client, row in zip(record["clients"], record["counts"], strict=True):
            for category, n in zip(record["categories"], row, strict=True):
                if n:
                    read[str(client).strip(), str(category).strip()] += n
        n_distinct = len({category for _, category in truth})
        if len(record["categories"]) > 10 * n_distinct:
            return f"{n_distinct} codes became {len(record['categories'])} categories"
        if readable and read == _trimmed(truth):
            return None
        if max(read.values()) <= 2 and _unread_is_said(style, readable, ran):
            return None
        return f"read {dict(read)}, the truth is {dict(truth) if readable else 'spoiled'}"

    return oracle


def _same_sums(truth: Counter[tuple[str, str]], style: _Style, readable: bool | None):
    """Whether `polyurn fit` has read as many clients and points as there are."""

    def oracle(ran: Ran) -> str | None:
        if readable is None:
            return None
        data = json.loads((ran.folder / "mdm.json").read_bytes())["provenance"]["data"]
        read = data["n_clients"], data["n_points"]
        asked = len({client for client, _ in truth}), sum(truth.values())
        if read == asked and readable:
            return None
        if _unread_is_said(style, readable, ran):
            return None
        return f"read {read} clients and points, the truth is {asked if readable else 'spoiled'}"

    return oracle


def _trimmed(truth: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    return Counter(
        {(client.strip(), category.strip()): n for (client, category), n in truth.items()}
    )


def _unread_is_said(style: _Style, readable: bool, ran: Ran) -> bool:
    """Whether rows are points, because the column that is said not to be read need not hold counts.

    It need not where a client's category comes more than once, or where a cell is no whole number.
    """
    may_be_points = style.layout == "pieces" or not readable
    return (
        may_be_points and not style.named and f"not read: column {style.head[2].strip()}" in ran.err
    )
