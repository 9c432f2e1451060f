"""The server averages weights and tests them after each round."""

import torch
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from digits_app.task import network, test

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Federated averaging over random cohorts."""
    torch.set_num_threads(1)
    config, model = context.run_config, network(int(context.run_config["seed"]))
    cohort = int(config["cohort-size"])
    # A cohort of a fixed size: the fraction is of all nodes, and rounded down.
    strategy = FedAvg(
        fraction_train=1e-9,
        fraction_evaluate=0.0,
        min_train_nodes=cohort,
        min_available_nodes=cohort,
    )

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        model.load_state_dict(arrays.to_torch_state_dict())
        return MetricRecord(test(model))

    strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(model.state_dict()),
        num_rounds=int(config["num-server-rounds"]),
        evaluate_fn=evaluate,
    )
