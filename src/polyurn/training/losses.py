"""Losses and metrics: functions of a batch that return one value per example.

One value each, not their mean, so that engines can leave padding out and a mean over test points
does not depend on how they were cut into batches. Any function of that kind can be passed.
"""

from collections.abc import Callable

import torch
from torch import Tensor

PerExample = Callable[[Tensor, Tensor], Tensor]
"""(outputs, labels) of n examples → n values."""


def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """Minus the log-probability of each label.

    Parameters
    ----------
    outputs : tensor of shape (n, n_classes)
        Logits.
    labels : int tensor of shape (n,)

    Examples
    --------
    >>> cross_entropy(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor([1.3863, 1.3863])
    """
    logs = torch.log_softmax(outputs, dim=1)
    return -logs.gather(1, labels.unsqueeze(1)).squeeze(1)


def accuracy(outputs: Tensor, labels: Tensor) -> Tensor:
    """1 where the largest output is the label's, 0 elsewhere.

    Examples
    --------
    >>> accuracy(torch.eye(2), torch.tensor([0, 0]))
    tensor([1., 0.])
    """
    return (outputs.argmax(dim=1) == labels).to(outputs.dtype)


def squared_error(outputs: Tensor, labels: Tensor) -> Tensor:
    """The squared error of each example, averaged over its outputs.

    Examples
    --------
    >>> squared_error(torch.tensor([[1.0], [2.0]]), torch.tensor([0.0, 0.0]))
    tensor([1., 4.])
    """
    errors = (outputs.reshape(len(outputs), -1) - labels.reshape(len(labels), -1)) ** 2
    return errors.mean(dim=1)
