"""The server's step: the mean update becomes the gradient of any optimiser of torch.

Parameters keep their shapes, so that optimisers that look at whole matrices work too. Clients are not
known here.
"""

import inspect
from typing import Any

import torch
from torch import Tensor

from polyurn.errors import ParameterError
from polyurn.training.engines.vectors import Layout
from polyurn.training.settings import FedAvg


class Server:
    """Moves one vector of weights, in place.

    Parameters
    ----------
    settings : FedAvg
    layout : Layout
    weights : tensor of shape (size,)
    """

    def __init__(self, settings: FedAvg, layout: Layout, weights: Tensor) -> None:
        self._weights = weights
        self._kept = slice(layout.n_trained, layout.size)
        self._rate = settings.server_learning_rate
        self._plain = settings.server_optimizer == "SGD" and not settings.server_options
        if self._plain:  # one line of arithmetic, and torch.optim takes two seconds to import
            return
        self._gradient = torch.zeros_like(weights)
        parameters = []
        for slot in layout.trained:
            parameter = torch.nn.Parameter(slot.view(weights))
            parameter.grad = slot.view(self._gradient)
            parameters.append(parameter)
        self._optimizer = _optimizer(settings, parameters)

    def step(self, update: Tensor) -> None:
        """One step along the mean update; what is not trained takes the mean as it is."""
        self._weights[self._kept] += update[self._kept]
        if self._plain:
            self._weights[: self._kept.start].add_(update[: self._kept.start], alpha=self._rate)
        else:
            torch.neg(update, out=self._gradient)
            self._optimizer.step()


def check_server(settings: FedAvg, layout: Layout, weights: Tensor) -> None:
    """Raise a `ParameterError` if the optimiser cannot be made, or cannot take a step."""
    copy = weights.clone()
    server = Server(settings, layout, copy)
    try:
        server.step(torch.zeros_like(copy))
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(f"torch.optim.{settings.server_optimizer}: {reason}") from error


def _optimizer(settings: FedAvg, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    made: Any = getattr(torch.optim, settings.server_optimizer, None)
    bases = made.__mro__ if isinstance(made, type) else ()
    if torch.optim.Optimizer not in bases:
        raise ParameterError(f"torch.optim has no optimiser {settings.server_optimizer!r}")
    closure = inspect.signature(made.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ParameterError(
            f"{settings.server_optimizer} asks for the loss again; a server has none"
        )
    try:
        optimizer: torch.optim.Optimizer = made(
            parameters, lr=settings.server_learning_rate, **settings.server_options
        )
    except (RuntimeError, TypeError, ValueError) as error:
        raise ParameterError(f"torch.optim.{settings.server_optimizer}: {error}") from error
    return optimizer
