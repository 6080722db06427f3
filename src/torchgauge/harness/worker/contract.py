"""What a result promises beside its numbers: structure, types, devices, gradients, strides and memory.

Code that uses a model relies on these. The promise is eager's: what compiled code returns is compared with
what eager returned on the same device. An aspect in which eager's own results differ is not promised.
"""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import torch

from torchgauge.harness.backends.prepared import DEVICE, GRADIENT, MEMORY, REUSE, STRIDES, STRUCTURE
from torchgauge.suites.leaves import MOST_LEAVES, leaves, nodes
from torchgauge.suites.placing import named

SHAPE = "shape"
"""The aspect that decides whether strides are compared: those of unequal shapes are not."""
NOT_PROMISED = "not_promised"
"""The fact that names a broken aspect of eager's contract that the back end does not promise to keep."""
CALLS = 4
"""Number of calls in an observation whose results are recorded."""
HELD = 10
"""Number of results whose memory is held, so that no allocator reuses it."""

COMPUTED = "computed"
"""The aspect of a lazy part, which computes when it is read: a timed step would end before that."""
READ = "outputs_read"
"""The fact that names the lazy parts of eager's results, which timed steps therefore read."""
_TENSORS = (torch.Tensor, torch.nn.Parameter)
_READING = ("__getattribute__", "__getitem__", "__iter__", "items", "__len__", "__array__")
_TRUSTED = frozenset({"builtins", "torch", "transformers", "numpy", *sys.stdlib_module_names})
"""Packages whose containers store their items."""
_OPAQUE = (torch.Tensor, torch.nn.Module, type, ModuleType, FunctionType)

Contract = dict[tuple[str, str], str]
"""Path and aspect of each part of a result -> what it is."""
Span = tuple[int, int]
"""First byte of a memory, and the one after its last."""


@dataclass(eq=False)
class Recorded:
    """A call that notes the contracts of its results; it is equal to ``call``.

    ``modules`` own parameters and buffers.
    """

    call: Callable[..., Any]
    modules: Sequence[Any]
    left: int = CALLS
    contracts: list[Contract] = field(default_factory=list)
    _held: deque[dict[Span, Any]] = field(default_factory=partial(deque, maxlen=HELD))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        result = self.call(*args, **kwargs)
        if self.left:
            self.left -= 1
            self.note(result, args, kwargs)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.call, name)

    def __eq__(self, other: object) -> bool:
        return self.call == (other.call if isinstance(other, Recorded) else other)

    def __hash__(self) -> int:
        return hash(self.call)

    def note(self, result: Any, args: Any, kwargs: Any) -> None:
        """Keep the contract of the result of a call with these arguments."""
        owners = [*nodes(args, "args"), *nodes(kwargs, "kwargs")]
        for module in self.modules:
            if isinstance(module, torch.nn.Module):
                state = (*module.named_parameters(), *module.named_buffers())
                owners += [(name.removeprefix("_orig_mod."), tensor) for name, tensor in state]
        spans = [(name, span) for name, value in owners if (span := _span(value))]
        contract: Contract = {(path, COMPUTED): text for path, text in computed(result)}
        mine: dict[Span, Any] = {}
        for path, value in nodes(result, "out"):
            contract.setdefault((path, STRUCTURE), _kind(value))
            if not isinstance(value, torch.Tensor):
                continue
            contract[path, DEVICE] = f"on {value.device}"
            mode = ", of inference mode" if value.is_inference() else ""
            contract[path, GRADIENT] = f"requires_grad={value.requires_grad}{mode}"
            if value.layout == torch.strided and value.numel() and not value.is_nested:
                steps = zip(value.shape, value.stride(), strict=True)
                contract[path, STRIDES] = f"strides {tuple(step for size, step in steps if size > 1)}"
                contract[path, SHAPE] = str(tuple(value.shape))
            if (span := _span(value)) is None:
                continue
            names = list(dict.fromkeys(name for name, other in spans if _overlap(span, other)))
            contract[path, MEMORY] = f"memory of {named(names) or 'its own'}"
            if not names:
                mine[span] = value.untyped_storage()
                if self.contracts:
                    reused = any(_overlap(span, other) for held in self._held for other in held)
                    contract[path, REUSE] = "memory of an earlier result" if reused else "new memory"
        self._held.append(mine)
        self.contracts.append(contract)


