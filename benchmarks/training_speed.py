"""Speed of federated training, against pfl, Flower and bare torch loops on the same work.

Work: a cohort of 50 clients with 100 points each, one epoch, batches of 10, 62 classes.

- *Peers*: pfl as it comes, pfl with one single-threaded process per core (torchrun), and Flower's
  simulation on Ray, on the paper's network (28 x 28 images; ours: workers) and on softmax
  regression and a perceptron with 16 features (ours: batched). Each lives in an environment of its
  own, which is made in build/peers. All start from the same weights; steps are counted and final
  losses compared.
- *Workers* against bare loops with as many processes, each with its part of the clients and nothing to
  send: *plain* is what one writes first (torch.optim.SGD), *tuned* has the same memory layout as
  ours and fused steps, so that what is left is our overhead.
- *Batched* against the plain loop, in one process each.
- *Growth* with clients and epochs; the fraction of the measured GEMM peak that each engine reaches.

All take turns, because other work on the machine slows everybody down; medians count, and the load is
printed. Processor time (of all processes, by /proc) is less touched by other work, but threads that spin
while they wait count in it.

    python benchmarks/training_speed.py               # tables, and one JSON object as the last line
    python benchmarks/training_speed.py --save        # also into benchmarks/results/training_speed.*
    python benchmarks/training_speed.py --no-peers    # without pfl and Flower
    python benchmarks/training_speed.py --peers-on mlp    # only that, where the environments are made
    python benchmarks/training_speed.py --rule        # where the engines cross: choice.LARGEST_BATCHED
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import numpy as np
import torch

from peers.environments import (
    FLOWER,
    FOLDER,
    PEERS,
    PFL,
    PFL_PER_CORE,
    Block,
    Peer,
    block,
    installed,
)
from polyurn.memory import n_cores
from training_work import CNN, SMALL, Case, Loop, Ours, flops, loop_clients, opened, prepare_loop
from turns import Peak, alternated, clocked, load, ratio_of

RESULTS = Path(__file__).parent / "results"
REQUIRED = {
    "cnn": {PFL: 1.6, PFL_PER_CORE: 0.95, FLOWER: 1.6},
    "softmax": {PFL: 20.0, FLOWER: 20.0},
    "mlp": {PFL: 20.0, FLOWER: 20.0},
}
REQUIRED_OVER_LOOP, ALLOWED_OVERHEAD = 10.0, 0.05
# Ours and a peer draw their batches in different orders, which moves the loss of a few rounds by 1e-3.
SAME_LOSS = 0.01


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Speed of federated training.")
    parser.add_argument("--repeats", type=int, default=7, help="turns of ours and the bare loops")
    parser.add_argument("--blocks", type=int, default=3, help="turns of ours and each peer")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of a block that count")
    parser.add_argument("--workers", type=int, default=n_cores())
    parser.add_argument("--no-peers", action="store_true", help="without pfl and Flower")
    parser.add_argument("--peers-on", choices=("cnn", "softmax", "mlp"), help="only this table")
    parser.add_argument("--save", action="store_true", help="keep the tables in results/")
    parser.add_argument("--rule", action="store_true", help="only where the engines cross")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.rule:
        rule(given.repeats, given.workers)
        return
    table, started = Table(), time.perf_counter()
    if given.peers_on:
        (case,) = (case for case in (CNN, *SMALL) if case.model == given.peers_on)
        turns = Turns(given.blocks, given.rounds, given.workers)
        peak = Peak.measured(given.workers)
        print(json.dumps(against_peers(case, turns, peak, table)))
        return
    table.line(f"{time.strftime('%Y-%m-%d')}, {given.workers} workers on {n_cores()} cores, "
               f"torch {torch.__version__}; load average {load()}")  # fmt: skip
    peak = Peak.measured(given.workers)
    table.line(f"GEMM peak: {peak.one:.0f} GFLOP/s on one core, {peak.all:.0f} on {given.workers}")
    result: dict[str, object] = {
        "gemm_gflops": {"one_core": peak.one, "all": peak.all},
        "n_workers": given.workers,
        "loops": workers_against_loops(given.repeats, given.workers, peak, table),
        "batched": batched_against_loop(given.repeats, peak, table),
        "growth": growth(given.repeats, table),
    }
    if not given.no_peers:
        versions = {peer.package: installed(peer) for peer in PEERS}
        table.line("\n" + ", ".join(f"{name} {version}" for name, version in versions.items()))
        turns = Turns(given.blocks, given.rounds, given.workers)
        compared = {case.model: against_peers(case, turns, peak, table) for case in (CNN, *SMALL)}
        result |= {"versions": versions, "peers": compared}
    table.line(f"\nload average at the end {load()}; {time.perf_counter() - started:.0f} s in all")
    print(json.dumps(result))
    if given.save:
        table.save(result)


# --------------------------------------------------------------------------- against the peers


@dataclass(frozen=True)
class Turns:
    """How often ours and a peer take turns, and how many rounds a turn has."""

    n_blocks: int
    n_rounds: int
    n_cores: int


def against_peers(
    case: Case, turns: Turns, peak: Peak, table: "Table"
) -> dict[str, dict[str, float]]:
    """Blocks of rounds: ours, a peer, ours, the next peer, ..."""
    engine, n = ("workers", turns.n_cores) if case is CNN else ("batched", 1)
    n_rounds = turns.n_rounds if case is CNN else 3 * turns.n_rounds
    work = FOLDER / "work" / f"{case.model}.pt"
    pairs: dict[Peer, list[tuple[Block, Block]]] = {peer: [] for peer in PEERS}
    with opened(case, engine, n) as ours:
        ours.save(work)
        warm_up(ours)
        for _ in range(turns.n_blocks):
            for peer in PEERS:
                mine = ours.block(n_warm_up=1, n_rounds=n_rounds)
                theirs = block(
                    peer, work, n_warm_up=1, n_rounds=n_rounds, n_cores=turns.n_cores
                )  # fmt: skip
                check_same_work(peer, mine, theirs)
                pairs[peer].append((mine, theirs))
    table.line(f"\n{case.model}, one round           seconds  processor  threads  of a core's peak  loss"
               "  ours is faster (best, processor)  required")  # fmt: skip
    mine = [mine for some in pairs.values() for mine, _ in some]
    described(f"ours, {engine}", mine, case, peak, table)
    return {
        peer.name: compared(peer, some, case, peak, table)
        for peer, some in pairs.items()
    }  # fmt: skip


def compared(
    peer: Peer, pairs: Sequence[tuple[Block, Block]], case: Case, peak: Peak, table: "Table"
) -> dict[str, float]:
    """How many times as long a peer takes: medians of neighbours, best rounds, processor time."""
    ours, theirs = ([pair[i] for pair in pairs] for i in (0, 1))
    ratio = median(median(b.seconds) / median(a.seconds) for a, b in pairs)
    best = fastest(theirs) / fastest(ours)
    processor = processor_seconds(theirs) / processor_seconds(ours)
    required = REQUIRED[case.model].get(peer)
    verdict = "" if required is None else f"{required:>8.2f}x {met(ratio >= required)}"
    said = f"{ratio:>9.2f}x ({best:.2f}x, {processor:.2f}x){'':<6} {verdict}"
    record = described(peer.name, theirs, case, peak, table, said)
    return record | {"ratio": ratio, "best_ratio": best, "processor_ratio": processor} | {
        "ours_seconds": median(second for b in ours for second in b.seconds),
        "ours_processor_seconds": processor_seconds(ours),
    }  # fmt: skip


def described(
    name: str, blocks: Sequence[Block], case: Case, peak: Peak, table: "Table", said: str = ""
) -> dict[str, float]:
    """One line of the table."""
    seconds = median(second for b in blocks for second in b.seconds)
    record = {
        "seconds": seconds,
        "best_seconds": fastest(blocks),
        "processor_seconds": processor_seconds(blocks),
        "n_threads": blocks[0].n_threads,
        "of_peak": share(case, seconds, peak.all),
        "of_core": share(case, processor_seconds(blocks), peak.one),
        "loss": blocks[-1].loss,
    }
    table.line(f"{name:<26} {seconds:>9.4f} {record['processor_seconds']:>10.4f}"
               f" {record['n_threads']:>8} {record['of_core']:>15.1%}"
               f" {record['loss']:>9.5f} {said}")  # fmt: skip
    return record


def check_same_work(peer: Peer, mine: Block, theirs: Block) -> None:
    """As many steps, and as good a model."""
    if theirs.n_steps != mine.n_steps:
        raise RuntimeError(f"{peer.name} took {theirs.n_steps} steps, ours {mine.n_steps}")
    if abs(theirs.loss - mine.loss) > SAME_LOSS:
        raise RuntimeError(f"{peer.name} ended at loss {theirs.loss}, ours at {mine.loss}")


def fastest(blocks: Sequence[Block]) -> float:
    """Seconds of the best round."""
    return min(second for b in blocks for second in b.seconds)


def processor_seconds(blocks: Sequence[Block]) -> float:
    """Mean of a block's rounds, since the system counts in steps of 10 ms; median of blocks."""
    return median(float(np.mean(b.processor_seconds)) for b in blocks)


