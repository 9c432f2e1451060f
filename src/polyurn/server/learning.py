"""Learn a mixture in one call: one K or several to choose from, from exact sums or with noise.

The result is what a file keeps, whichever way it was learned, from clients that are played in this
process or from the nodes of a federation.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from polyurn.model.mdm import MDM
from polyurn.model.trees import Tree
from polyurn.server.fit_results import Fit
from polyurn.server.fit_settings import Settings, Shape
from polyurn.server.fitting import fit_sums
from polyurn.server.paper import fit_paper
from polyurn.wire import Aggregator

# What "auto" offers where every K has noise of its own.
PRIVATE_GRID = range(1, 7)

Components: TypeAlias = Sequence[int] | Literal["auto"]


def selects(components: Components, held_out: float | None = None) -> bool:
    """Whether held-out clients are needed: for several numbers of components, or to score one."""
    return components == "auto" or len(components) > 1 or held_out is not None


def learn(
    aggregator: Aggregator,
    components: Components,
    *,
    n_categories: int,
    max_size: int,
    method: Literal["search", "paper"] = "search",
    moments: Literal["first", "most_frequent", "pooled"] = "first",
    epsilon: float | None = None,
    delta: float | None = None,
    held_out: float | None = None,
    at_once: bool = True,
    shape: Shape = "auto",
    tree: Tree | None = None,
    max_rounds: int = 50,
    tol: float = 1e-3,
    patience: int = 3,
    max_upload: int = 50_000,
    cohort_size: int | None = None,
    sizes: Any = None,
    size_prior: float | None = None,
    category_prior: float | None = None,
    start: MDM | None = None,
    rng: int = 0,
    on_round: Callable[[Any], None] | None = None,
) -> Fit:
    """Fit one number of components, or choose among several; None stands for the method's default.

    One number with a `held_out` share is a choice of one, which held-out clients score. Clients of a
    share that was asked for are never fitted; those of the default share are, once they have chosen. The
    other parameters are those of `fit_sums`, `fit_paper` and `fit_private`: which of them have no effect
    together is stated, and refused, where the commands declare their options.
    """
    model = {"sizes": sizes, "size_prior": size_prior, "category_prior": category_prior}
    common: dict[str, Any] = {name: value for name, value in model.items() if value is not None}
    common |= {"n_categories": n_categories, "max_size": max_size, "on_round": on_round}
    if epsilon is not None:
        from polyurn.server.private.private_fit import fit_private

        offered = PRIVATE_GRID if components == "auto" else components
        several = selects(components)
        common |= {"epsilon": epsilon, "delta": delta}
        return fit_private(
            aggregator, n_components=offered if several else int(offered[0]), rng=rng, **common,
        )  # fmt: skip
    if method == "paper":
        return fit_paper(
            aggregator, n_components=int(components[0]), n_rounds=max_rounds, moments=moments,
            cohort_size=cohort_size, **common,
        )  # fmt: skip
    settings = Settings(
        max_rounds=max_rounds, cohort_size=cohort_size, tol=tol, patience=patience,
        max_upload=max_upload, shape=shape, tree=tree,
    )  # fmt: skip
    one = not selects(components, held_out)
    return fit_sums(
        aggregator, int(components[0]) if one else components, settings=settings, held_out=held_out,
        at_once=at_once, start=start, rng=rng, **common,
    )  # fmt: skip
