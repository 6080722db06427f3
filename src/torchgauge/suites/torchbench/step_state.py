"""Everything that one upstream step can change, so that a step can be taken again from the same state.

Why so much: a TorchBench model is a Python object around its modules. Optimizers, schedulers, replay buffers,
counters and environments live in its attributes, and two seeded steps are only equal if all of them are put
back. Worker side only.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import types
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from torchgauge.suites.suite import HOST

_CONTAINERS = (dict, list, tuple, set, deque)
_OPAQUE = (types.ModuleType, type, types.BuiltinFunctionType, str, bytes, int, float)
_PLAIN_STANDARD = (argparse.Namespace, types.SimpleNamespace, functools.partial)
"""Objects of the standard library that hold a model's values; all others belong to the process."""
_MODULE_TABLES = ("_parameters", "_buffers", "_modules")
MAX_ARRAY_BYTES = 1 << 28
"""Of a larger array its first rows are kept: a replay buffer with room for days is filled from its start."""
MAX_MOMENT = 1 << 20
"""Maximum number of elements that are compared of a tensor in an optimizer; gradients are compared whole."""
ROUNDING = 4.0
"""Largest difference of an element between equal results, in units in its last place."""
MAX_OBJECTS = 200_000
"""More objects than this are no model any more: the rest is left alone."""
ATTRIBUTE, BUFFER, PARAMETER = "attribute", "buffer.", "parameter."
"""Prefixes of the paths of a model's attributes, buffers and parameters."""
_TORCHS = frozenset({*vars(nn.Module()), "_compiled_call_impl"} - {"training"})
"""Attributes of a module that belong to PyTorch and are not state."""


@dataclass
class _Attributes:
    """The ``values`` of a module's attributes; ``keys`` are those that eager changes.

    In modules of PyTorch's classes, objects of PyTorch's classes are left out, such as a traced graph.
    """

    path: str
    table: dict[str, Any]
    values: dict[str, Any]
    kind: type[nn.Module]
    keys: Collection[str] | None = None
    size: int = 0

    @property
    def same(self) -> bool:
        """Return whether the table has the identical values, and as many items as at the first comparison."""
        self.size = self.size or len(self.table)
        same = all(self.table.get(key, self) is value for key, value in self.values.items())
        return same and len(self.table) == self.size

    @property
    def now(self) -> dict[str, Any]:
        """The current attributes, without functions, modules and attributes that only a back end adds."""
        return {
            key: value
            for key, value in self.table.items()
            if key not in _TORCHS
            and (self.keys is None or key in self.keys or key in self.values)
            and not (callable(value) or (_of_torch(self.kind) and _of_torch(type(value))))
        }

    def restore(self) -> None:
        """Put the values back."""
        if not self.same:
            for key in self.now.keys() - self.values.keys():
                del self.table[key]
            self.table.update(self.values)


