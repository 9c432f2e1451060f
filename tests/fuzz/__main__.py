"""`python -m fuzz`: many bad inputs, on all cores, and a table of what became of them.

Every case has a name, such as tables/4711, and is a function of it alone: `--only tables/4711` runs it
again and shows it. Defects are written to build/fuzz/defects.jsonl.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fuzz.cases import KINDS, case_of
from fuzz.judge import judge, prepare
from fuzz.pool import run_all
from fuzz.tally import Tally

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases that were asked for; 1 if there is a defect."""
    asked = _parser().parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")  # what is shown is the worst that there is
    if asked.only:
        return _show(asked.only)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # the cores are taken by the workers
    names = list(_names(asked.kind or [*KINDS], asked.first, asked.cases))
    tally = Tally(asked.output)
    began = time.monotonic()
    try:
        for name, outcome in run_all(names, judge, n_workers=asked.workers, prepare=prepare):
            tally.add(name, outcome)
            if tally.n % 50 == 0 or outcome.defects:
                _progress(tally, len(names), time.monotonic() - began)
    except KeyboardInterrupt:
        print(f"\ninterrupted after {tally.n} cases", file=sys.stderr)
        print(tally.table())
        return _INTERRUPTED
    print(file=sys.stderr)
    print(tally.table())
    print(f"{tally.n:,} cases in {time.monotonic() - began:.0f} s, {tally.n_defects} with defects")
    if tally.n_defects:
        print(f"in {asked.output}:")
        print(tally.groups())
    return 1 if tally.n_defects else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many, over all kinds")
    parser.add_argument("--kind", action="append", choices=[*KINDS], help="only cases of this kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first case of a kind")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", metavar="NAME", help="run one case here, and show it")
    parser.add_argument(
        "--output", type=Path, default=Path("build/fuzz"), help="folder for defects"
    )
    return parser


def _names(kinds: Sequence[str], first: int, n_cases: int) -> Iterator[str]:
    """The names of so many cases, kind after kind in turn."""
    return (f"{kinds[i % len(kinds)]}/{first + i // len(kinds)}" for i in range(n_cases))


def _show(name: str) -> int:
    """Run one case in this process, with all that there is to see."""
    case = case_of(name)
    print("$", "polyurn" if case.call is None else case.title, *map(repr, case.command))
    for file, content in case.files.items():
        size = "folder" if content is None else f"{len(content)} bytes"
        print(f"  {file} ({size})", "" if content is None else content[:300])
    outcome = judge(name)
    print(outcome.said)
    print("worked" if outcome.worked else "refused", f"in {outcome.seconds:.2f} s")
    for defect in outcome.defects:
        print(f"{defect.what}: {defect.detail} {defect.place}")
    return 1 if outcome.defects else 0


def _progress(tally: Tally, n: int, seconds: float) -> None:
    left = seconds / tally.n * (n - tally.n)
    text = f"{tally.n:,} of {n:,} cases, {tally.n_defects} with defects, {left / 60:.0f} min left"
    print(f"\r{text:<70}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
