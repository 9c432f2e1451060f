"""Learn a mixture in one call: one K or several to choose from, from exact sums or with noise.

The result is what a file keeps, whichever way it was learned, from clients that are played in this
process or from the nodes of a federation.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from polyurn.errors import ParameterError
from polyurn.server.fit_results import Fit, Selection
from polyurn.server.fitting import fit, select
from polyurn.server.paper import fit_paper
from polyurn.wire import Aggregator

if TYPE_CHECKING:  # a fit with exact sums does not wait for the private one to be loaded
    from polyurn.server.private.private_fit import PrivateSelection

Components: TypeAlias = Sequence[int] | Literal["auto"]

HELD_OUT = 0.2  # the share of clients that scores, where none is given


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
    max_rounds: int = 50,
    tol: float = 1e-3,
    patience: int = 3,
    max_upload: int = 50_000,
    cohort_size: int | None = None,
    sizes: Any = None,
    size_prior: float | None = None,
    category_prior: float | None = None,
    rng: int = 0,
    on_round: Callable[[Any], None] | None = None,
) -> "Fit | Selection | PrivateSelection":
    """Fit one number of components, or choose among several; None stands for the method's default.

    One number with a `held_out` share is a choice of one, which held-out clients score. Clients of a
    share that was asked for are never fitted; those of the default share are, once they have chosen. The
    other parameters are those of `fit`, `fit_paper`, `select`, `fit_private` and `select_private`.
    """
    model = {"sizes": sizes, "size_prior": size_prior, "category_prior": category_prior}
    common: dict[str, Any] = {name: value for name, value in model.items() if value is not None}
    common |= {"n_categories": n_categories, "max_size": max_size, "on_round": on_round}
    if epsilon is not None:
        from polyurn.server.private.private_fit import fit_private, select_private

        common |= {"epsilon": epsilon, "delta": delta, "rng": rng}
        if components == "auto":
            raise ParameterError("expected --components as 1:6 or 2,4,8 with --epsilon, got auto")
        if selects(components):
            return select_private(aggregator, components, **common)
        return fit_private(aggregator, n_components=components[0], **common)
    common["cohort_size"] = cohort_size
    if method == "paper":
        return fit_paper(
            aggregator, n_components=int(components[0]), n_rounds=max_rounds, moments=moments,
            **common,
        )  # fmt: skip
    common |= {"max_rounds": max_rounds, "tol": tol, "patience": patience, "rng": rng}
    common["max_upload"] = max_upload
    if selects(components, held_out):
        share = HELD_OUT if held_out is None else held_out
        return select(aggregator, components, held_out=share, refit=held_out is None, **common)
    return fit(aggregator, n_components=int(components[0]), **common)