class Snapshot:
    """The state below ``root`` at the time of construction; tensors are kept as copies.

    ``tensors`` maps a path such as ``agent.actor.weight`` to the live tensor; ``trained`` and ``buffers`` are
    paths of trainable tensors and of modules' buffers. Two objects that the same code built have the same
    paths. What cannot be copied (Python's generators, files, handles) is left out.
    Of ``model``, attributes, buffers and parameters are kept, under paths that begin with these words. Copies
    of parameters are on the host: a device may have no room for them. Without ``weights`` only their identity
    is kept.
    """

    def __init__(self, root: Any, model: Any = None, *, weights: bool = True) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.modules: list[nn.Module] = []
        self.trained: set[str] = set()
        self.buffers: set[str] = set()
        self._copies: dict[str, torch.Tensor] = {}
        self._own: list[_Attributes] = []
        self._attributes: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        self._containers: list[tuple[str, Any, Any]] = []
        self._cells: list[tuple[str, Any, Any]] = []
        self._written: set[str] = set()
        self._changing: Collection[str] = ()
        self._lent: list[tuple[str, torch.Tensor]] = []
        self._optimizers: list[tuple[torch.optim.Optimizer, dict[Any, Any], list[dict[str, Any]], str]] = []
        self._arrays: list[tuple[str, Any, Any]] = []
        self._generators: list[tuple[str, Any, Any]] = []
        self._walk(root, model)
        if isinstance(model, nn.Module):
            self._keep_tables(model, weights)
        self._copies = {
            path: tensor.detach().to(HOST if path.startswith(PARAMETER) else tensor.device, copy=True)
            for path, tensor in self.tensors.items()
        }
        self._versions = {path: _version(tensor) for path, tensor in self.tensors.items()}
        self._graded = {path: tensor.requires_grad for path, tensor in self.tensors.items()}

    def restore(self, paths: Collection[str] | None = None) -> None:
        """Restore all state, of tensors only those with ``paths``; parameters lose their gradients."""
        with torch.no_grad():
            for path in self._copies if paths is None else paths:
                self._restore_tensor(self.tensors[path], path)
            for path, tensor in self._lent:
                tensor.copy_(self._copies[path])
        for own in self._own:
            own.restore()
        for _, container, values in (*self._attributes, *self._containers, *self._cells):
            _fill(container, values)
        for optimizer, state, groups, _ in self._optimizers:
            optimizer.state.clear()
            for parameter, (values, kept) in state.items():
                values.clear()
                for name, (value, copy) in kept.items():  # the very tensors: compiled code is guarded by them
                    values[name] = value.copy_(copy) if isinstance(value, torch.Tensor) else value
                optimizer.state[parameter] = values
            for group, values in zip(optimizer.param_groups, groups):  # noqa: B905  groups may have been added
                group.update(values)
        for _, values, array in self._arrays:
            array[...] = values
        for _, generator, state in self._generators:
            _set_generator_state(generator, state)

    def _restore_tensor(self, tensor: torch.Tensor, path: str) -> None:
        copy = self._copies[path]
        if tensor.is_leaf:
            tensor.grad = None
            tensor.requires_grad_(self._graded[path])
        if tensor.shape != copy.shape:  # observers of quantisation grow with their first step
            tensor.resize_(copy.shape)
        tensor.copy_(copy)
        self._versions[path] = _version(tensor)

    def touched(self) -> list[str]:
        """Return the paths of tensors that PyTorch has written since they were restored."""
        return [
            path
            for path, version in self._versions.items()
            if (tensor := self.tensors[path]).requires_grad != self._graded[path]
            or version != _version(tensor)
        ]

    def load(self, other: Snapshot) -> None:
        """Copy tensors and optimizers' state of ``other``; raises ``ValueError`` for other weights."""
        odd = sorted(self.trained ^ other.trained)
        if odd:
            raise ValueError(f"two instances of one model have different weights: {', '.join(odd[:3])}")
        for path, copy in self._copies.items():
            theirs = other._copies.get(path)
            if theirs is not None and theirs.shape == copy.shape:
                copy.copy_(theirs)
        for (_, mine, *_), (_, others, *_) in zip(self._optimizers, other._optimizers):  # noqa: B905  by order
            for (_, kept), (_, values) in zip(mine.values(), others.values()):  # noqa: B905
                for name, (_, copy) in kept.items():
                    if isinstance(copy, torch.Tensor) and name in values:
                        copy.copy_(values[name][1])
        self.restore()

    def changes(self, paths: Collection[str] | None = None) -> Iterator[tuple[str, Any, Any]]:
        """Yield path, old value and new value of everything that changed; None stands for a missing value.

        Of tensors, only those with ``paths`` are compared. A tensor is yielded before the container whose
        item it was. A generator has no values to compare.
        """
        for path in self._copies if paths is None else paths:
            yield from self._changes_of(path, self.tensors[path])
        for path, tensor in self._lent:
            yield from self._changes_of(path, tensor)
        yield from (each for each in self._arrays if each[1].tobytes() != each[2].tobytes())
        for path, generator, state in self._generators:
            if not _same_state(state, _generator_state(generator)):
                yield path.lstrip("."), None, None
        for path, cell, content in self._cells:
            if cell.cell_contents is not content:
                yield path.lstrip("."), content, cell.cell_contents
        items = [
            *((own.path, own.now, own.values) for own in self._own if not own.same),
            *self._attributes,
            *self._containers,
        ]
        for path, now, values in items:
            if isinstance(now, dict):
                for key in dict.fromkeys([*values, *now]):
                    if not (key in now and key in values and now[key] is values[key]):
                        yield f"{path}.{_label(key)}".lstrip("."), values.get(key), now.get(key)
            elif not _same_items(now, values):
                yield path.lstrip("."), values, now

    def _changes_of(self, path: str, tensor: torch.Tensor) -> Iterator[tuple[str, Any, Any]]:
        copy, graded = self._copies[path], self._graded[path]
        if not equal(copy.to(tensor.device), tensor):
            yield path, copy, tensor
        if tensor.is_leaf and tensor.requires_grad != graded:
            yield f"{path}.requires_grad", graded, tensor.requires_grad

    def narrow(self, changes: Collection[str]) -> None:
        """Ignore attributes that a back end adds: those that neither exist now nor are in ``changes``."""
        self._changing = frozenset(changes)
        for own in self._own:
            start = f"{own.path}."
            own.keys = {path.removeprefix(start).split(".")[0] for path in changes if path.startswith(start)}

    def lend(self, module: nn.Module) -> None:
        """Restore and compare the changing state of ``module``, a copy of the model, like the model's own."""
        originals = {own.path: own for own in reversed(self._own)}
        for path, part in _named(module):
            own = originals.get(path)
            if (
                own is None
                or own.kind is not type(part)
                or any(part.__dict__ is one.table for one in self._own)
            ):
                continue
            values = {key: value for key, value in own.values.items() if key in (own.keys or ())}
            self._own.append(replace(own, table=part.__dict__, values=values))
            for kind, table in ((BUFFER, part._buffers), (PARAMETER, part._parameters)):
                for key, tensor in table.items():
                    name = f"{path.replace(f'{ATTRIBUTE}.', kind, 1)}.{key}"
                    if name in self._changing and tensor.shape == self._copies[name].shape:
                        self._lent.append((name, tensor))

    def parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Path and live tensor of everything that can be trained."""
        return ((path, tensor) for path, tensor in self.tensors.items() if path in self.trained)

    def updates(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield path and movement since the snapshot of everything that can be trained."""
        for path, tensor in self.parameters():
            if tensor.shape == self._copies[path].shape:
                yield path, tensor.detach() - self._copies[path]

    def written(self) -> dict[str, torch.Tensor]:
        """Return by path the tensors that steps have replaced or, where no other part shows them, changed."""
        shown = self.trained | self.buffers
        live = {path: tensor for path, tensor in self.tensors.items() if path not in shown}
        self._written.update(path for path, one in live.items() if not torch.equal(one, self._copies[path]))
        for path, container, values in (*self._attributes, *self._containers):
            before = values if isinstance(values, dict) else dict(enumerate(values))
            for key, item in container.items() if isinstance(container, dict) else enumerate(container):
                name = f"{path}.{_label(key)}".lstrip(".")
                if isinstance(item, torch.Tensor) and (item is not before.get(key) or name in self._written):
                    live[name] = item
                    self._written.add(name)
        return {path: tensor for path, tensor in live.items() if path in self._written}

    def moments(self) -> dict[str, dict[str, Any]]:
        """Return what optimizers keep of each parameter: by its name, then by paths of both."""
        paths = {id(tensor): path for path, tensor in self.tensors.items()}
        found: dict[str, dict[str, Any]] = {}
        for optimizer, *_, at in self._optimizers:
            for number, (parameter, values) in enumerate(optimizer.state.items()):
                path = f"{at}.{paths.get(id(parameter), number)}"
                for name, value in values.items() if isinstance(values, dict) else ():
                    if isinstance(value, torch.Tensor):
                        thin = value.flatten()[:: value.numel() // MAX_MOMENT + 1]
                        found.setdefault(name, {})[path] = thin
                    elif isinstance(value, (int, float)):
                        found.setdefault(name, {})[path] = value
        return found

    @contextmanager
    def gradients(self) -> Iterator[dict[torch.Tensor, torch.Tensor]]:
        """Keep each gradient as its optimizer's last step takes it: many models clear it afterwards."""
        kept: dict[torch.Tensor, torch.Tensor] = {}

        def keep(optimizer: torch.optim.Optimizer, *_: Any) -> None:
            tensors = [each for group in optimizer.param_groups for each in group["params"]]
            kept.update({each: each.grad.detach().clone() for each in tensors if each.grad is not None})

        if "torch._dynamo" in sys.modules:  # else a step that is compiled whole enters code that only we add
            keep = torch.compiler.disable(keep)
        with ExitStack() as hooks:
            for optimizer, *_ in self._optimizers:
                if hasattr(optimizer, "_optimizer_step_pre_hooks"):  # else it steps another one, met as well
                    hooks.callback(optimizer.register_step_pre_hook(keep).remove)
            yield kept

    def changed(self) -> bool:
        """Whether a parameter differs from its copy or has a gradient."""
        return any(
            tensor.grad is not None or not torch.equal(tensor.detach(), self._copies[path])
            for path, tensor in self.parameters()
        )

    # --- the walk ------------------------------------------------------------------------------

    def _walk(self, root: Any, model: Any) -> None:
        seen: set[int] = set()
        pending: deque[tuple[str, Any]] = deque([("", root)])
        if isinstance(model, nn.Module):
            seen.update(id(one) for one in (*model.modules(), *model.parameters()))
            for path, part in _named(model):
                own = _Attributes(path, part.__dict__, {}, type(part))
                own.values = own.now
                self._own.append(own)
                pending.extend((f"{path}.{key}", value) for key, value in own.values.items())
        later: deque[tuple[str, Any]] = deque()  # a parameter is called after its module, not its optimizer
        while (pending or later) and len(seen) < MAX_OBJECTS:
            path, value = (pending or later).popleft()
            if value is None or isinstance(value, _OPAQUE) or id(value) in seen or _of_process(value):
                continue
            if isinstance(value, torch.optim.Optimizer) and pending:
                later.append((path, value))
                continue
            seen.add(id(value))
            pending.extend(self._visit(path, value))

    def _visit(self, path: str, value: Any) -> list[tuple[str, Any]]:
        if isinstance(value, torch.Tensor):
            self._keep_tensor(path, value)
            return []
        if type(value).__module__.partition(".")[0] == "numpy":
            self._keep_numpy(path, value)
            return []
        if isinstance(value, (random.Random, torch.Generator)):
            self._generators.append((path, value, _generator_state(value)))
            return []
        if isinstance(value, _CONTAINERS):
            if not isinstance(value, tuple):
                self._containers.append((path, value, value.copy()))
            items = value.items() if isinstance(value, dict) else enumerate(value)
            return [(f"{path}.{_label(key)}", item) for key, item in items if not isinstance(item, _OPAQUE)]
        if isinstance(value, types.MethodType):
            return [(f"{path}.self", value.__self__), (f"{path}.function", value.__func__)]
        table = getattr(value, "__dict__", None)
        if not isinstance(table, dict):
            return []
        self._attributes.append((path, table, dict(table)))
        below = dict(table)
        if isinstance(value, torch.optim.Optimizer):
            self._keep_optimizer(path.lstrip("."), value)
            below = {k: v for k, v in table.items() if k not in {"state", "param_groups", "defaults"}}
            below.update((f"group{i}", group["params"]) for i, group in enumerate(value.param_groups))
        elif isinstance(value, nn.Module):
            self.modules.append(value)
            self._attributes.extend((path, table[key], dict(table[key])) for key in _MODULE_TABLES)
            below = {name: item for key in _MODULE_TABLES for name, item in table[key].items()}
            below.update((k, v) for k, v in table.items() if not k.startswith("_"))
            self.buffers.update(f"{path}.{name}".lstrip(".") for name in table["_buffers"])
        elif isinstance(value, types.FunctionType):
            cells = dict(zip(value.__code__.co_freevars, value.__closure__ or ()))  # noqa: B905  of one length
            held = {name: cell.cell_contents for name, cell in cells.items() if cell != types.CellType()}
            self._cells.extend((f"{path}.{name}", cells[name], content) for name, content in held.items())
            below.update(held)
        elif isinstance(value, functools.partial):
            below.update(func=value.func, args=value.args, keywords=value.keywords)
        return [(f"{path}.{_label(name)}", item) for name, item in below.items()]

    def _keep_tables(self, model: nn.Module, weights: bool) -> None:
        """Keep the values and the identity of buffers and parameters."""
        ids = {id(tensor) for tensor in self.tensors.values()}
        for name, part in model.named_modules():
            for kind, table in ((BUFFER, part._buffers), (PARAMETER, part._parameters)):
                path = f"{kind}{name or 'model'}"
                if isinstance(table, dict) and table:
                    self._containers.append((path, table, table.copy()))
                usual = (torch.Tensor,) if kind == BUFFER else (nn.Parameter,) if weights else ()
                for key, tensor in table.items():
                    if type(tensor) in usual and id(tensor) not in ids:
                        ids.add(id(tensor))
                        self._keep_tensor(f"{path}.{key}", tensor)

    def _keep_optimizer(self, path: str, optimizer: torch.optim.Optimizer) -> None:
        groups = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
        state = {
            parameter: (values, {name: (value, _copied(value)) for name, value in values.items()})
            for parameter, values in optimizer.state.items()
            if isinstance(values, dict)
        }
        self._optimizers.append((optimizer, state, groups, path))

    def _keep_tensor(self, path: str, tensor: torch.Tensor) -> None:
        path = path.lstrip(".")
        usual = not (tensor.is_quantized or tensor.is_nested) and tensor.layout == torch.strided
        if not usual or tensor.grad_fn is not None:
            return
        if any(step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride())):  # noqa: B905
            return
        if path in self.tensors:  # keys that are no names, such as tensors, have none of their own
            path = f"{path}#{len(self.tensors)}"
        self.tensors[path] = tensor
        if tensor.requires_grad and tensor.is_leaf:
            self.trained.add(path)

    def _keep_numpy(self, path: str, value: Any) -> None:
        import numpy as np

        if isinstance(value, np.ndarray) and value.flags.writeable and value.dtype != object:
            kept = value
            if value.nbytes > MAX_ARRAY_BYTES and value.ndim:
                kept = value[: max(1, MAX_ARRAY_BYTES * len(value) // value.nbytes)]
            self._arrays.append((path.lstrip("."), kept.copy(), kept))
        elif isinstance(value, (np.random.Generator, np.random.RandomState)):
            self._generators.append((path, value, _generator_state(value)))


def _of_process(value: Any) -> bool:
    """Whether ``value`` is an object of the standard library, such as a logger or a lock."""
    kind = type(value)
    room = kind.__module__.partition(".")[0]
    if room in {"builtins", "collections", "random"} or isinstance(value, _PLAIN_STANDARD):
        return False
    return room in sys.stdlib_module_names


def _named(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Return path and module of each part of ``model``."""
    return ((f"{ATTRIBUTE}.{name or 'model'}", part) for name, part in model.named_modules())


def _of_torch(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "torch" and not issubclass(kind, torch.Tensor)


def _version(tensor: torch.Tensor) -> Any:
    """Return a number that each write of PyTorch raises; tensors of inference mode have none."""
    return object() if tensor.is_inference() else tensor._version


def equal(before: torch.Tensor, now: torch.Tensor) -> bool:
    """Return whether two tensors are equal to the bit; NaN is equal to NaN."""
    if before.shape != now.shape:
        return False
    if before.is_floating_point() and before.element_size() == 1:  # few operators compute on float8
        before, now = before.view(torch.uint8), now.view(torch.uint8)
    if before.dtype is torch.complex32 and now.dtype is torch.complex32:
        before, now = torch.view_as_real(before.resolve_conj()), torch.view_as_real(now.resolve_conj())
    return torch.equal(before, now) or bool(((before == now) | ((before != before) & (now != now))).all())  # noqa: PLR0124


def same_bits(before: Any, now: Any) -> bool:
    """Return whether two leaves are equal to the bit; NaN is equal to NaN."""
    if not isinstance(before, torch.Tensor) or not isinstance(now, torch.Tensor):
        return type(before) is type(now) and bool(before == now)
    return before.dtype == now.dtype and equal(before, now)


def near(one: Any, other: Any) -> bool:
    """Return whether two leaves are equal, or are real tensors that differ by rounding alone."""
    if same_bits(one, other):
        return True
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    if (one.shape, one.dtype) != (other.shape, other.dtype) or not one.is_floating_point():
        return False
    if one.element_size() == 1:
        return False
    return bool(((one - other).abs() <= ROUNDING * torch.finfo(one.dtype).eps * one.abs()).all())


def _fill(container: Any, values: Any) -> None:
    """Make ``container`` hold the very objects of ``values``; a cell of a closure holds one object."""
    if isinstance(container, types.CellType):
        container.cell_contents = values
    elif not _same_items(container, values):
        container.clear()
        (container.extend if isinstance(container, (list, deque)) else container.update)(values)


def _same_items(container: Any, values: Any) -> bool:
    """Whether ``container`` still holds the very objects of ``values`` in their order."""
    if len(container) != len(values):
        return False
    if isinstance(container, set):
        return bool(container == values)
    if isinstance(container, dict):
        return all(k in container and container[k] is v for k, v in values.items())
    return all(mine is theirs for mine, theirs in zip(container, values))  # noqa: B905  lengths are equal


def _label(key: Any) -> str:
    return str(key) if isinstance(key, (str, int)) else type(key).__name__


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _generator_state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    return generator.get_state() if hasattr(generator, "get_state") else generator.bit_generator.state


def _same_state(one: Any, other: Any) -> bool:
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else repr(one) == repr(other)


def _set_generator_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif hasattr(generator, "set_state"):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state
