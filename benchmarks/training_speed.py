"""Speed of federated training, against bare torch loops on the same work.

Work: a cohort of 50 clients with 100 points each, one epoch, batches of 10, 62 classes.

- *Workers*: the paper's network on 28 x 28 images. The bare loops have the same number of processes,
  each with half of the clients and nothing to send: *plain* is what one writes first (torch.optim.SGD),
  *tuned* has the same memory layout as ours and fused steps, so that what is left is our overhead.
- *Batched*: softmax regression and a perceptron on 16 features, against the plain loop in one process.
- *Growth* with clients and epochs; the fraction of the measured GEMM peak that each engine reaches.

Rounds of ours and of the loops alternate, and the best of each counts: other work on the machine slows
all of them down.

    python benchmarks/training_speed.py            # tables, and one JSON object as the last line
    python benchmarks/training_speed.py --rule     # where the engines cross: choice.LARGEST_BATCHED
"""

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from polyurn.training.choice import n_cores, open_engine
from polyurn.training.engines import Engine
from polyurn.training.examples import Examples, Holdings, holdings
from polyurn.training.federated import prepare
from polyurn.training.losses import cross_entropy
from polyurn.training.models import convolutional, perceptron, softmax_regression
from polyurn.training.settings import FedAvg

N_CLASSES, CLIENT_SIZE, BATCH_SIZE, RATE = 62, 100, 10, 0.01
MODELS = {"softmax": softmax_regression, "mlp": perceptron, "cnn": convolutional}


@dataclass(frozen=True)
class Case:
    """A model and its clients."""

    model: str
    shape: tuple[int, ...]
    n_clients: int = 50
    epochs: int = 1

    def build(self) -> nn.Module:
        return MODELS[self.model](self.shape, N_CLASSES)

    @property
    def settings(self) -> FedAvg:
        return FedAvg(
            n_rounds=1,
            cohort_size=self.n_clients,
            local_epochs=self.epochs,
            local_learning_rate=RATE,
            batch_size=BATCH_SIZE,
        )


