"""The seam of a backend: a descriptor on the parent side, ``prepare`` on the worker side.

A configuration names a backend. A name that no plugin answers to is one of ``torch.compile``'s back ends
(``inductor``, ``aot_eager``, a vendor's), and the plugin ``compile`` serves it. Standard library only: both
halves import it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, Protocol

from torchgauge import registry
from torchgauge.errors import InfrastructureError, TorchgaugeError
from torchgauge.records import Configuration, Scalar, Workload, from_plain

GROUP = "torchgauge.backends"
COMPILE = "compile"
EAGER = "eager"
"""The backend of the baseline: every other one is judged against it and takes its speed-up over it."""


@dataclass(frozen=True)
class NoOptions:
    """The options of a backend that has none."""


class Backend(Protocol):
    """How a workload is executed, as the parent knows it; its module never imports torch."""

    @property
    def name(self) -> str:
        """What ``backend:`` in a file of configurations says."""

    @property
    def doc(self) -> str:
        """What it does, in one line."""

    @property
    def implementation(self) -> str:
        """Module that the worker imports, with ``prepare(subject, configuration, session) -> Prepared``."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Modules that it needs; without one its cases are skipped, with what to type."""

    @property
    def options(self) -> type:
        """A frozen dataclass, the strict schema of ``options:``; ``dict`` for whatever a library takes."""

    @property
    def takes(self) -> tuple[str, ...]:
        """Return which of ``mode``, ``dynamic``, ``fullgraph`` and ``memory_format`` its cases may have."""

    def compiler(self, configuration: Configuration) -> str:
        """The back end of ``torch.compile`` whose code it runs; "" where it compiles nothing.

        A device is asked whether it can serve that one. Compiled code is kept in caches and timed cold.
        """

    def cannot_run(self, workload: Workload, configuration: Configuration, device: Any) -> str | None:
        """Why ``workload`` cannot run so on ``device`` (its descriptor); None where it may."""


@dataclass(frozen=True)
class BackendDescriptor:
    """A backend as data; a subclass says what depends on the configuration.

    One that ``passes_on`` hands options that are none of its own to its library, which alone can judge them.
    A ``named`` one has more configurations than a file can list: ``NAME-word`` is the one of its option
    ``config: word``. ``beside`` are configurations that are planned beside each of its own, the first of
    them being what a ``speedup_compiled`` is over.
    ``install_hint`` is what to type where a package is missing: to install that one, unless it says so.
    """

    name: str
    doc: str
    implementation: str
    packages: tuple[str, ...] = ()
    options: type = NoOptions
    takes: tuple[str, ...] = ()
    passes_on: bool = False
    install_hint: str = ""
    named: bool = False
    beside: tuple[str, ...] = ()

    def compiler(self, configuration: Configuration) -> str:
        """None: nothing is compiled."""
        return ""

    def cannot_run(self, workload: Workload, configuration: Configuration, device: Any) -> str | None:
        """None: every workload may be tried."""
        return None


def backend_named(name: str) -> Backend:
    """The backend that ``backend: name`` means; raises :class:`InfrastructureError` for a broken plugin."""
    known = registry.names(GROUP)
    found: Backend = registry.load(GROUP, name if name in known else COMPILE)
    words = [found.implementation, *_words(found.packages), *_words(found.takes)]
    schema = found.options is dict or (isinstance(found.options, type) and is_dataclass(found.options))
    if not schema or not all(isinstance(each, str) for each in words):
        raise InfrastructureError(
            f"backend {name!r}: implementation must be a string, packages and takes tuples of strings, "
            "and options a dataclass or dict",
            hint=registry.FIX,
        )
    return found


def _words(given: object) -> tuple[object, ...]:
    """``given`` where it is a tuple; something that is no word else."""
    return given if isinstance(given, tuple) else (None,)


def named_by_backend(name: str) -> Configuration | None:
    """The configuration that ``name`` means where its first word is that of a ``named`` backend."""
    first, _, word = name.partition("-")
    if not word or first not in registry.names(GROUP):
        return None
    try:
        found = backend_named(first)
    except InfrastructureError:
        return None
    if not getattr(found, "named", False):
        return None
    return Configuration(name=name, backend=first, options=(("config", word),))


def beside(configuration: Configuration) -> tuple[str, ...]:
    """The names of configurations that are planned beside ``configuration``."""
    try:
        return tuple(getattr(backend_named(configuration.backend), "beside", ()))
    except TorchgaugeError:  # the plan refuses its cases with what it raised
        return ()


@cache
def compiler_of(configuration: Configuration) -> str:
    """The back end of ``torch.compile`` that ``configuration`` takes part with; "" for none.

    A broken plugin compiles nothing: its cases end before anything is prepared for them. Asked once: a plugin
    that hangs costs its patience once, and not for every case.
    """
    name = configuration.backend
    try:
        return registry.asked(f"backend {name!r}", backend_named(name), "compiler", configuration)
    except TorchgaugeError:  # the plan refuses its cases with what it raised
        return ""


def as_compiled(configuration: Configuration) -> Configuration:
    """``configuration`` as a device judges it: by the back end of ``torch.compile`` that it uses, if any."""
    return replace(configuration, backend=compiler_of(configuration) or EAGER)


def options_of(backend: Backend, configuration: Configuration) -> Any:
    """The options of ``configuration`` as ``backend`` declares them; raises :class:`RecordError`."""
    given = dict(configuration.options)
    if backend.options is dict:
        return given
    passed = passed_on(backend, configuration)
    return from_plain(backend.options, {name: value for name, value in given.items() if name not in passed})


def passed_on(backend: Backend, configuration: Configuration) -> dict[str, Scalar]:
    """The options of ``configuration`` that ``backend`` hands to its library: none where it reads all."""
    if not getattr(backend, "passes_on", False):
        return {}
    own = {each.name for each in fields(backend.options)}
    return {name: value for name, value in configuration.options if name not in own}
