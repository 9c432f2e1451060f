"""Flower's simulation on the work of `training_speed.py`: one supernode per client, Ray below.

    python -c "import flower_training; flower_training.main('work.pt', 1, 3, 2)"

One warm-up round, three that count, two cores; one JSON object on the last line. It is imported rather
than run, because Ray's workers have to find the client by the name of its module.
"""

import json
import os
from functools import cache
from typing import Any

import torch
from clock import Clock
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import nn

client = ClientApp()


def main(path: str, n_warm_up: int, n_rounds: int, n_cores: int) -> None:
    """Train, and print what it took."""
    server, work = ServerApp(), opened(path)
    clock = Clock(os.getpid())
    found: dict[str, Any] = {}

    @server.main()
    def rounds(grid: Grid, context: Context) -> None:
        del context
        strategy = FedAvg(fraction_evaluate=0.0, min_available_nodes=work["n_clients"])
        found["result"] = strategy.start(
            grid,
            initial_arrays=ArrayRecord(work["model"].state_dict()),
            num_rounds=n_warm_up + n_rounds,
            train_config=ConfigRecord({"work": path}),
            evaluate_fn=lambda _, __: clock.mark(),
        )

    run_simulation(
        server_app=server,
        client_app=client,
        num_supernodes=work["n_clients"],
        backend_name="ray",
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {
                "num_cpus": n_cores,
                "log_to_driver": False,
                "include_dashboard": False,
            },
        },
    )
    work["model"].load_state_dict(found["result"].arrays.to_torch_state_dict())
    with torch.no_grad():
        loss = nn.functional.cross_entropy(work["model"](work["features"]), work["labels"]).item()
    metrics = found["result"].train_metrics_clientapp
    per_client = sum(metrics[round_]["n-steps"] for round_ in metrics)  # means over equal clients
    record = {  # the clock is also read before the first round
        "seconds": clock.seconds[1 + n_warm_up :],
        "processor_seconds": clock.processor_seconds[1 + n_warm_up :],
        "loss": loss,
        "n_steps": round(per_client * work["n_clients"]),
        "n_threads": int(metrics[1]["n-threads"]),
    }
    print(json.dumps(record), flush=True)


@client.train()
def train(message: Message, context: Context) -> Message:
    """One client's steps."""
    work = opened(str(message.content["config"]["work"]))
    model = work["model"]
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    number = int(context.node_config["partition-id"])
    x, y = (work[name].chunk(work["n_clients"])[number] for name in ("features", "labels"))
    optimizer = torch.optim.SGD(model.parameters(), lr=work["rate"])
    n_steps = 0
    for _ in range(work["epochs"]):
        for batch in torch.randperm(len(y)).split(work["batch_size"]):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
            n_steps += 1
    counts = {"num-examples": len(y), "n-steps": n_steps, "n-threads": torch.get_num_threads()}
    content = RecordDict(
        {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord(counts)}
    )
    return Message(content=content, reply_to=message)


@cache
def opened(path: str) -> dict[str, Any]:
    """The work, read once by each process."""
    work: dict[str, Any] = torch.load(path, weights_only=False)
    return work
