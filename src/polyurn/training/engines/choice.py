"""Which engine trains a model: a measured rule, unless the caller names one.

The rule was measured with `benchmarks/training_speed.py --rule`. Nothing is trained here.
"""

import copy
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import torch
from torch import nn

from polyurn.errors import ParameterError
from polyurn.memory import n_cores
from polyurn.training.engines.batched import BatchedEngine, stacked_gradients
from polyurn.training.engines.worker import Engine, LocalEngine, Work, alone, batch_norms
from polyurn.training.engines.worker_pool import ProcessEngine
from polyurn.training.fedavg import EngineName, FedAvg

# Dense models with fewer parameters are faster all at once: a step's arithmetic costs less than
# calling it. At 1,000, 8,000, 32,000, 64,000 and 190,000 parameters (softmax regression) one worker took
# 18, 11, 5.2, 3.4 and 1.2 times as long, so that the engines cross here with four or five cores.
# Stacked convolutions gain little on a CPU (1.9 times at 60,000 parameters).
LARGEST_BATCHED = 50_000


@contextmanager
def open_engine(
    name: EngineName, work: Work, settings: FedAvg, *, n_workers: int | None
) -> Iterator[Engine]:
    """The engine of that name, or the one that the rule chooses."""
    if settings.precision == "bfloat16":
        name = _with_bfloat16(name, work.points.device)
    if name == "auto":
        name = "batched" if suits_batching(work) else "workers"
    elif name == "batched" and (reason := why_not_batched(work)) is not None:
        raise ParameterError(f"engine 'batched' cannot train this model: {reason}")
    if name == "batched":
        yield BatchedEngine(work)
        return
    on_gpu = work.points.device.type != "cpu"
    if on_gpu and n_workers not in (None, 1):
        raise ParameterError("expected n_workers=1 on a GPU: the processes would share it")
    n = 1 if on_gpu else min(n_workers or n_cores(), settings.cohort_size)
    if n == 1:
        yield LocalEngine(work)
        return
    with closing(ProcessEngine(work, n_workers=n, cohort_size=settings.cohort_size)) as engine:
        yield engine


def _with_bfloat16(name: EngineName, device: torch.device) -> EngineName:
    """The engine that computes in bfloat16, if the processor does."""
    if name == "batched":
        raise ParameterError("precision 'bfloat16' needs the engine 'workers'")
    known = getattr(torch.cpu, "get_capabilities", dict)  # torch of before 2.10 cannot say
    has = known() if device.type == "cpu" else {"": device.type == "cuda"}
    if not any(has.get(one) for one in ("", "avx512_bf16", "amx_bf16", "arm_bf16", "bf16")):
        raise ParameterError("this processor does not compute in bfloat16: leave precision out")
    return "workers"


def suits_batching(work: Work) -> bool:
    """Whether "auto" takes the engine "batched".

    Not if one client has more points than all others together: they would wait for it, one by one.
    """
    small = work.layout.n_trained <= LARGEST_BATCHED
    convolves = any(isinstance(m, nn.modules.conv._ConvNd) for m in work.model.modules())
    sizes = work.clients.sizes
    lopsided = len(sizes) > 1 and sizes.max() > sizes.sum() / 2
    if not small or lopsided or (convolves and work.points.device.type == "cpu"):
        return False
    return why_not_batched(work) is None


def why_not_batched(work: Work) -> str | None:
    """What keeps a model from being trained for all clients at once; None if nothing does."""
    for norm in batch_norms(work.model):
        return f"{type(norm).__name__} mixes the points of a batch, which may be padding"
    points, device = work.points, work.points.device
    vectors = work.layout.pack(work.model).to(device).repeat(2, 2, 1)
    parameters = [slot.view(vectors) for slot in work.layout.trained]
    x, y = (t[:1].expand(2, 2, *t.shape[1:]) for t in (points.features, points.labels))
    try:
        # A copy: what a model keeps of the trial is a tensor of vmap's.
        model = copy.deepcopy(work.model).to(device).train()
        before = {name: (b, b._version) for name, b in model.named_buffers()}
        with alone():
            stacked_gradients(replace(work, model=model), several=True)(
                parameters, x, y, torch.ones(2, 2, dtype=work.layout.dtype, device=device)
            )
    except (RuntimeError, NotImplementedError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0]
    for name, found in model.named_buffers():
        if name not in before or found is not before[name][0] or found._version != before[name][1]:
            return f"it changes its buffer {name!r}, which every client has for itself"
    return None