def differences(expected: Sequence[Contract], found: Sequence[Contract]) -> Iterator[tuple[str, str]]:
    """Yield the aspect and a text of each part in which a contract in ``found`` breaks the ``expected``.

    A part that a result lacks breaks the structure alone.
    """
    promised: dict[tuple[str, str], set[str | None]] = {}
    for key in dict.fromkeys(key for contract in expected for key in contract):
        texts = {contract.get(key) for contract in expected}
        promised[key] = texts if key[1] == STRUCTURE else texts - {None}
    for contract in found:
        for (path, aspect), lazy in contract.items():
            if aspect == COMPUTED and lazy not in promised.get((path, aspect), set()):
                yield aspect, f"{path}: {lazy}"
        for path, aspect in dict.fromkeys([*promised, *contract]):
            wanted, text = promised.get((path, aspect), {None}), contract.get((path, aspect))
            both = text is not None and None not in wanted
            shapes = promised.get((path, SHAPE), set())
            if aspect in {COMPUTED, SHAPE} or (
                aspect == STRIDES and contract.get((path, SHAPE)) not in shapes
            ):
                continue  # values are compared elsewhere, and may be undetermined with their shape
            if len(wanted) == 1 and text not in wanted and (both or aspect == STRUCTURE):
                yield aspect, f"{path}: {text or 'nothing'} instead of {next(iter(wanted)) or 'nothing'}"


def computed(result: Any) -> Iterator[tuple[str, str]]:
    """Yield path and description of each lazy part of ``result``, which may compute when it is read.

    Lazy parts are tensor subclasses, containers whose class defines how they are read, and tensors that did
    not exist before they were read.
    """
    held = _held(result)
    opaque: tuple[str, ...] = ()
    for path, part in nodes(result, "out"):
        if f"{path}.".startswith(opaque) and id(part) not in held:
            continue  # made by the comparison, from a tensor or module
        kind = type(part)
        if isinstance(part, torch.Tensor):
            computes = kind not in _TENSORS or id(part) not in held
        else:
            computes = not isinstance(part, type) and any(_defines(kind, name) for name in _READING)
        if computes:
            yield path, f"{kind.__module__}.{kind.__qualname__}, which computes when it is read"
        if isinstance(part, _OPAQUE) or kind.__module__.partition(".")[0] == "numpy":
            opaque = (*opaque, f"{path}.")


def read(result: Any) -> Any:
    """Return ``result`` after reading all of it, so that no part of it remains lazy."""
    for _, leaf in leaves(result, "out"):
        if isinstance(leaf, torch.Tensor) and leaf.numel():
            leaf.detach().sum().item()
    return result


def _held(result: Any) -> set[int]:
    """Return the ids of ``result`` and of all objects that it holds, without reading any."""
    pending, held = [result], dict[int, Any]()
    while pending and len(held) < MOST_LEAVES:
        part = pending.pop()
        if id(part) not in held:
            held[id(part)] = part
            pending += [] if isinstance(part, _OPAQUE) else gc.get_referents(part)
    return set(held)


def _defines(kind: type, name: str) -> bool:
    """Return whether a class that is not of a trusted package defines the method ``name`` of ``kind``."""
    owner = next((base for base in kind.__mro__ if name in vars(base)), object)
    return owner.__module__.partition(".")[0] not in _TRUSTED


def _kind(value: Any) -> str:
    """Return the name of the type of ``value``, with its keys where their order counts."""
    kind = torch.Tensor if isinstance(value, torch.nn.Parameter) else type(value)
    if value is None or kind.__module__ in {"builtins", "torch"}:
        name = "None" if value is None else kind.__name__
    else:
        name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, torch.Tensor):
        name += f" of {value.dtype}" + ("" if value.layout == torch.strided else f", {value.layout}")
    return f"{name}({', '.join(map(str, value))})" if isinstance(value, OrderedDict) else name


def _span(value: Any) -> Span | None:
    """Return the memory under ``value``; None where it is not a tensor or has no memory."""
    if not isinstance(value, torch.Tensor):
        return None
    try:
        storage = value.untyped_storage()
        first = storage.data_ptr()
    except RuntimeError:  # sparse tensors and wrappers have no storage of their own
        return None
    return (first, first + storage.nbytes()) if first and storage.nbytes() else None


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
