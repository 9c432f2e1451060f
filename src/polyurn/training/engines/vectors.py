"""A model's numbers as one flat vector: parameters first, then what is averaged but not trained.

Every tensor starts at a multiple of 16 numbers, which keeps it aligned. Weights of convolutions may
lie with their channels last, which torch's CPU kernels prefer. Nothing is trained here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from polyurn.errors import ParameterError

_ALIGNMENT = 16
_LARGEST_EXACT = 2**24  # whole numbers above it do not all fit into a float32


@dataclass(frozen=True)
class Slot:
    """Where one tensor of the model stands in the vector."""

    name: str
    shape: torch.Size
    start: int
    stop: int
    dtype: torch.dtype
    channels_last: bool

    def view(self, vectors: Tensor) -> Tensor:
        """The tensor inside a vector of shape (..., size): a view of shape (..., *shape)."""
        piece = vectors[..., self.start : self.stop]
        if not self.channels_last:
            return piece.view((*vectors.shape[:-1], *self.shape))
        n, channels, height, width = self.shape
        stored = piece.view(*vectors.shape[:-1], n, height, width, channels)
        return stored.movedim(-1, -3)


@dataclass(frozen=True)
class VectorLayout:
    """How a model becomes a vector, whose first `n_trained` numbers hold the slots `trained`.

    `trained` are parameters with gradients; `kept` are frozen parameters and buffers, which are averaged
    over clients and not touched by an optimiser.
    """

    trained: tuple[Slot, ...]
    kept: tuple[Slot, ...]
    n_trained: int
    size: int
    dtype: torch.dtype

    def pack(self, model: nn.Module) -> Tensor:
        """The model's numbers, copied into a new vector of shape (size,)."""
        vector = torch.zeros(self.size, dtype=self.dtype)
        tensors = dict(_tensors(model))
        for slot in (*self.trained, *self.kept):
            slot.view(vector).copy_(tensors[slot.name].detach())
        return vector

    def bind(self, model: nn.Module, vector: Tensor) -> None:
        """Let the model live in the vector: its tensors become views, its counters copies."""
        tensors = dict(_tensors(model))
        for slot in (*self.trained, *self.kept):
            if slot.dtype == self.dtype:
                tensors[slot.name].data = slot.view(vector)

    def load_counters(self, model: nn.Module, vector: Tensor) -> None:
        """Copy the tensors of another type (whole numbers, say) from the vector, rounded."""
        slots = [slot for slot in self.kept if slot.dtype != self.dtype]
        tensors = dict(_tensors(model)) if slots else {}
        for slot in slots:
            value = slot.view(vector)
            tensors[slot.name].copy_(value if slot.dtype.is_floating_point else value.round())

    def take_buffers(self, model: nn.Module, vector: Tensor) -> None:
        """Copy buffers of another type into the vector, and those that the model replaced
        (`self.mean = ...`), which are bound again.
        """
        buffers = dict(model.named_buffers()) if self.kept else {}
        for slot in self.kept:
            view, found = slot.view(vector), buffers.get(slot.name)
            if found is None or found.data_ptr() == view.data_ptr():
                continue
            if found.shape != slot.shape:
                raise ParameterError(
                    f"the buffer {slot.name!r} changed its shape from {tuple(slot.shape)} to "
                    f"{tuple(found.shape)}, which cannot be averaged"
                )
            view.copy_(found.detach())
            if slot.dtype == self.dtype:
                owner, _, leaf = slot.name.rpartition(".")
                setattr(model.get_submodule(owner), leaf, view)

    def state(self, vector: Tensor) -> dict[str, Tensor]:
        """The vector's tensors by name, as `load_state_dict(..., strict=False)` takes them."""
        state = {}
        for slot in (*self.trained, *self.kept):
            value = slot.view(vector).detach()
            rounded = value if slot.dtype.is_floating_point else value.round()
            state[slot.name] = rounded.to(slot.dtype).contiguous().clone()
        return state


def layout(model: nn.Module, *, channels_last: bool = False) -> VectorLayout:
    """The layout of a model; `channels_last` is the order of its four-dimensional weights in memory."""
    types = {p.dtype for p in model.parameters() if p.requires_grad}
    if len(types) != 1 or not next(iter(types)).is_floating_point:
        raise ParameterError(
            "expected a model with trainable parameters of one floating-point type, "
            f"got {', '.join(sorted(map(str, types))) or 'none'}"
        )
    tensors = list(_tensors(model))
    start, slots = 0, []
    for has_gradient in (True, False):
        for name, tensor in tensors:
            if tensor.requires_grad is not has_gradient:
                continue
            _check_exact(name, tensor)
            last = channels_last and has_gradient and tensor.dim() == 4
            stop = start + tensor.numel()
            slots.append(Slot(name, tensor.shape, start, stop, tensor.dtype, last))
            start = -(-stop // _ALIGNMENT) * _ALIGNMENT
        if has_gradient:
            trained, n_trained = tuple(slots), start
            slots = []
    return VectorLayout(trained, tuple(slots), n_trained, start, types.pop())


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _check_exact(name: str, tensor: Tensor) -> None:
    whole = not tensor.dtype.is_floating_point and tensor.numel() > 0
    if whole and int(tensor.abs().max() if tensor.dtype != torch.bool else 1) > _LARGEST_EXACT:
        raise ParameterError(
            f"the buffer {name!r} holds whole numbers above 2**24, which cannot be averaged"
        )
