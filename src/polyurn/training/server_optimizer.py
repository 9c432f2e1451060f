"""The server's step: the mean update becomes the gradient of any optimiser of torch.

Parameters keep their shapes, so that optimisers that look at whole matrices work too. Clients are not
known here.
"""

from typing import Any

import torch
from torch import Tensor

from polyurn.errors import ParameterError
from polyurn.training.engines.vectors import VectorLayout
from polyurn.training.fedavg import FedAvg
from polyurn.typed.arguments import check_options
from polyurn.typed.json_form import shown


class Server:
    """Moves one vector of weights, of shape (size,), in place."""

    def __init__(self, settings: FedAvg, layout: VectorLayout, weights: Tensor) -> None:
        self._weights = weights
        self._kept = slice(layout.n_trained, layout.size)
        self._rate = settings.server_learning_rate
        self._plain = _is_plain(settings)
        if self._plain:
            return
        self._gradient = torch.zeros_like(weights)
        parameters = []
        for slot in layout.trained:
            parameter = torch.nn.Parameter(slot.view(weights))
            parameter.grad = slot.view(self._gradient)
            parameters.append(parameter)
        self._optimizer = getattr(torch.optim, settings.server_optimizer)(
            parameters, lr=settings.server_learning_rate, **settings.server_options
        )

    def step(self, update: Tensor) -> None:
        """One step along the mean update; what is not trained takes the mean as it is."""
        self._weights[self._kept] += update[self._kept]
        if self._plain:
            self._weights[: self._kept.start].add_(update[: self._kept.start], alpha=self._rate)
        else:
            torch.neg(update, out=self._gradient)
            self._optimizer.step()


def _is_plain(settings: FedAvg) -> bool:
    """Whether a step is one line of arithmetic: torch.optim takes two seconds to import."""
    return settings.server_optimizer == "SGD" and not settings.server_options


def check_server(settings: FedAvg, layout: VectorLayout, weights: Tensor) -> None:
    """Raise a `ParameterError` if the optimiser cannot be made, or cannot take a step."""
    if _is_plain(settings):
        return
    name = f"torch.optim.{settings.server_optimizer}"
    class_ = _optimizer_class(settings.server_optimizer)
    check_options(name, class_, settings.server_options, ours=("params", "lr"))
    copy = weights.clone()
    try:
        Server(settings, layout, copy).step(torch.zeros_like(copy))
    except (RuntimeError, TypeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ParameterError(
            f"{name}: {reason}; check server_options and server_learning_rate"
        ) from error


def _optimizer_class(name: str) -> Any:
    """A class of torch.optim that takes a step without asking for the loss again, as LBFGS does."""
    base = torch.optim.Optimizer
    kinds = [k for k in vars(torch.optim).values() if isinstance(k, type) and issubclass(k, base)]
    known = sorted({kind.__name__ for kind in kinds} - {"Optimizer", "LBFGS"})
    if name not in known:
        raise ParameterError(
            f"torch.optim has no optimiser {shown(name)} for a server, which cannot compute the loss "
            f"again; expected one of {', '.join(known)}"
        )
    return getattr(torch.optim, name)