CNN = Case("cnn", (1, 28, 28))
SMALL = (Case("softmax", (16,)), Case("mlp", (16,)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="rounds of each, alternating")
    parser.add_argument("--workers", type=int, default=n_cores())
    parser.add_argument("--rule", action="store_true", help="only where the engines cross")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.rule:
        rule(given.repeats, given.workers)
        return
    peak = gemm_peak()
    print(f"GEMM peak of one core: {peak:.0f} GFLOP/s")
    result = {
        "gemm_gflops": peak,
        "n_workers": given.workers,
        "workers": workers_against_loops(given.repeats, given.workers, peak),
        "batched": batched_against_loop(given.repeats, peak),
        "growth": growth(given.repeats),
    }
    print(json.dumps(result))


# --------------------------------------------------------------------------- the measurements


def workers_against_loops(repeats: int, n_workers: int, peak: float) -> dict[str, float]:
    """Ours against bare loops with as many processes."""
    context = multiprocessing.get_context("spawn")
    data, clients = make_data(CNN)
    with opened(CNN, data, clients, "workers", n_workers) as ours:
        weights = start_weights(CNN, data, clients)
        parts = np.array_split(np.arange(CNN.n_clients), n_workers)
        loops = {}
        for name in ("plain", "tuned"):
            pool = context.Pool(n_workers, prepare_loop, (CNN, name))
            loops[name] = lambda pool=pool: pool.map(loop_clients, parts, chunksize=1)
        took = best_of(repeats, {"ours": lambda: one_round(ours, CNN, weights)} | loops)
    n_flops = flops(CNN)
    record = {f"{name}_seconds": seconds for name, seconds in took.items()}
    record |= {
        f"{name}_of_peak": n_flops / t / 1e9 / (peak * n_workers) for name, t in took.items()
    }
    record["overhead"] = took["ours"] / took["tuned"] - 1
    record["times_plain"] = took["plain"] / took["ours"]
    print(f"\ncnn, {n_workers} workers, one round       seconds   of the peak")
    for name, seconds in took.items():
        print(f"{name:<36} {seconds:>9.3f} {record[f'{name}_of_peak']:>12.1%}")
    print(f"overhead over the tuned loop {record['overhead']:+.1%} (required: at most 5 %)")
    return record


def batched_against_loop(repeats: int, peak: float) -> dict[str, dict[str, float]]:
    """All clients at once against the plain loop, in one process each."""
    print(
        "\none round, ms    plain loop  batched    ratio  required  of the peak  each of 8 columns"
    )
    return {case.model: small_case(case, repeats, peak) for case in SMALL}


def small_case(case: Case, repeats: int, peak: float) -> dict[str, float]:
    """One small model; also eight learning rates side by side."""
    data, clients = make_data(case)
    weights = start_weights(case, data, clients)
    loop, cohort, wide = Loop(case, "plain", data), np.arange(case.n_clients), weights.repeat(8, 1)
    rates = np.geomspace(0.001, 0.1, 8).tolist()
    columns = [case.settings.with_changes({"local_learning_rate": rate}) for rate in rates]
    with opened(case, data, clients, "batched", 1) as ours:
        functions = {
            "plain": lambda: loop.clients(range(case.n_clients)),
            "ours": lambda: one_round(ours, case, weights),
            "columns": lambda: ours.mean_updates(columns, wide, cohort, 1),
        }
        warm_up(functions["ours"])
        warm_up(functions["columns"])
        took = best_of(repeats, functions)
    share = flops(case) / took["ours"] / 1e9 / peak
    ratio = took["plain"] / took["ours"]
    print(f"{case.model:<16} {took['plain'] * 1e3:>10.1f} {took['ours'] * 1e3:>8.2f} {ratio:>7.1f}x"
          f" {'10x':>9} {share:>12.1%} {took['columns'] / 8 * 1e3:>18.2f}")  # fmt: skip
    return {
        "plain_seconds": took["plain"],
        "ours_seconds": took["ours"],
        "ratio": ratio,
        "of_peak": share,
        "per_column_seconds": took["columns"] / 8,
    }


def growth(repeats: int) -> dict[str, dict[str, float]]:
    """How much longer twice the clients, or twice the epochs, take; 2 is linear."""
    found: dict[str, dict[str, float]] = {}
    for engine, base in (("workers", Case("cnn", (1, 14, 14), 10)), ("batched", SMALL[1])):
        took = round_seconds(base, engine, repeats)
        more_clients = replace(base, n_clients=2 * base.n_clients)
        found[engine] = {
            "clients": round_seconds(more_clients, engine, repeats) / took,
            "epochs": round_seconds(replace(base, epochs=2), engine, repeats) / took,
        }
        print(f"growth, {engine}: twice the clients {found[engine]['clients']:.2f}, "
              f"twice the epochs {found[engine]['epochs']:.2f}")  # fmt: skip
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
    """Processor time of one round in this process: other work on the machine does not count."""
    data, clients = make_data(case)
    weights = start_weights(case, data, clients)
    with opened(case, data, clients, engine, 1) as ours:
        warm_up(lambda: one_round(ours, case, weights))
        round_ = {"round": lambda: one_round(ours, case, weights)}
        return best_of(repeats, round_, clock=time.process_time)["round"]


# ------------------------------------------------------------------------------------- ours


def make_data(case: Case) -> tuple[Examples, Holdings]:
    """Points without any structure: only time is measured."""
    rng = np.random.default_rng(0)
    n_points = case.n_clients * CLIENT_SIZE
    features = rng.normal(size=(n_points, *case.shape)).astype(np.float32)
    labels = rng.integers(0, N_CLASSES, n_points)
    points = np.arange(n_points).reshape(case.n_clients, CLIENT_SIZE)
    clients = holdings(list(points), n_points=n_points, seed=0)
    return Examples(features, labels, features[:100], labels[:100]), clients


def opened(case: Case, data: Examples, clients: Holdings, engine: str, n_workers: int) -> "Opened":
    """The engine, on the CPU."""
    return Opened(case, data, clients, engine, n_workers)


class Opened:
    """An engine as a context."""

    def __init__(self, case: Case, data: Examples, clients: Holdings, engine: str, n: int) -> None:
        work = prepare(
            case.build, data, clients, seed=0, loss=cross_entropy, metrics={}, device="cpu"
        )
        self._opened = open_engine(engine, work, n_workers=n, cohort_size=case.n_clients)

    def __enter__(self) -> Engine:
        return self._opened.__enter__().engine

    def __exit__(self, *error: object) -> None:
        self._opened.__exit__(*error)


def start_weights(case: Case, data: Examples, clients: Holdings) -> Tensor:
    """The first weights, as a matrix of one row."""
    work = prepare(case.build, data, clients, seed=0, loss=cross_entropy, metrics={}, device="cpu")
    return work.layout.pack(work.model)[None]


def one_round(engine: Engine, case: Case, weights: Tensor) -> Tensor:
    """The mean update of all clients."""
    return engine.mean_updates([case.settings], weights, np.arange(case.n_clients), 1)


# ---------------------------------------------------------------------------- the bare loops


class Loop:
    """What one writes without a library: clients one after the other, and the mean of their weights."""

    def __init__(self, case: Case, kind: str, data: Examples) -> None:
        self.case, self.model = case, case.build()
        self.features = torch.from_numpy(data.features)
        self.labels = torch.from_numpy(data.labels)
        if kind == "tuned":
            self.model = self.model.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE, fused=kind == "tuned")
        self.start = {name: value.clone() for name, value in self.model.state_dict().items()}

    def clients(self, numbers: object) -> None:
        total = {name: torch.zeros_like(value) for name, value in self.start.items()}
        for client in numbers:  # type: ignore[attr-defined]
            self.model.load_state_dict(self.start)
            points = torch.arange(client * CLIENT_SIZE, (client + 1) * CLIENT_SIZE)
            for _ in range(self.case.epochs):
                order = points[torch.randperm(CLIENT_SIZE)]
                for batch in order.split(BATCH_SIZE):
                    self.optimizer.zero_grad()
                    outputs = self.model(self.features[batch])
                    nn.functional.cross_entropy(outputs, self.labels[batch]).backward()
                    self.optimizer.step()
            for name, value in self.model.state_dict().items():
                total[name] += value


