"""A client trains the server's weights on its points."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from digits_app.task import clients, network, train

app = ClientApp()


@app.train()
def train_client(message: Message, context: Context) -> Message:
    """The weights after local training, and the number of points that they count for."""
    torch.set_num_threads(1)
    config, model = context.run_config, network(0)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    held = clients().load_partition(int(context.node_config["partition-id"]))[:]
    order = hash((config["seed"], message.content["config"]["server-round"], context.node_id))
    torch.manual_seed(order % 2**63)
    loss = train(
        model,
        held["image"],
        held["label"],
        epochs=int(config["local-epochs"]),
        rate=float(config["learning-rate"]),
        batch=int(config["batch-size"]),
    )
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(held["label"])})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content, reply_to=message)
