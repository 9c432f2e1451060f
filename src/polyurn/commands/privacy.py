"""`polyurn privacy`: what differential privacy would cost, before anything is spent."""

from pathlib import Path

import polyurn as pu
from polyurn.commands.console import print_json, say, show
from polyurn.commands.declare import option
from polyurn.commands.options import AS_JSON, SEED, RelabelOptions


def plan_command(
    *,
    clients: int = option(..., "Approximate number of clients."),
    categories: int = option(..., "Number of categories, C."),
    components: int = option(3, "Number of components, K."),
    size: int = option(20, "Number of points of a client."),
    epsilon: str = option("0.5,1,2,4", "Values of epsilon, with commas."),
    delta: float | None = option(None, "Delta; default: clients^-1.1."),
    like: Path | None = option(
        None, "MDM file, or zoo:NAME, to draw clients from; default: random mixtures."
    ),
    laid: RelabelOptions,
    runs: int = option(3, "Number of federations to simulate."),
    seed: int = SEED,
    as_json: bool = AS_JSON,
) -> None:
    """Simulate what differential privacy would cost, in nats per client.

    It simulates federations and fits each with every epsilon. No client is asked, and nothing is spent.

    Example: `polyurn privacy plan --clients 20000 --categories 10 --components 3`
    """
    from polyurn.commands.views import read_model, table_of
    from polyurn.errors import ParameterError
    from polyurn.server.private.planning import expected_losses
    from polyurn.typed.json_form import to_json

    try:
        epsilons = [float(part) for part in epsilon.split(",")]
    except ValueError:
        raise ParameterError(
            f"expected --epsilon as numbers with commas, got {epsilon!r}"
        ) from None
    mdm = None
    if like is not None:
        saved = read_model(like)
        asked = laid.asked(like)
        mdm = (
            laid.relabelled(saved, categories, seed=seed) if asked else laid.resized(saved)
        ).model
    losses = expected_losses(
        pu.LocalAggregator, epsilons, n_clients=clients, n_categories=categories,
        n_components=components, size=size, delta=delta, n_runs=runs,
        like=mdm, rng=seed, on_run=say,
    )  # fmt: skip
    if as_json:
        print_json({"losses": [to_json(loss) for loss in losses]})
        return
    names = ["no privacy" if loss.epsilon is None else f"{loss.epsilon:g}" for loss in losses]
    rows = [
        (name, f"{loss.mean:.4f}", f"{loss.worst:.4f}", f"{loss.single:.4f}")
        for name, loss in zip(names, losses, strict=True)
    ]
    title = f"{clients:,} clients, {categories} categories, {components} components"
    heads = ("epsilon", "expected loss, nats per client", "worst run", "one component loses")
    show(table_of(title, heads, rows))