# ------------------------------------------------------------------------ against the bare loops


def workers_against_loops(
    repeats: int, n_workers: int, peak: Peak, table: "Table"
) -> dict[str, float]:
    """Ours against bare loops with as many processes."""
    context = multiprocessing.get_context("spawn")
    parts = np.array_split(np.arange(CNN.n_clients), n_workers)
    with ExitStack() as stack:
        ours = stack.enter_context(opened(CNN, "workers", n_workers))
        functions: dict[str, Callable[[], object]] = {"ours": ours.one_round}
        for name in ("plain", "tuned"):
            pool = stack.enter_context(context.Pool(n_workers, prepare_loop, (CNN, name)))
            functions[name] = lambda pool=pool: pool.map(loop_clients, parts, chunksize=1)
        clocks = clocked(repeats, functions)
    took = {name: clock.seconds for name, clock in clocks.items()}
    used = {name: clock.processor_seconds for name, clock in clocks.items()}
    record: dict[str, float] = {}
    table.line(f"\ncnn, {n_workers} workers, one round            seconds   of the peak"
               "  processor  of a core's peak")  # fmt: skip
    for name in functions:
        seconds, processor = median(took[name]), median(used[name])
        shares = {"of_peak": share(CNN, seconds, peak.all)} | {
            "of_core": share(CNN, processor, peak.one)
        }
        record |= {f"{name}_seconds": seconds, f"{name}_processor_seconds": processor}
        record |= {f"{name}_{of}": value for of, value in shares.items()}
        table.line(f"{name:<36} {seconds:>9.3f} {shares['of_peak']:>12.1%} {processor:>10.3f}"
                   f" {shares['of_core']:>17.1%}")  # fmt: skip
    record["overhead"] = ratio_of(took["ours"], took["tuned"]) - 1
    record["processor_overhead"] = ratio_of(used["ours"], used["tuned"]) - 1
    record["times_plain"] = ratio_of(took["plain"], took["ours"])
    table.line(f"overhead over the tuned loop {record['overhead']:+.1%}"
               f" (processor time {record['processor_overhead']:+.1%}),"
               f" allowed {ALLOWED_OVERHEAD:.0%} {met(record['overhead'] <= ALLOWED_OVERHEAD)};"
               f" {record['times_plain']:.2f} times as fast as the plain one")  # fmt: skip
    return record


