"""Everything that one upstream step can change, so that a step can be taken again from the same state.

Why so much: a TorchBench model is a Python object around its modules. Optimizers, schedulers, replay buffers,
counters and environments live in its attributes, and two seeded steps are only equal if all of them are put
back. Worker side only.
"""

from __future__ import annotations

import math
import random
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import torch
from torch import nn

from torchgauge.suites.outputs import change, to_host
from torchgauge.suites.parts import (
    ATOMS,
    below,
    code_of,
    contents,
    files_beside,
    fill,
    fixed,
    holders,
    joined,
    of_class,
    of_module,
    of_process,
    of_tensor,
    pairs,
    same,
    twin,
    variables,
)
from torchgauge.suites.suite import HOST

_MODULE_TABLES = ("_parameters", "_buffers", "_modules")
MAX_ARRAY_BYTES = 1 << 28
"""Of a larger array its first rows are kept: a replay buffer with room for days is filled from its start."""
MAX_COMPARED = 1 << 16
"""Maximum number of elements that are compared of an array: a replay buffer has more."""
MAX_MOMENT = 1 << 20
"""Maximum number of elements that are compared of a tensor in an optimizer; gradients are compared whole."""
ROUNDING = 4.0
"""Largest difference of an element between equal results, in units in its last place."""
MAX_OBJECTS = 200_000
"""More objects than this are no model any more: the rest is left alone."""
MANY = 1_000
"""Number of items of a container that are visited before all others; a vocabulary has more."""
ATTRIBUTE, BUFFER, PARAMETER = "attribute", "buffer.", "parameter."
"""Prefixes of the paths of a model's attributes, buffers and parameters."""
_TORCHS = frozenset({*vars(nn.Module()), "_compiled_call_impl"} - {"training"})
"""Attributes of a module that belong to PyTorch and are not state."""
_LIBRARIES = frozenset({"torch", "numpy", *sys.stdlib_module_names})
"""Packages whose classes have no state of a model."""
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")
WRITTEN = "state.written."
"""Prefix of the paths of what a TorchBench step writes, except buffers and what it trains."""
RANDOM_STATE = ".random_state"
"""Suffix of the paths of the states of random generators: rounding changes none."""


