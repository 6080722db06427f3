"""What a user's object consists of, and copies of it, by the protocols of ``copy`` and ``pickle``.

Why: placing, snapshots and comparisons go over a user's objects. With a list of classes in each of them, they
disagree about the state of all others. An object consists of its items, attributes, slots, closure and bound
arguments. Worker side only.
"""

from __future__ import annotations

import array
import copyreg
import enum
import functools
import gc
import inspect
import os
import sys
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch

ATOMS = (
    *(str, type(None), bool, int, float, complex, bytes, range, slice, enum.Enum, type),
    *(types.ModuleType, types.CodeType, *weakref.ProxyTypes),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)
"""Classes of objects that consist of nothing else."""
ROOMS = frozenset(
    {"_thread", "_weakrefset", "argparse", "array", "builtins", "collections", "functools", "itertools"}
    | {"queue", "random", "types", "weakref"}
)
"""Modules of the standard library whose objects hold a program's values; others belong to the process."""
WEAK = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
WHOLE = (*ATOMS, torch.Tensor, torch.nn.Module, types.FunctionType, types.MethodType)
"""Classes of objects whose parts are not parts of an input."""


class View(MutableMapping[str, Any]):
    """References that are not in a container, as a mapping: those in slots, in a closure or of a class."""

    def __init__(
        self,
        names: Callable[[], Iterable[str]],
        read: Callable[[str], Any],
        write: Callable[[str, Any], None],
        delete: Callable[[str], None],
    ) -> None:
        self._names, self._read, self._write, self._delete = names, read, write, delete

    def __getitem__(self, name: str) -> Any:
        try:
            return self._read(name)
        except (AttributeError, ValueError):  # a slot or a cell that is empty
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        self._write(name, value)

    def __delitem__(self, name: str) -> None:
        self._delete(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names() if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_MAPPINGS = (OrderedDict, dict, View)
_BASES = (*_MAPPINGS, list, deque, set)
"""Classes by whose own methods a container is read and filled: a derived class may compute in its own."""


def holders(value: Any) -> Iterator[Any]:
    """Yield each container of references that ``value`` consists of, all of which can be filled again."""
    kind = type(value)
    if isinstance(value, (dict, list, deque, set)):
        yield value
    elif isinstance(value, types.FunctionType):
        yield from (held for held in (closure(value), value.__kwdefaults__) if held)
    elif isinstance(value, (bytearray, array.array)):
        yield value
    table = getattr(value, "__dict__", None)
    if isinstance(table, dict):
        yield table
    names = copyreg._slotnames(kind) if kind.__module__ != "builtins" else ()  # type: ignore[attr-defined]
    if names:
        read, write = partial(object.__getattribute__, value), partial(object.__setattr__, value)
        yield View(lambda: names, read, write, partial(object.__delattr__, value))


def closure(function: types.FunctionType) -> View | None:
    """Return the variables that ``function`` has of the functions around it."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def write(name: str, value: Any) -> None:
        cells[name].cell_contents = value

    def delete(name: str) -> None:
        del cells[name].cell_contents

    return View(lambda: cells, lambda name: cells[name].cell_contents, write, delete) if cells else None


def of_class(kind: type) -> View:
    """Return the attributes of a class that are neither methods nor other descriptors."""
    table = vars(kind)

    def names() -> list[str]:
        return [name for name in table if not name.startswith(("__", "_abc_")) and _plain(table[name])]

    return View(names, table.__getitem__, partial(type.__setattr__, kind), partial(type.__delattr__, kind))


def of_module(kind: type) -> View:
    """Return the global variables that a class uses in its methods and in the functions that they call."""
    table: dict[str, Any] = vars(sys.modules[kind.__module__]) if kind.__module__ in sys.modules else {}
    names = [name for name in _globals_used_by(kind, table) if _plain(table[name])]
    return View(lambda: names, table.__getitem__, table.__setitem__, table.__delitem__)


def files_beside(kind: type) -> list[types.ModuleType]:
    """Return the imported files in the folder of the class ``kind``; none of an installed package."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if not file or {"site-packages", "dist-packages"} & {*Path(file).parts}:
        return []
    return _imported(f"{Path(file).parent}{os.sep}", len(sys.modules))


@functools.lru_cache(maxsize=64)
def _imported(start: str, _count: int) -> list[types.ModuleType]:
    """Return the imported files whose paths begin with ``start``; a key is the number of imported ones."""
    files = [(one, getattr(one, "__file__", None) or "") for one in [*sys.modules.values()]]
    return [one for one, file in files if file.startswith(start)]


def variables(file: types.ModuleType) -> View:
    """Return the global variables of a file, except functions, classes and modules."""
    table = vars(file)

    def names() -> list[str]:
        return [name for name in [*table] if not name.startswith("__") and _plain(table[name])]

    return View(names, table.__getitem__, table.__setitem__, table.__delitem__)


def code_of(owner: Any, module: str) -> list[tuple[str, Any]]:
    """Return the functions and classes of ``module`` that are attributes of a class or a file, by name."""
    found = []
    for name, one in [*vars(owner).items()]:
        with suppress(Exception):  # an object in the place of a missing package may raise at any attribute
            one = inspect.unwrap(getattr(one, "__func__", one))  # noqa: PLW2901
        if isinstance(one, (types.FunctionType, type)) and one.__module__ == module:
            found.append((name, one))
    return found


def _globals_used_by(kind: type, table: dict[str, Any]) -> dict[str, None]:
    """Return the names of the global variables in ``table`` that the code of ``kind`` uses."""
    pending: list[Any] = [inspect.unwrap(one) for one in vars(kind).values() if callable(one)]
    used: dict[str, None] = {}
    while pending:
        function = pending.pop()
        if isinstance(function, types.FunctionType) and function.__globals__ is table:
            fresh = [name for name in function.__code__.co_names if name in table and name not in used]
            used.update(dict.fromkeys(fresh))
            pending.extend(inspect.unwrap(table[name]) for name in fresh if callable(table[name]))
    return used


def of_tensor(tensor: torch.Tensor) -> View:
    """Return the attributes that a program has set on a tensor."""
    table = vars(tensor)

    def names() -> list[str]:
        return [name for name in table if not name.startswith("_dynamo")]

    return View(names, table.__getitem__, table.__setitem__, table.__delitem__)


def _plain(value: Any) -> bool:
    return not (hasattr(type(value), "__get__") or callable(value) or isinstance(value, types.ModuleType))


def fixed(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield names and parts of ``value`` that cannot be replaced in it."""
    if isinstance(value, (tuple, frozenset)):
        yield from enumerate(value)
    elif isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        yield from (("self", value.__self__), ("function", getattr(value, "__func__", None)))
    elif isinstance(value, functools.partial):
        yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
    elif isinstance(value, types.FunctionType):
        yield from enumerate(value.__defaults__ or ())
    elif isinstance(value, types.MappingProxyType):
        yield from (("", mapping) for mapping in gc.get_referents(value))


def contents(holder: Any) -> Any:
    """Return the references in ``holder`` as a plain dict, list or set, or a copy of its bytes."""
    base = next((base for base in _BASES if isinstance(holder, base)), None)
    if base is None:
        return holder[:]
    if base in _MAPPINGS:
        if base is dict:
            return dict.copy(holder)
        return {key: base.__getitem__(holder, key) for key in base.__iter__(holder)}
    return set.copy(holder) if base is set else list(base.__iter__(holder))


def pairs(values: Any) -> Iterable[tuple[Any, Any]]:
    """Return keys and items of what :func:`contents` returned."""
    return values.items() if isinstance(values, dict) else enumerate(values)


def same(holder: Any, values: Any) -> bool:
    """Return whether ``holder`` has the very objects of ``values``, in their order if it has one."""
    now = holder if type(holder) in (dict, list, deque, set) else contents(holder)
    if len(now) != len(values):
        return False
    if isinstance(values, dict):
        return all(key in now and now[key] is value for key, value in values.items())
    if isinstance(values, set):
        return bool(now == values)
    if isinstance(values, list):
        return all(mine is theirs for mine, theirs in zip(now, values, strict=True))
    return bytes(memoryview(now)) == bytes(memoryview(values))


def fill(holder: Any, values: Any) -> None:
    """Make ``holder`` have the very objects of ``values``."""
    if same(holder, values):
        return
    base: Any = next((base for base in _BASES if isinstance(holder, base)), None)
    if base is None:
        holder[:] = values
        return
    base.clear(holder)
    if base in _MAPPINGS:
        for key, value in values.items():
            base.__setitem__(holder, key, value)
    else:
        (set.update if base is set else base.extend)(holder, values)


def of_process(value: Any) -> bool:
    """Return whether ``value`` belongs to the process, such as a logger, a lock or a function of PyTorch."""
    if isinstance(value, types.FunctionType):
        room = str(value.__globals__.get("__name__")).partition(".")[0]
        return room == "torch" or room in sys.stdlib_module_names
    room = type(value).__module__.partition(".")[0]
    return room in sys.stdlib_module_names and room not in ROOMS


def below(value: Any, path: str, known: Collection[int] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Yield path, object and owner of ``value`` and of its parts, except those of modules and functions.

    Parts of objects whose ids are ``known`` are left out.
    """
    pending, seen = deque([(path, value, None)]), set[int]()
    while pending:
        path, part, owner = pending.popleft()
        yield path, part, owner
        if id(part) in seen or id(part) in known or isinstance(part, WHOLE) or of_process(part):
            continue
        seen.add(id(part))
        inside = [pair for holder in holders(part) for pair in pairs(contents(holder))]
        pending.extend((joined(path, key), item, part) for key, item in (*inside, *fixed(part)))


def joined(path: str, key: Any) -> str:
    """Return the path of the part ``key`` of what has ``path``."""
    return f"{path}.{key if isinstance(key, (str, int)) else type(key).__name__}".strip(".")


def twin(iterator: Any) -> Any:
    """Return an iterator that stands where ``iterator`` does, over the same items.

    Raises ``TypeError`` for an iterator that cannot be copied, such as a generator.
    """
    if not isinstance(iterator, Iterator):
        return iterator
    reduced: Any = iterator.__reduce_ex__(4)
    make, args, *more = reduced
    made = make(*map(twin, args))
    if more and more[0] is not None:
        state = more[0]
        parts = state if isinstance(state, tuple) else (state,)
        parts = tuple(part.copy() if type(part) is list else twin(part) for part in parts)
        made.__setstate__(parts if isinstance(state, tuple) else parts[0])
    return made


class Copies:
    """Copies of objects, each made once, by the protocol of ``copy.deepcopy``.

    Functions are copied with their closures, so that a hook refers to the copied module. An object that
    cannot be copied, such as a lock, is shared. ``memo`` holds the copies by the ids of their originals.
    """

    def __init__(self, memo: dict[int, Any]) -> None:
        self.memo = memo
        self._alive: list[Any] = []  # an id belongs to a living object

    def of(self, value: Any) -> Any:
        """Return the copy of ``value``."""
        if type(value) in weakref.ProxyTypes:
            try:
                referent = value.__repr__.__self__  # a bound method is the one way to what a proxy stands for
            except ReferenceError:
                return value
            return weakref.proxy(self._referent(referent))
        if isinstance(value, ATOMS):
            return value
        if id(value) in self.memo:
            return self.memo[id(value)]
        self._alive.append(value)
        kind = type(value)
        if kind is dict or (kind is OrderedDict and not vars(value)):  # by far the most objects of a module
            copied = self.memo[id(value)] = kind()
            for key, item in value.items():
                copied[self.of(key)] = self.of(item)
            return copied
        return value if of_process(value) else self.memo.setdefault(id(value), self.made(value))

    def made(self, value: Any) -> Any:
        """Make a copy of ``value``."""
        kind = type(value)
        if isinstance(value, tuple):
            return self._of_tuple(value)
        if isinstance(value, types.FunctionType):
            return self._of_function(value)
        if isinstance(value, types.CellType):
            return self._of_cell(value)
        if isinstance(value, types.MethodType):
            return kind(self.of(value.__func__), self.of(value.__self__))
        if isinstance(value, types.BuiltinMethodType):
            return getattr(self.of(value.__self__), value.__name__) if value.__self__ is not None else value
        if isinstance(value, types.MappingProxyType):
            return kind(self.of(gc.get_referents(value)[0]))
        if kind is weakref.ref:
            return weakref.ref(self._referent(value()))
        if isinstance(value, WEAK):
            return self._of_weak(value)
        if hasattr(kind, "__deepcopy__"):
            copied = value.__deepcopy__(self.memo)
            if copied is not value or not isinstance(value, torch.nn.Module):  # weights are never shared
                return copied
        return self._of_object(value)

    def _of_object(self, value: Any) -> Any:
        kind = type(value)
        try:
            reducer: Any = copyreg.dispatch_table.get(kind)
            reduced: Any = value.__reduce_ex__(4) if reducer is None else reducer(value)
        except TypeError:
            if isinstance(value, Iterator):  # its next item would be that of both
                raise
            return value
        return value if isinstance(reduced, str) else self._rebuilt(value, reduced)

    def _rebuilt(self, value: Any, reduced: tuple[Any, ...]) -> Any:
        kind = type(value)
        make, args, state, items, entries = (*reduced, None, None, None)[:5]
        try:
            copied = make(*(self.of(one) for one in args))
        except TypeError:  # a constructor of its own
            if args or make is not kind:
                raise
            copied = kind.__new__(kind)
        self.memo[id(value)] = copied
        self._give(copied, state)
        for item in items or ():
            (list.append if isinstance(copied, list) else kind.append)(copied, self.of(item))
        base = next((base for base in (OrderedDict, dict) if isinstance(copied, base)), kind)
        for key, item in entries or ():
            base.__setitem__(copied, self.of(key), self.of(item))
        return copied

    def _give(self, copied: Any, state: Any) -> None:
        """Give a copy the attributes in ``state``, as ``copy`` does."""
        if state is None:
            return
        self._alive.append(state)
        state = self.of(state)
        if hasattr(copied, "__setstate__"):
            copied.__setstate__(state)
            return
        table, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        if table:
            copied.__dict__.update(table)
        for name, item in (slots or {}).items():
            object.__setattr__(copied, name, item)

    def _of_tuple(self, value: Any) -> Any:
        kind, table = type(value), getattr(value, "__dict__", None)
        items = [self.of(item) for item in value]
        if id(value) in self.memo:  # a part of it refers to it
            return self.memo[id(value)]
        if not table and all(item is old for item, old in zip(items, value, strict=True)):
            return value
        try:
            copied = tuple.__new__(kind, items)
        except TypeError:  # a result of PyTorch's operators
            copied = kind(items)
        if table:
            self.memo[id(value)] = copied
            copied.__dict__.update(self.of(table))
        return copied

    def _of_function(self, value: types.FunctionType) -> Any:
        state = (value.__defaults__, value.__kwdefaults__, value.__dict__)
        if not (value.__closure__ or any(state)):
            return value
        cells = tuple(map(self.of, value.__closure__ or ()))
        if id(value) in self.memo:  # one of its cells holds it
            return self.memo[id(value)]
        copied = types.FunctionType(value.__code__, value.__globals__, value.__name__, None, cells or None)
        self.memo[id(value)] = copied
        copied.__defaults__, copied.__kwdefaults__, table = (self.of(part) for part in state)
        copied.__dict__.update(table)
        copied.__qualname__, copied.__module__ = value.__qualname__, value.__module__
        return copied

    def _of_cell(self, value: Any) -> Any:
        copied = self.memo[id(value)] = types.CellType()
        if value != types.CellType():
            copied.cell_contents = self.of(value.cell_contents)
        return copied

    def _of_weak(self, value: Any) -> Any:
        copied = self.memo[id(value)] = type(value)()
        if isinstance(value, weakref.WeakSet):
            copied.update(map(self._referent, value))
        else:
            key_of, item_of = self._referent, self.of
            if isinstance(value, weakref.WeakValueDictionary):
                key_of, item_of = item_of, key_of
            copied.update([(key_of(key), item_of(item)) for key, item in value.items()])
        return copied

    def _referent(self, value: Any) -> Any:
        """Return what a weak reference to ``value`` refers to in the copy, which must live without it."""
        return self.of(value) if isinstance(value, torch.nn.Module) else self.memo.get(id(value), value)
