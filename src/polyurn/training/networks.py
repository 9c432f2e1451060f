"""Models to start with: softmax regression, a perceptron, and the paper's convolutional network.

Anything that builds a `torch.nn.Module` can be trained; these three are a convenience.
"""

import math
from collections.abc import Callable, Sequence

from torch import nn

from polyurn.errors import ParameterError
from polyurn.typed.json_form import shown

ModelFunction = Callable[[], nn.Module]


def softmax_regression(input_shape: Sequence[int], n_classes: int) -> nn.Module:
    """Logits that are linear in the features.

    >>> import torch
    >>> softmax_regression((8, 8), 10)(torch.zeros(2, 8, 8)).shape
    torch.Size([2, 10])
    """
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), n_classes))


def perceptron(
    input_shape: Sequence[int], n_classes: int, *, hidden: Sequence[int] = (64,)
) -> nn.Module:
    """Dense hidden layers with ReLU.

    >>> import torch
    >>> perceptron((16,), 3, hidden=(8, 8))(torch.zeros(5, 16)).shape
    torch.Size([5, 3])
    """
    layers: list[nn.Module] = [nn.Flatten()]
    n_inputs = math.prod(input_shape)
    for n_outputs in hidden:
        layers += [nn.Linear(n_inputs, n_outputs), nn.ReLU()]
        n_inputs = n_outputs
    return nn.Sequential(*layers, nn.Linear(n_inputs, n_classes))


def convolutional(
    input_shape: Sequence[int],
    n_classes: int,
    *,
    channels: tuple[int, int] = (32, 64),
    hidden: int = 128,
) -> nn.Module:
    """The paper's kind of network: two 3 x 3 convolutions, one dense hidden layer, ReLU.

    The paper gives no sizes. These are common for FEMNIST: 1,206,590 parameters at 28 x 28 with 62
    classes.

    `input_shape` is (n_channels, height, width), or (height, width) for one channel.

    >>> import torch
    >>> model = convolutional((28, 28), 62)
    >>> sum(p.numel() for p in model.parameters())
    1206590
    >>> convolutional((3, 32, 32), 10)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    shape = (1, *input_shape) if len(input_shape) == 2 else tuple(input_shape)
    if len(shape) != 3 or min(shape[1:]) < 6:
        raise ParameterError(f"expected images of at least 6 x 6 pixels, got shape {input_shape}")
    pooled = channels[1] * ((shape[1] - 4) // 2) * ((shape[2] - 4) // 2)
    return nn.Sequential(
        nn.Unflatten(1, (1, input_shape[0])) if len(input_shape) == 2 else nn.Identity(),
        nn.Conv2d(shape[0], channels[0], 3),
        nn.ReLU(),
        nn.Conv2d(channels[0], channels[1], 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(pooled, hidden),
        nn.ReLU(),
        nn.Linear(hidden, n_classes),
    )


MODELS = {"softmax": softmax_regression, "mlp": perceptron, "cnn": convolutional}


def named_model(name: str, input_shape: Sequence[int], n_classes: int) -> ModelFunction:
    """A function that builds one of `MODELS` for these shapes."""
    if name not in MODELS:
        raise ParameterError(f"expected a model out of {', '.join(MODELS)}, got {shown(name)}")
    build = MODELS[name]
    return lambda: build(tuple(input_shape), n_classes)