@dataclass
class _Attributes:
    """The ``values`` of attributes of a module or a class; ``keys`` are those that eager changes.

    In modules of PyTorch's classes, objects of PyTorch's classes are left out, such as a traced graph.
    """

    path: str
    table: MutableMapping[str, Any]
    values: dict[str, Any]
    kind: type
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
        """Return the current attributes, without those that only a back end adds."""
        of_torch = _of_torch(self.kind)
        return {
            key: value
            for key, value in self.table.items()
            if key not in _TORCHS
            and (self.keys is None or key in self.keys or key in self.values)
            and not (of_torch and _of_torch(type(value)))
        }

    def narrow(self, keys: Collection[str]) -> None:
        """Ignore what only a back end adds, and functions and modules that eager does not replace."""
        self.keys = keys
        for key in [key for key, one in self.values.items() if callable(one) and key not in keys]:
            del self.values[key]

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
    paths. What cannot be copied (Python's generators, files, handles) is left out. Iterators are replaced by
    others that stand where they did.
    Of ``model``, attributes, buffers and parameters are kept, under paths that begin with these words. Copies
    of parameters are on the host: a device may have no room for them. Without ``weights`` only their identity
    is kept. ``copies`` maps ids of tensors to copies that another snapshot has made, which are shared. The
    state of ``owner`` is not kept: a hook may refer to the object that holds the model.
    """

    def __init__(
        self,
        root: Any,
        model: Any = None,
        *,
        weights: bool = True,
        copies: Mapping[int, torch.Tensor] | None = None,
        owner: Any = None,
    ) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.modules: list[nn.Module] = []
        self._kinds: list[tuple[nn.Module, type, list[tuple[Any, Any]]]] = []
        self.trained: set[str] = set()
        self.buffers: set[str] = set()
        self._copies: dict[str, torch.Tensor] = {}
        self._own: list[_Attributes] = []
        self._containers: list[tuple[str, Any, Any]] = []
        self._iterators: dict[int, tuple[Any, list[tuple[Any, Any]]]] = {}
        self._classes: set[type] = set()
        self._files: set[str] = set()
        self._lost: list[str] = []
        self._hooked: list[tuple[str, MutableMapping[Any, Any], tuple[Any, ...]]] = []
        self._written_first: set[str] | None = None
        self._followers: set[str] = set()
        self._changing: Collection[str] = ()
        self._lent: list[tuple[str, torch.Tensor]] = []
        self._optimizers: list[tuple[torch.optim.Optimizer, dict[Any, Any], str]] = []
        self._tensor_hooks: list[tuple[torch.Tensor, str, dict[Any, Any]]] = []
        self._arrays: list[tuple[str, Any, Any]] = []
        self._views: set[Any] = set()
        self._generators: list[tuple[str, Any, Any]] = []
        self._with_code = model is None  # a back end may keep results in functions of its own file
        self._walked = self._walk(root, model, owner)
        if isinstance(model, nn.Module):
            self._keep_tables(model, weights)
        shared = copies or {}
        self._copies = {
            path: shared[id(tensor)]
            if id(tensor) in shared
            else tensor.detach().to(HOST if path.startswith(PARAMETER) else tensor.device, copy=True)
            for path, tensor in self.tensors.items()
        }
        self._versions = {path: _version(tensor) for path, tensor in self.tensors.items()}
        self._graded = {path: tensor.requires_grad for path, tensor in self.tensors.items()}

    def restore(self, paths: Collection[str] | None = None) -> None:
        """Restore all state, but values of tensors in ``paths`` only; these tensors lose their gradients."""
        with torch.no_grad():
            for path in self._copies if paths is None else paths:
                self._restore_tensor(self.tensors[path], path)
            for path, tensor in self.tensors.items():
                if self._requires_grad_changed(path, tensor):
                    tensor.requires_grad_(self._graded[path])
            for path, tensor in self._lent:
                _write(tensor, self._copies[path])
        for kept, places in self._iterators.values():
            fresh = twin(kept)
            for values, key in places:
                values[key] = fresh
        for own in self._own:
            own.restore()
        for _, container, values in self._containers:
            fill(container, values)
        self._restore_optimizers()
        self.restore_hooks()
        self._restore_kinds()
        for _, values, array in self._arrays:
            array[...] = values
        for _, generator, state in self._generators:
            _set_generator_state(generator, state)

    def keep_also(self, other: Snapshot) -> None:
        """Keep the containers of ``other`` too: a step may have replaced one that it has changed."""
        self._containers += [(path, one, contents(one)) for path, one, _ in other._containers]

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Return the optimizers at the time of construction."""
        return [optimizer for optimizer, *_ in self._optimizers]

    @property
    def lost(self) -> list[str]:
        """Return the names of state that cannot be restored: iterators, data sources and removed hooks."""
        return [*self._lost, *(path for path, table, keys in self._hooked if not table.keys() >= {*keys})]

    def _restore_tensor(self, tensor: torch.Tensor, path: str) -> None:
        copy = self._copies[path]
        if tensor.is_leaf:
            tensor.grad = None
        if tensor.shape != copy.shape:  # observers of quantisation grow with their first step
            tensor.resize_(copy.shape)
        _write(tensor, copy)
        self._versions[path] = _version(tensor)

    def restore_hooks(self) -> None:
        """Remove the hooks that trainable tensors got later: they may come with a compiled module."""
        for tensor, name, kept in self._tensor_hooks:
            table = getattr(tensor, name)
            if table is not None and table.keys() != kept.keys():
                fill(table, kept)

    def _restore_kinds(self) -> None:
        """Restore classes of modules, of which a parametrisation makes new ones, and the modules' hooks."""
        for module, kind, hooks in self._kinds:
            if type(module) is not kind:
                module.__class__ = kind
            for table, kept in hooks:
                fill(table, kept | {key: hook for key, hook in table.items() if _is_own(hook)})

    def _restore_optimizers(self) -> None:
        for optimizer, state, _ in self._optimizers:
            optimizer.state.clear()
            for parameter, (values, kept) in state.items():
                values.clear()
                for name, (value, copy) in kept.items():  # the very tensors: compiled code is guarded by them
                    values[name] = value.copy_(copy) if isinstance(value, torch.Tensor) else value
                optimizer.state[parameter] = values

    def fill_optimizers(self, step: Callable[[], Any]) -> bool:
        """Let ``step`` fill the state of optimizers that hold none; return whether it has done so.

        State of other things than tensors and numbers stays empty; all else is restored. Dynamo compiles the
        step again whenever the optimizer is emptied, up to its limit.
        """
        empty = [optimizer for optimizer in self.optimizers if not optimizer.state]
        if not empty:
            return False
        step()
        states = [dict(optimizer.state) for optimizer in empty]
        self.restore()
        for optimizer, state in zip(empty, states, strict=True):
            values = [value for of_one in state.values() for value in of_one.values()]
            if all(value is None or isinstance(value, (torch.Tensor, int, float)) for value in values):
                optimizer.state.update(state)
        return any(optimizer.state for optimizer in empty)

    def touched(self) -> list[str]:
        """Return the paths of tensors that PyTorch has written since they were restored."""
        return [
            path
            for path, version in self._versions.items()
            if self._requires_grad_changed(path, tensor := self.tensors[path]) or version != _version(tensor)
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

    def copies(self) -> dict[int, torch.Tensor]:
        """Return, by the ids of tensors, the copies from which they are restored."""
        return {id(tensor): self._copies[path] for path, tensor in self.tensors.items()}

    def former(self, path: str) -> torch.Tensor:
        """Return the copy of the tensor with ``path``."""
        return self._copies[path]

    def changes(self, paths: Collection[str] | None = None) -> Iterator[tuple[str, Any, Any]]:
        """Yield path, old value and new value of everything that changed; None stands for a missing value.

        Values are compared of tensors in ``paths`` and of lent ones, ``requires_grad`` of each leaf. A tensor
        is yielded before the container whose item it was. A generator has no values to compare.
        """
        chosen = self._copies if paths is None else {*paths}
        for path, tensor in [*self.tensors.items(), *self._lent]:
            copy, lent = self._copies[path], tensor is not self.tensors[path]
            if (lent or path in chosen) and not equal(copy.to(tensor.device), tensor):
                yield path, copy, tensor
            if self._requires_grad_changed(path, tensor):
                yield f"{path}.requires_grad", self._graded[path], tensor.requires_grad
        yield from (each for each in self._arrays if each[1].tobytes() != each[2].tobytes())
        for path, generator, state in self._generators:
            if not _same_state(state, _generator_state(generator)):
                yield path.lstrip("."), None, None
        items = [
            *((own.path, own.now, own.values) for own in self._own if not own.same),
            *(
                (path, contents(one), values)
                for path, one, values in self._containers
                if not same(one, values)
            ),
        ]
        for path, now, values in items:
            if isinstance(now, dict):
                for key in dict.fromkeys([*values, *now]):
                    if not (key in now and key in values and now[key] is values[key]):
                        yield joined(path, key), values.get(key), now.get(key)
            else:
                yield path, values, now

    def _requires_grad_changed(self, path: str, tensor: torch.Tensor) -> bool:
        """Return whether ``requires_grad`` of a leaf has changed."""
        return bool(tensor.is_leaf and tensor.requires_grad != self._graded[path])

    def narrow(self, changes: Collection[str]) -> None:
        """Ignore attributes that a back end adds: those that neither exist now nor are in ``changes``."""
        self._changing = frozenset(changes)
        for own in self._own:
            start = f"{own.path}."
            own.narrow({path.removeprefix(start).split(".")[0] for path in changes if path.startswith(start)})

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
            tables = vars(part)
            for kind, table in ((BUFFER, tables["_buffers"]), (PARAMETER, tables["_parameters"])):
                for key, tensor in table.items():
                    name = f"{path.replace(f'{ATTRIBUTE}.', kind, 1)}.{key}"
                    if name in self._changing and tensor.shape == self._copies[name].shape:
                        self._lent.append((name, tensor))

    def parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Path and live tensor of everything that can be trained."""
        return ((path, tensor) for path, tensor in self.tensors.items() if path in self.trained)

    def values(self) -> dict[str, Any]:
        """Return copies of what steps may train, of buffers, and of what steps have written, by path."""
        live = {path: one for path, one in self.tensors.items() if path in self.trained | self.buffers}
        written = {path: now for path, (_, now) in self._written().items()}
        return {path: _copied(one) for path, one in {**live, **written}.items()}

    def changed_since(self, former: Mapping[str, Any], graded: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return, by kind and path, what has changed since ``former``, or since the snapshot.

        They are the changes, on the host, of tensors that are trained, of buffers, and of what steps have
        written otherwise (:meth:`written_since`).
        """
        written = self.written_since(former, graded)  # first: it finds the followers
        live = {path: (self._copies[path], one) for path, one in self.tensors.items()}
        trained = (path for path, _ in self.parameters() if path not in self._followers)
        return {
            "update": _moves(former, ((path, live[path]) for path in trained)),
            "buffer": _moves(former, ((path, live[path]) for path in sorted(self.buffers & live.keys()))),
            "written": written,
        }

    def written_since(self, former: Mapping[str, Any], graded: Collection[str] = ()) -> dict[str, Any]:
        """Return by path what steps have written since ``former``, or since the snapshot, as changes.

        It contains trainable tensors that eager's first step moved without a gradient, such as a target
        network; ``graded`` holds the paths of tensors with a gradient. Numbers, and tensors of another shape,
        are returned as they are.
        """
        if self._written_first is None:  # after a step of eager
            others = ((path, one) for path, one in self.parameters() if path not in graded)
            self._followers = {path for path, one in others if not equal(self._copies[path], one)}
            self._written_first = {*self._written()}
        return _moves(former, self._written().items())

    def _written(self) -> dict[str, tuple[Any, Any]]:
        """Return by path the first and the present value of what steps have written.

        They are tensors that steps have replaced or, where no other part shows them, changed, and arrays and
        numbers that they have changed, such as the counter of a scheduler, except numbers of modules. Of an
        object that a step has stored, they are its parts, and of a random generator a digest of its state.
        Paths of the first call are always returned.
        """
        elsewhere = (self.trained - self._followers) | self.buffers
        first = self._written_first or set()
        written: dict[str, tuple[Any, Any]] = {
            path: (self._copies[path], one)
            for path, one in self.tensors.items()
            if path not in elsewhere and (path in first or not equal(self._copies[path], one))
        }
        for path, former, array in self._arrays:
            some = [one.reshape(-1)[:: one.size // MAX_COMPARED + 1] for one in (former, array)]
            if former.dtype.kind in "biufc" and (path in first or some[0].tobytes() != some[1].tobytes()):
                written[path] = tuple(torch.from_numpy(one.copy()) for one in some)
        tables = {id(vars(module)) for module in self.modules}
        places = {place: path for path, one in self.tensors.items() if (place := _place(one))}
        owned = ((own.path, own.table, own.values) for own in self._own)
        for path, container, values in (*self._containers, *owned):
            before = dict(pairs(values))
            for key, item in pairs(contents(container)):
                name, kept = joined(path, key), before.get(key)
                number = type(item) in (int, float) and id(container) not in tables
                unchanged = item is kept or (number and type(kept) is type(item) and item == kept)
                shown = not unchanged or (name in first and name not in written)
                if shown and (number or isinstance(item, torch.Tensor)):
                    value = item if not number or math.isfinite(item) else str(item)  # a metric may be NaN
                    written[name] = (self._copies.get(name, kept), value)
                elif item is not kept and not isinstance(item, ATOMS):
                    for at, part in self._stored(item, name, places):
                        at = at.replace("_orig_mod.", "")  # noqa: PLW2901  as in eager
                        written[at] = (self._copies.get(at), part)
        for path, generator, state in self._generators:
            pair, name = (state, _generator_state(generator)), f"{path.lstrip('.')}{RANDOM_STATE}"
            if name in first or not _same_state(*pair):
                written[name] = (_digest(pair[0]), _digest(pair[1]))
        return written

    def _stored(self, item: Any, path: str, places: Mapping[int, str]) -> Iterator[tuple[str, Any]]:
        """Yield path and value of tensors and numbers of an object that a step has stored, except known ones.

        The path of a tensor that shares memory with a known one names that one too. ``places`` holds the
        paths of known tensors by the address of their memory.
        """
        for at, part, _ in below(item, path, self._walked):
            if type(part) in (int, float):
                yield at, part
            tensors = [(at, part)] if isinstance(part, torch.Tensor) else []
            if isinstance(part, nn.Module):
                named = (*part.named_parameters(), *part.named_buffers())
                tensors = [(joined(at, name), tensor) for name, tensor in named]
            for name, tensor in tensors:
                if id(tensor) not in self._walked:
                    owner = places.get(_place(tensor))
                    where = f" in the memory of {owner}" if owner else ""
                    yield name + where, tensor

    def moments(self) -> dict[str, dict[str, Any]]:
        """Return what optimizers keep of each parameter: by its name, then by paths of both."""
        paths = {id(tensor): path for path, tensor in self.tensors.items()}
        found: dict[str, dict[str, Any]] = {}
        for optimizer, *_, at in self._optimizers:
            for number, (parameter, values) in enumerate(optimizer.state.items()):
                path = f"{at}.{paths.get(id(parameter), number)}"
                for name, value in values.items() if isinstance(values, dict) else ():
                    if isinstance(value, torch.Tensor):
                        found.setdefault(name, {})[path] = thinned(value)
                    elif isinstance(value, (int, float)):
                        found.setdefault(name, {})[path] = value
        return found

    @contextmanager
    def gradients(self, *, whole: bool = False) -> Iterator[dict[torch.Tensor, torch.Tensor]]:
        """Keep each gradient as its optimizer's last step takes it: many models clear it afterwards.

        If the ``whole`` step is compiled, keep what the last backward pass left, before it is clipped: with a
        hook of an optimizer, dynamo would compile other code.
        """
        kept: dict[torch.Tensor, torch.Tensor] = {}

        def keep(source: Any, *_: Any) -> None:
            groups = [{"params": [source]}] if isinstance(source, torch.Tensor) else source.param_groups
            tensors = [each for group in groups for each in group["params"]]
            kept.update({each: each.grad.detach().clone() for each in tensors if each.grad is not None})

        if "torch._dynamo" in sys.modules:  # else a step that is compiled whole enters code that only we add
            keep = torch.compiler.disable(keep)
        if whole:
            leaves = (each for _, each in self.parameters() if each.requires_grad and each.is_leaf)
            places = [each.register_post_accumulate_grad_hook for each in leaves]
        else:  # an optimizer without hooks steps another one, met as well
            optimizers = (each for each in self.optimizers if hasattr(each, "_optimizer_step_pre_hooks"))
            places = [each.register_step_pre_hook for each in optimizers]
        with ExitStack() as hooks:
            for register in places:
                hooks.callback(register(keep).remove)
            yield kept

    def changed(self) -> bool:
        """Whether a parameter differs from its copy or has a gradient."""
        return any(
            tensor.grad is not None or not torch.equal(tensor.detach(), self._copies[path])
            for path, tensor in self.parameters()
        )

    # --- the walk ------------------------------------------------------------------------------

    def _walk(self, root: Any, model: Any, owner: Any) -> set[int]:
        """Keep the state below ``root`` and ``model``; return the ids of all objects there."""
        seen = {id(owner)}
        pending: deque[tuple[str, Any]] = deque([("", root)])
        if isinstance(model, nn.Module):
            parts, parameters = list(_named(model)), list(model.parameters())
            seen.update(id(one) for one in (*parameters, *(part for _, part in parts)))
            for path, part in parts:
                pending.extend(self._keep_own(path, part.__dict__, type(part)))
                if isinstance(part._modules, dict) and not _of_torch(type(part)):  # not of a scripted module
                    self._keep_own(path, part._modules, type(part))
                elif type(part).__module__ == nn.Sequential.__module__:
                    self._containers.append((path, part._modules, contents(part._modules)))
                pending.extend(_hooks(path, part, _HOOKS))
                pending.extend(self._of_class(type(part)))
            for path, one in model.named_parameters():
                pending.extend(_hooks(ATTRIBUTE, one, _TENSOR_HOOKS))
                if vars(one):  # such as the scale of a parameter in float8
                    pending.extend(self._keep_own(f"{ATTRIBUTE}.{path}", vars(one), type(one)))
        later: deque[tuple[str, Any]] = deque()  # a parameter is called after its module, not its optimizer
        while (pending or later) and len(seen) < MAX_OBJECTS:
            path, value = (pending or later).popleft()
            if isinstance(value, ATOMS) or id(value) in seen:
                continue
            if _is_stream(value):
                self._lost.append(f"{path.lstrip('.')} ({type(value).__name__})")
                continue
            if of_process(value):
                continue
            if isinstance(value, torch.optim.Optimizer) and pending:
                later.append((path, value))
                continue
            seen.add(id(value))
            parts = self._visit(path, value)
            (later if len(parts) > MANY else pending).extend(parts)
        return seen

    def _keep_own(self, path: str, table: MutableMapping[str, Any], kind: type) -> list[tuple[str, Any]]:
        own = _Attributes(path, table, {}, kind)
        own.values = own.now
        self._own.append(own)
        self._keep_iterators(path, own.values)
        return [(joined(path, key), one) for key, one in own.values.items() if not isinstance(one, ATOMS)]

    def _of_class(self, kind: type) -> list[tuple[str, Any]]:
        """Keep attributes and global variables of a class and its bases, unless of a library; return them."""
        odd = [base for base in kind.__mro__ if base not in self._classes]
        self._classes.update(odd)
        users = [base for base in odd if base.__module__.partition(".")[0] not in _LIBRARIES]
        found = self._of_files(users[0]) if users and self._with_code else []
        for base in users:
            found += self._keep_own(f"{ATTRIBUTE}.{base.__qualname__}", of_class(base), base)
            if base.__module__ not in self._files:
                found += self._keep_own(f"{ATTRIBUTE}.{base.__module__}", of_module(base), base)
            found += self._of_code(base, base.__qualname__, base.__module__) if self._with_code else []
        return found

    def _of_files(self, kind: type) -> list[tuple[str, Any]]:
        """Keep global variables of the files in the folder of a class; return them and their functions."""
        found = []
        for file in files_beside(kind) if kind.__module__ not in self._files else ():
            if file.__name__ not in self._files:
                self._files.add(file.__name__)
                found += self._keep_own(f"{ATTRIBUTE}.{file.__name__}", variables(file), kind)
                found += self._of_code(file, file.__name__, file.__name__)
        return found

    def _of_code(self, owner: Any, name: str, module: str) -> list[tuple[str, Any]]:
        """Return functions of a class or a file, which may hold state, and the state of its classes."""
        found = []
        for key, one in code_of(owner, module):
            kept = isinstance(one, type)
            found += self._of_class(one) if kept else [(f"{ATTRIBUTE}.{joined(name, key)}", one)]
        return found

    def _visit(self, path: str, value: Any) -> list[tuple[str, Any]]:
        if isinstance(value, torch.Tensor):
            return self._visit_tensor(path, value)
        if type(value).__module__.partition(".")[0] == "numpy":
            import numpy as np

            if isinstance(value, np.ndarray) and value.flags.writeable and value.dtype != object:
                kept = value
                if value.nbytes > MAX_ARRAY_BYTES and value.ndim:
                    kept = value[: max(1, MAX_ARRAY_BYTES * len(value) // value.nbytes)]
                self._arrays.append((path.lstrip("."), kept.copy(), kept))
            elif isinstance(value, (np.random.Generator, np.random.RandomState)):
                self._generators.append((path, value, _generator_state(value)))
            return []
        # inductor draws other numbers from the default generator than eager
        if isinstance(value, random.SystemRandom) or value is torch.default_generator:
            return []
        if isinstance(value, (random.Random, torch.Generator)):
            self._generators.append((path, value, _generator_state(value)))
            return []
        below: list[tuple[Any, Any]] = []
        for holder in holders(value):
            values = contents(holder)
            if isinstance(values, (dict, list, set)):
                below.extend(pairs(values))
                self._keep_iterators(path, values)
            self._containers.append((path, holder, values))
        below.extend(fixed(value))
        if isinstance(value, torch.optim.Optimizer):
            self._keep_optimizer(path, value)
            below = [pair for pair in below if pair[0] not in {"state", "defaults"}]
        elif isinstance(value, nn.Module):
            self.modules.append(value)
            tables = [getattr(value, name) for name in _HOOKS]
            self._kinds.append((value, type(value), [(table, contents(table)) for table in tables]))
            tables = [getattr(value, key) for key in _MODULE_TABLES]
            dicts = [table for table in tables if isinstance(table, dict)]  # not of a scripted module
            self._containers.extend((path, table, contents(table)) for table in dicts)
            below = [pair for table in tables for pair in table.items()]
            below.extend(pair for pair in value.__dict__.items() if pair[0] not in _TORCHS)
            below.extend(_hooks("", value, _HOOKS))
            self.buffers.update(joined(path, name) for name, _ in value._buffers.items())
        below = [(joined(path, key), item) for key, item in below if not isinstance(item, ATOMS)]
        return below + self._of_class(type(value))

    def _visit_tensor(self, path: str, tensor: torch.Tensor) -> list[tuple[str, Any]]:
        """Keep a tensor and its attributes; return its hooks and attributes."""
        before = len(self.tensors)
        self._keep_tensor(path, tensor)
        hooks = _hooks(path, tensor, _TENSOR_HOOKS)
        if len(self.tensors) == before and not vars(tensor):  # one of very many views
            return hooks
        attributes = of_tensor(tensor)
        values = contents(attributes)
        self._containers.append((path, attributes, values))
        return [*hooks, *((joined(path, key), one) for key, one in values.items())]

    def _keep_iterators(self, path: str, values: Any) -> None:
        """Keep where the iterators in ``values`` stand, if they have no attributes that are kept."""
        for key, item in pairs(values) if not isinstance(values, set) else ():
            if hasattr(type(item), "__next__") and not any(True for _ in holders(item)):
                try:
                    self._iterators.setdefault(id(item), (twin(item), []))[1].append((values, key))
                except TypeError:
                    self._lost.append(f"{joined(path, key)} ({type(item).__name__})")

    def _keep_tables(self, model: nn.Module, weights: bool) -> None:
        """Keep the values and the identity of buffers and parameters."""
        ids = {id(tensor) for tensor in self.tensors.values()}
        for name, part in model.named_modules():
            hooks = [(f"{name or 'model'}.{each}", getattr(part, each)) for each in _HOOKS]
            self._hooked += [(path, table, (*table,)) for path, table in hooks]
            for kind, table in ((BUFFER, part._buffers), (PARAMETER, part._parameters)):
                path = f"{kind}{name or 'model'}"
                if isinstance(table, dict) and table:
                    self._containers.append((path, table, contents(table)))
                for key, tensor in table.items() if weights or kind == BUFFER else ():
                    dispatch = getattr(type(tensor), "__torch_dispatch__", None)
                    # a subclass with a dispatch of its own does not hold its values itself
                    if dispatch is torch.Tensor.__torch_dispatch__ and id(tensor) not in ids:
                        ids.add(id(tensor))
                        self._keep_tensor(f"{path}.{key}", tensor)

    def _keep_optimizer(self, path: str, optimizer: torch.optim.Optimizer) -> None:
        state = {
            parameter: (values, {name: (value, _copied(value)) for name, value in values.items()})
            for parameter, values in optimizer.state.items()
            if isinstance(values, dict)
        }
        self._optimizers.append((optimizer, state, path))

    def _keep_tensor(self, path: str, tensor: torch.Tensor) -> None:
        path = path.lstrip(".")
        odd = tensor.is_quantized or tensor.is_nested or tensor.is_meta or tensor.layout != torch.strided
        if odd or tensor.grad_fn is not None:
            return
        if any(step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride())):  # noqa: B905
            return
        if tensor._base is not None and not tensor.requires_grad:  # a program may hold 100,000 equal views
            view = (id(tensor._base), tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
            if view in self._views:
                return
            self._views.add(view)
        if path in self.tensors:  # keys that are no names, such as tensors, have none of their own
            path = f"{path}#{len(self.tensors)}"
        self.tensors[path] = tensor
        if tensor.requires_grad and tensor.is_leaf:
            self.trained.add(path)
            if not path.startswith(PARAMETER):  # upstream's object; elsewhere a back end may add hooks
                hooks = ((name, getattr(tensor, name) or {}) for name in _TENSOR_HOOKS)
                self._tensor_hooks += [(tensor, name, dict(table)) for name, table in hooks]


def _moves(former: Mapping[str, Any], values: Iterable[tuple[str, tuple[Any, Any]]]) -> dict[str, Any]:
    """Return by path, on the host, how far tensors have moved, or copies of what has no distance.

    ``values`` holds first and present values, ``former`` the values to start from in place of the first.
    """
    moves: dict[str, Any] = {}
    for path, (first, now) in values:
        moved = change(former.get(path, first), now)
        moves[path] = to_host(moved, copy=moved is now)
    return moves


def thinned(tensor: torch.Tensor) -> torch.Tensor:
    """Return at most :data:`MAX_MOMENT` evenly spaced elements of ``tensor``, flattened."""
    return tensor.flatten()[:: tensor.numel() // MAX_MOMENT + 1]


def _hooks(path: str, owner: Any, names: Collection[str]) -> list[tuple[str, Any]]:
    """Return the hooks of a module or a tensor, which may hold state."""
    return [(joined(path, name), hook) for name in names for hook in (getattr(owner, name) or {}).values()]


def _is_own(hook: Any) -> bool:
    """Return whether a hook is one of torchgauge, which observes a step."""
    return str(getattr(hook, "__module__", "")).startswith("torchgauge.")


def _is_stream(value: Any) -> bool:
    """Return whether ``value`` is a source of data whose position cannot be restored."""
    room = type(value).__module__
    if room == "_io":
        return not value.closed and bool(value.readable())
    return room == "torch.utils.data.dataloader" and hasattr(value, "__next__")


def _place(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's memory; 0 if it has none of its own, as in a wrapper of others."""
    plain = type(tensor) in (torch.Tensor, nn.Parameter) and tensor.layout is torch.strided
    return int(tensor.untyped_storage().data_ptr()) if plain and not tensor.is_nested else 0


def _write(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Copy ``values`` into ``tensor``, which may be one of inference mode."""
    with torch.inference_mode() if tensor.is_inference() else nullcontext():
        tensor.copy_(values)


def _named(model: nn.Module) -> Iterator[tuple[str, Any]]:
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
    if torch.equal(before, now):
        return True
    nan = before != before  # noqa: PLR0124
    return bool(nan.any()) and bool(((before == now) | (nan & (now != now))).all())  # noqa: PLR0124


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


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _generator_state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    return generator.get_state() if hasattr(generator, "get_state") else generator.bit_generator.state


def _set_generator_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif hasattr(generator, "set_state"):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def _same_state(one: Any, other: Any) -> bool:
    return _digest(one) == _digest(other)


def _digest(state: Any) -> str:
    """Return a short text that differs between two states of a random generator."""
    shown = state.numpy().tobytes() if isinstance(state, torch.Tensor) else repr(state).encode()
    return f"digest {sha256(shown).hexdigest()[:8]}"