def batched_against_loop(repeats: int, peak: Peak, table: "Table") -> dict[str, dict[str, float]]:
    """All clients at once against the plain loop, in one process each."""
    table.line("\none round, ms    plain loop  batched     ratio  required       of the peak"
               "  each of 8 columns")  # fmt: skip
    return {case.model: small_case(case, repeats, peak, table) for case in SMALL}


def small_case(case: Case, repeats: int, peak: Peak, table: "Table") -> dict[str, float]:
    """One small model; also eight learning rates side by side."""
    loop, cohort = Loop(case, "plain"), np.arange(case.n_clients)
    rates = np.geomspace(0.001, 0.1, 8).tolist()
    columns = [case.settings.with_changes({"local_learning_rate": rate}) for rate in rates]
    with opened(case, "batched", 1) as ours:
        wide = ours.start.repeat(8, 1)
        functions = {
            "plain": lambda: loop.clients(range(case.n_clients)),
            "ours": ours.one_round,
            "columns": lambda: ours.engine.mean_updates(columns, wide, cohort, 1),
        }
        warm_up(ours)
        for _ in range(8):
            functions["columns"]()
        took = alternated(repeats, functions)
    seconds = {name: median(some) for name, some in took.items()}
    ratio = ratio_of(took["plain"], took["ours"])
    of_peak = share(case, seconds["ours"], peak.one)
    table.line(f"{case.model:<16} {seconds['plain'] * 1e3:>10.1f} {seconds['ours'] * 1e3:>8.2f}"
               f" {ratio:>8.1f}x {REQUIRED_OVER_LOOP:>8.0f}x {met(ratio >= REQUIRED_OVER_LOOP)}"
               f" {of_peak:>11.1%} {seconds['columns'] / 8 * 1e3:>18.2f}")  # fmt: skip
    return {
        "plain_seconds": seconds["plain"],
        "ours_seconds": seconds["ours"],
        "ratio": ratio,
        "of_peak": of_peak,
        "per_column_seconds": seconds["columns"] / 8,
    }


