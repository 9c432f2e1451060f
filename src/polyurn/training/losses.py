"""Losses and metrics: functions of a batch that return one value per example.

One value each, not their mean, so that engines can leave padding out and a mean over test points
does not depend on how they were cut into batches. Any function of that kind can be passed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polyurn.errors import MissingDependencyError, ParameterError

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise MissingDependencyError("torch", "train", "a loss or metric") from error

from polyurn.training.examples import class_labels
from polyurn.typed.arguments import checked
from polyurn.typed.arrays import floats

PerExample = Callable[[Tensor, Tensor], Tensor]
"""(outputs, labels) of n examples → n values."""


def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """Minus the log-probability of each label, of logits of shape (n, n_classes) and labels of shape
    (n,).

    >>> cross_entropy(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor([1.3863, 1.3863])
    """
    logs = torch.log_softmax(outputs, dim=1)
    return -logs.gather(1, labels.unsqueeze(1)).squeeze(1)


def accuracy(outputs: Tensor, labels: Tensor) -> Tensor:
    """1 where the largest output is the label's, 0 elsewhere.

    >>> accuracy(torch.eye(2), torch.tensor([0, 0]))
    tensor([1., 0.])
    """
    return (outputs.argmax(dim=1) == labels).to(outputs.dtype)


@dataclass(frozen=True)
class Weighted:
    """A metric in which each class has a weight, of shape (n_classes,); made by `weighted`."""

    metric: PerExample
    weights: tuple[float, ...]

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The metric of each example times its class's weight."""
        values = self.metric(outputs, labels)
        weights = torch.tensor(self.weights, dtype=values.dtype, device=values.device)
        return values * weights[labels]


@checked
def weighted(metric: PerExample, *, to: ArrayLike, of: ArrayLike) -> Weighted:
    """The metric on a test whose classes are as frequent as the clients'.

    Each test point counts as the frequency of its class in `to` over that in `of`, so that the mean over
    the test points is the metric on such a test. Report it beside the metric on the test as it is: a
    wrong population can look right on one of them by two errors that cancel.

    Parameters
    ----------
    metric : function (outputs, labels) → one value per example
    to : float array of shape (n_classes,)
        How frequent each class is among the clients: counts or probabilities.
    of : int array of shape (n_test,)
        The test labels.

    Returns
    -------
    Weighted
        A metric as `train` and `sweep` take them.

    Raises
    ------
    ParameterError
        A class that the clients hold is missing in the test.

    Examples
    --------
    >>> fair = weighted(accuracy, to=[30, 10], of=[0, 0, 1, 1])
    >>> fair.weights
    (1.5, 0.5)
    >>> fair(torch.tensor([[1.0, 0.0]] * 4), torch.tensor([0, 0, 1, 1])).mean()
    tensor(0.7500)
    """
    given = floats(to, "to")
    if given.ndim != 1 or len(given) == 0:
        raise ParameterError(f"expected to of shape (n_classes,), got shape {given.shape}")
    if not (np.isfinite(given).all() and (given >= 0).all() and given.sum() > 0):
        raise ParameterError("expected to as counts or probabilities of classes, not all of them 0")
    labels = class_labels(of, "of")
    if len(labels) == 0:
        raise ParameterError("expected of as the labels of test points, got none")
    if labels.max() >= len(given):
        raise ParameterError(
            f"expected to with a frequency for each class of the test, got {len(given)} of them and "
            f"the test label {labels.max()}; add a 0 for each class that the clients do not hold"
        )
    tested = np.bincount(labels, minlength=len(given)) / len(labels)
    missing = np.flatnonzero((given > 0) & (tested == 0))
    if len(missing):
        raise ParameterError(
            "expected test points of every class that the clients hold, got none of class "
            f"{missing[0]}; test on points of that class, too, or leave the class out of to"
        )
    share = given / given.sum()
    weights = np.divide(share, tested, out=np.zeros(len(given)), where=tested > 0)
    return Weighted(metric, tuple(weights.tolist()))
