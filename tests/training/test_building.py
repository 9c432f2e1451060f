"""Models built from the seed, and tried before anything is trained."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from polyurn.errors import ParameterError
from polyurn.training.building import LearningProblem, build
from polyurn.training.fedavg import FedAvg
from polyurn.training.federated import train
from training_cases import images, one_client, tabular, work


def test_convolutions_keep_their_channels_last_unless_the_model_cannot():
    class Viewing(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv2d(1, 4, 3)
            self.out = nn.Linear(144, 2)

        def forward(self, x):
            return self.out(self.convolution(x).view(-1, 144))

    assert any(s.channels_last for s in work("cnn", images()).layout.trained)
    assert not any(s.channels_last for s in work(Viewing, images()).layout.trained)
    run = train(
        FedAvg(n_rounds=1, cohort_size=1), Viewing, images(), one_client(2), seed=0, n_workers=1
    )
    assert run.engine == "workers"


def test_lazy_layers_find_their_shapes_and_start_from_the_seed():
    def lazy():
        return nn.Sequential(nn.LazyLinear(7), nn.ReLU(), nn.LazyLinear(3))

    data = tabular()
    one, same, other = (build(LearningProblem(lazy, data), seed=seed) for seed in (1, 1, 2))
    assert one[0].weight.shape == (7, data.features.shape[1])
    assert torch.equal(one[0].weight, same[0].weight)
    assert not torch.equal(one[0].weight, other[0].weight)


def test_a_model_that_cannot_take_the_points_is_refused_in_one_line():
    data = tabular()
    pixels = replace(
        data,
        features=np.ones(data.features.shape, dtype=np.uint8),
        test_features=np.ones(data.test_features.shape, dtype=np.uint8),
    )
    with pytest.raises(ParameterError, match=r"type uint8.*convert them to floats"):
        build(LearningProblem("softmax", pixels), seed=0)
    with pytest.raises(ParameterError, match=r"cannot take points of shape \(\d+,\)"):
        build(LearningProblem(lambda: nn.Linear(99, 3), data), seed=0)


@pytest.mark.parametrize(("dtype", "value"), [(torch.float32, 1e39), (torch.float16, -1e5)])
def test_numbers_that_the_models_type_cannot_hold_are_refused_with_their_position(dtype, value):
    data = tabular()
    features = data.features.copy()
    features[4, 2] = value
    features[3, 1] = np.inf  # was infinite before: training says that it diverges
    data = replace(data, test_features=features, test_labels=data.labels)
    with pytest.raises(ParameterError, match=r"test_features of at most .* \(4, 2\)"):
        build(LearningProblem(lambda: nn.Linear(5, 3, dtype=dtype), data), seed=0)


class Silent(nn.Module):
    def forward(self, x):
        raise ValueError


def test_models_that_say_nothing_or_cannot_be_copied_are_no_trouble():
    data = tabular()
    with pytest.raises(ParameterError, match="ValueError"):
        build(LearningProblem(Silent, data), seed=0)
    n = data.features.shape[1]
    old_style = build(LearningProblem(lambda: keeps_a_result(nn.Linear(n, 3)), data), seed=0)
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(old_style)
    lazy = build(LearningProblem(lambda: nn.LazyBatchNorm1d(affine=False), data), seed=0)
    assert lazy.running_mean.shape == (n,)


def keeps_a_result(layer):
    layer.last = layer.weight * 2
    return layer
