"""The named configurations: how a workload is executed, as strict YAML."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import fields as dataclass_fields
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from torchgauge.errors import InfrastructureError, UnknownNameError
from torchgauge.harness.backends.backend import COMPILE, backend_named, named_by_backend, options_of
from torchgauge.records import Configuration, RecordError
from torchgauge.records.placement import CpuListError, parse_cpus
from torchgauge.suites.document import Document, read_document
from torchgauge.suites.schema import convert, refuse

BUNDLED = Path(__file__).parents[1] / "data" / "configurations.yaml"

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")]
Count = Annotated[int, msgspec.Meta(ge=1)]
Value = str | int | float | bool


class PinningFields(msgspec.Struct, forbid_unknown_fields=True):
    """Where the worker runs: a list of CPUs (``0-3,8``) or ``physical``, and a NUMA node."""

    cpus: str = ""
    numa: Annotated[int, msgspec.Meta(ge=0)] | None = None


class ConfigurationFields(msgspec.Struct, forbid_unknown_fields=True):
    """One configuration; the fields are those of :class:`torchgauge.records.Configuration`."""

    name: Name
    doc: Annotated[str, msgspec.Meta(min_length=1)]
    backend: Annotated[str, msgspec.Meta(min_length=1)]
    mode: Literal["", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"] = ""
    dynamic: bool | None = None
    fullgraph: bool = False
    options: dict[str, Value] = {}
    env: dict[str, str] = {}
    threads: Count | None = None
    interop_threads: Count | None = None
    pinning: PinningFields | None = None
    memory_format: Literal["", "channels_last"] = ""


class ConfigurationFile(msgspec.Struct, forbid_unknown_fields=True):
    """A whole file."""

    configurations: tuple[ConfigurationFields, ...]


class NamedConfiguration(msgspec.Struct, frozen=True):
    """A configuration and what it is for."""

    configuration: Configuration
    doc: str


def load_configurations(path: Path) -> dict[str, NamedConfiguration]:
    """Name to configuration as ``path`` declares them; raises :class:`DataFileError`."""
    document = read_document(path)
    found: dict[str, NamedConfiguration] = {}
    for index, fields in enumerate(convert(document, ConfigurationFile).configurations):
        at = f"$.configurations[{index}]"
        if fields.name in found:
            raise refuse(document, f"{at}.name", f"{fields.name!r} is declared twice", "keep one")
        _check(document, at, fields)
        made = _record(fields)
        _check_backend(document, at, fields, made)
        found[fields.name] = NamedConfiguration(made, fields.doc)
    return found


def _record(fields: ConfigurationFields) -> Configuration:
    pinning = fields.pinning or PinningFields()
    return Configuration(
        name=fields.name,
        backend=fields.backend,
        options=tuple(sorted(fields.options.items())),
        env=tuple(sorted(fields.env.items())),
        threads=fields.threads,
        interop_threads=fields.interop_threads,
        compile_mode=fields.mode,
        dynamic=fields.dynamic,
        fullgraph=fields.fullgraph,
        cpus=pinning.cpus,
        numa=pinning.numa,
        memory_format=fields.memory_format,
    )


@cache
def bundled() -> Mapping[str, NamedConfiguration]:
    """The configurations that ship with the package."""
    return load_configurations(BUNDLED)


def known_configurations(file: str | None = None) -> dict[str, NamedConfiguration]:
    """The bundled configurations and those of ``file``, which may not redefine one.

    Raises :class:`DataFileError`.
    """
    known = dict(bundled())
    if file is None:
        return known
    path = Path(file)
    own = load_configurations(path)
    for index, name in enumerate(own):
        if name in known:
            raise refuse(
                read_document(path),
                f"$.configurations[{index}].name",
                f"{name!r} is one of torchgauge's own configurations",
                "choose another name",
            )
    return known | own


def configuration(name: str, file: str | None = None) -> Configuration:
    """The configuration called ``name``; raises :class:`UnknownNameError`."""
    known = known_configurations(file)
    if name in known:
        return known[name].configuration
    found = named_by_backend(name)
    if found is None:
        raise UnknownNameError("configuration", name, known)
    return found


def is_known(name: str, known: Container[str]) -> bool:
    """Whether ``name`` is one of ``known``, or one that a backend answers to."""
    return name in known or named_by_backend(name) is not None


def _check(document: Document, at: str, fields: ConfigurationFields) -> None:
    if fields.mode and fields.options:
        raise refuse(
            document,
            f"{at}.options",
            "torch.compile takes a mode or options, not both",
            "replace the mode by its options",
        )
    if fields.pinning is not None and fields.pinning.cpus not in ("", "physical"):
        try:
            parse_cpus(fields.pinning.cpus)
        except CpuListError as error:
            raise refuse(document, f"{at}.pinning.cpus", str(error), "write 0-3,8 or physical") from None


def _check_backend(document: Document, at: str, fields: ConfigurationFields, made: Configuration) -> None:
    """Refuse what the backend of ``fields`` does not take; of a broken plugin the plan says what is wrong."""
    if fields.backend == COMPILE:
        raise refuse(
            document, f"{at}.backend", "compile covers many backends", "choose one, such as inductor"
        )
    try:
        backend = backend_named(fields.backend)
    except InfrastructureError:
        return
    given = {name: getattr(fields, name) for name in ("mode", "fullgraph", "memory_format")}
    given["dynamic"] = fields.dynamic is not None
    for name, there in given.items():
        if there and name not in backend.takes:
            raise refuse(document, f"{at}.{name}", f"backend {backend.name} takes no {name}", "remove it")
    try:
        options_of(backend, made)
    except RecordError as error:
        known = [each.name for each in dataclass_fields(backend.options)]
        hint = f"its options: {', '.join(known)}" if known else "remove all options"
        option = error.path.partition(".")[2]  # after the name of the dataclass
        what = f"option {option}: " if option else ""  # they may be wrong together
        problem = f"backend {backend.name}: {what}{error.problem}"
        raise refuse(document, f"{at}.options", problem, hint) from None
