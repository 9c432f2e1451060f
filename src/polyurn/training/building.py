"""A model with its initial weights, tried on two points, and the data as tensors of its type.

Nothing is trained here.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from polyurn.errors import ParameterError
from polyurn.partitioning.result import Partition
from polyurn.training import schedule
from polyurn.training.engines.vectors import layout
from polyurn.training.engines.worker import TensorPoints, Work, alone
from polyurn.training.examples import Examples, class_labels
from polyurn.training.fedavg import EngineName
from polyurn.training.losses import PerExample, accuracy, cross_entropy
from polyurn.training.networks import ModelFunction, named_model
from polyurn.typed.json_form import shown


@dataclass(frozen=True, eq=False)
class LearningProblem:
    """What is trained, on which data, and how that is measured; see `train`."""

    model: ModelFunction | str
    data: Examples
    loss: PerExample = cross_entropy
    metrics: Mapping[str, PerExample] = field(default_factory=lambda: {"accuracy": accuracy})
    engine: EngineName = "auto"
    device: str | None = None


def prepare(problem: LearningProblem, clients: Partition, *, seed: int) -> Work:
    """The model with its first weights, and the data as tensors of its type, on the device."""
    module, data, device = build(problem, seed=seed), problem.data, problem.device
    try:
        target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise ParameterError(
            f"expected device as torch names one ('cpu', 'cuda', ...), got {shown(device)}"
        ) from error
    dtype = layout(module).dtype
    points = TensorPoints(
        *(
            _tensor(array, dtype).to(target)
            for array in (data.features, data.labels, data.test_features, data.test_labels)
        )
    )
    found = layout(module, channels_last=_takes_channels_last(module, points))
    return Work(module, found, points, clients, problem.loss, dict(problem.metrics), seed)


def build(problem: LearningProblem, *, seed: int) -> nn.Module:
    """The model with the first weights of a seed, whose outputs suit the labels."""
    model, data = problem.model, problem.data
    if isinstance(model, nn.Module) or not (isinstance(model, str) or callable(model)):
        raise ParameterError(
            f"expected a model's name, or a function that builds one, got {shown(model)}"
        )
    if isinstance(model, str):
        model = named_model(model, data.features.shape[1:], n_classes(data))
    with alone():
        torch.manual_seed(schedule.start(seed=seed))
        module = model()
        if not isinstance(module, nn.Module):
            raise ParameterError(
                f"expected model() to return a torch.nn.Module, got {type(module)}"
            )
        outputs = _try(module, data.features[:2])
    _check_range(data, _some_float(module).dtype)
    if problem.loss is cross_entropy and isinstance(outputs, Tensor) and outputs.ndim == 2:
        for name in ("labels", "test_labels"):
            class_labels(getattr(data, name), name, n_classes=outputs.shape[1])
    return module


def _check_range(data: Examples, dtype: torch.dtype) -> None:
    """Refuse finite numbers that would be infinite in the model's type."""
    largest = torch.finfo(dtype).max
    for name in ("features", "labels", "test_features", "test_labels"):
        array = getattr(data, name)
        if array.dtype.kind != "f" or array.dtype.itemsize <= dtype.itemsize:
            continue
        beyond = np.isfinite(array) & (np.abs(array) > largest)
        if beyond.any():
            index = np.unravel_index(int(beyond.argmax()), array.shape)
            raise ParameterError(
                f"expected {name} of at most {largest:.3g}, the largest number that the model's type "
                f"has, got {array[index]:g} at position {tuple(map(int, index))}; scale the data"
            )


def _try(module: nn.Module, points: np.ndarray[Any, np.dtype[Any]]) -> object:
    """Give the model two points: lazy layers find their shapes, and what cannot work is said early.

    Only a lazy model is called itself; one that cannot be copied is left to training.
    """
    tensors = [*module.parameters(), *module.buffers()]
    tried = module
    if not any(is_lazy(tensor) for tensor in tensors):
        try:
            tried = copy.deepcopy(module)
        except (RuntimeError, TypeError):  # it keeps a result or a handle
            return None
    like = _some_float(module)
    training = module.training
    try:
        with torch.no_grad():
            return tried.eval()(_tensor(points, like.dtype).to(like.device))
    except (RuntimeError, ValueError, IndexError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        whole = points.dtype.kind != "f"
        advice = (
            "if they are measurements, convert them to floats"
            if whole
            else "give it points that it expects, or choose another model"
        )
        raise ParameterError(
            f"the model cannot take points of shape {points.shape[1:]} and type {points.dtype}: "
            f"{reason}; {advice}"
        ) from error
    finally:
        tried.train(training)


def _some_float(module: nn.Module) -> Tensor:
    """A tensor of the type and on the device that points should have."""
    tensors = [*module.parameters(), *module.buffers()]
    return next((t for t in tensors if t.dtype.is_floating_point), torch.empty(0))


def n_classes(data: Examples) -> int:
    """One more than the largest label, which a named model has outputs for."""
    return 1 + max(
        int(class_labels(getattr(data, name), name).max()) for name in ("labels", "test_labels")
    )


def _tensor(array: np.ndarray[Any, np.dtype[Any]], dtype: torch.dtype) -> Tensor:
    if array.dtype.kind == "f":
        return torch.tensor(array, dtype=dtype)
    return torch.tensor(array, dtype=torch.int64)


def _takes_channels_last(module: nn.Module, points: TensorPoints) -> bool:
    """Whether convolutions may keep their channels last: 1.4 times as fast on a CPU.

    A model that calls `view` on what a convolution returns cannot; it is tried on two points.
    """
    if not any(isinstance(layer, nn.Conv2d) for layer in module.modules()):
        return False
    trial = layout(module, channels_last=True)
    before = trial.pack(module)
    training = module.training
    trial.bind(module, before.clone())
    try:
        with torch.no_grad():
            module.eval()(points.test_features[:2].cpu().clone())
    except RuntimeError:
        return False
    finally:
        trial.bind(module, before)
        module.train(training)
    return True