LOOP: Loop | None = None  # each process of a pool has its own


def prepare_loop(case: Case, kind: str) -> None:
    """What a process of the bare loop does once."""
    global LOOP  # noqa: PLW0603
    torch.set_num_threads(1)
    LOOP = Loop(case, kind, make_data(case)[0])


def loop_clients(numbers: object) -> None:
    """Train some clients in a process of the bare loop."""
    assert LOOP is not None
    LOOP.clients(numbers)


# ---------------------------------------------------------------------------------- the clock


def best_of(
    repeats: int,
    functions: Mapping[str, Callable[[], object]],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The best time of each function; they take turns."""
    best = dict.fromkeys(functions, float("inf"))
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            started = clock()
            function()
            best[name] = min(best[name], clock() - started)
    return best


def warm_up(function: Callable[[], object]) -> None:
    """Enough rounds for steps to be traced."""
    for _ in range(8):
        function()


def gemm_peak() -> float:
    """GFLOP/s of the best of a few square products, on one thread."""
    a = torch.randn(1536, 1536)
    best = best_of(8, {"gemm": lambda: a @ a})["gemm"]
    return 2 * 1536**3 / best / 1e9


def flops(case: Case) -> float:
    """Multiplications and additions of one round: forward, and twice that backward."""
    model, total = case.build(), 0

    def count(module: nn.Module, _: object, output: Tensor) -> None:
        nonlocal total
        per_output = module.weight[0].numel()  # type: ignore[operator, index, union-attr]
        total += 2 * per_output * output.numel()

    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    model(torch.zeros(1, *case.shape))
    return 3.0 * total * case.n_clients * case.epochs * CLIENT_SIZE


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