def growth(repeats: int, table: "Table") -> dict[str, dict[str, float]]:
    """How much longer twice the clients, or twice the epochs, take; 2 is linear."""
    found: dict[str, dict[str, float]] = {}
    table.line("")
    for engine, base in (("workers", Case("cnn", (1, 14, 14), 10)), ("batched", SMALL[1])):
        took = round_seconds(base, engine, repeats)
        more_clients = replace(base, n_clients=2 * base.n_clients)
        found[engine] = {
            "clients": round_seconds(more_clients, engine, repeats) / took,
            "epochs": round_seconds(replace(base, epochs=2), engine, repeats) / took,
        }
        table.line(f"growth, {engine}: twice the clients {found[engine]['clients']:.2f}, "
                   f"twice the epochs {found[engine]['epochs']:.2f} (linear: 2)")  # fmt: skip
    return found


def rule(repeats: int, n_workers: int) -> None:
    """Both engines over sizes of models, one process each; workers divide by their number."""
    print(f"{'model':<18}{'parameters':>11}{'one worker, ms':>16}{'batched, ms':>13}"
          f"{f'{n_workers} workers / batched':>23}")  # fmt: skip
    cases = [
        *(Case("softmax", (n,)) for n in (16, 128, 512, 1024, 3072)),
        *(Case("mlp", (n,)) for n in (16, 256, 784, 2048)),
        Case("cnn", (1, 8, 8), n_clients=10),
    ]
    for case in cases:
        alone, together = (round_seconds(case, name, repeats) for name in ("workers", "batched"))
        size = sum(parameter.numel() for parameter in case.build().parameters())
        print(f"{case.model + str(case.shape):<18}{size:>11}{alone * 1e3:>16.1f}"
              f"{together * 1e3:>13.1f}{alone / n_workers / together:>23.2f}")  # fmt: skip


def round_seconds(case: Case, engine: str, repeats: int) -> float:
    """Processor time of the best round in this process: other work on the machine does not count."""
    with opened(case, engine, 1) as ours:
        warm_up(ours)
        return min(alternated(repeats, {"": ours.one_round}, clock=time.process_time)[""])


def share(case: Case, seconds: float, gflops: float) -> float:
    """The fraction of a peak that a round reaches."""
    return flops(case) / seconds / 1e9 / gflops


def warm_up(ours: Ours) -> None:
    """Enough rounds for steps to be traced."""
    for _ in range(8 if ours.case is not CNN else 1):
        ours.one_round()


# ---------------------------------------------------------------------------------- the tables


def met(good: bool) -> str:
    """Whether a bar was reached."""
    return "met   " if good else "MISSED"


@dataclass
class Table:
    """Lines, printed as they come and kept."""

    lines: list[str] = field(default_factory=list)

    def line(self, text: str) -> None:
        print(text, flush=True)
        self.lines += text.split("\n")

    def save(self, result: Mapping[str, object]) -> None:
        """The tables and the command that made them, and the figures as JSON."""
        command = " ".join(["python", "benchmarks/training_speed.py", *sys.argv[1:]])
        text = "\n".join(line.rstrip() for line in self.lines)
        (RESULTS / "training_speed.md").write_text(
            f"# training_speed\n\n```sh\n{command}\n```\n\n```text\n{text}\n```\n"
        )
        figures = {"command": command} | dict(result)
        (RESULTS / "training_speed.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
