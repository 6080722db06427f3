"""Installed packages that may break models which need none of them, and whether an exception is their fault.

Worker side: the parent finds the suspects (:mod:`torchgauge.harness.interpreter.packages`), because only it
reads YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

from torchgauge.suites.lacking import handed_on


@dataclass(frozen=True)
class Suspect:
    """An installed package of which it is known that it breaks others.

    ``why`` says that its version does not fit here, empty where nothing shows that before it is imported.
    ``unneeded``: no model needs it, so whatever is raised while it is imported is its own fault. ``says`` are
    patterns of exceptions that are. ``fix`` are the arguments of pip that fix it.
    """

    package: str
    version: str
    module: str
    fix: str
    why: str = ""
    unneeded: bool = False
    says: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        """What to type."""
        return f"pip {self.fix}"


@dataclass(frozen=True)
class Remedies:
    """What is known beforehand of what a model may lack: how its suite is installed, and the suspects."""

    install_hint: str = ""
    suspects: tuple[Suspect, ...] = ()


def blamed(error: BaseException, suspects: tuple[Suspect, ...]) -> Suspect | None:
    """The suspect whose fault ``error`` is: it says so, or was raised while an unneeded one was imported."""
    if not suspects:
        return None
    links = list(handed_on(error))
    said = "\n".join(f"{type(link).__name__}: {link}" for link in links)
    importing = {name for link in links for name in _being_imported(link.__traceback__)}
    for suspect in suspects:
        if suspect.unneeded and suspect.module in importing:
            return suspect
        if any(re.search(pattern, said) for pattern in suspect.says):
            return suspect
    return None


def _being_imported(trace: TracebackType | None) -> Iterator[str]:
    """Top-level packages whose module body was running when the exception passed."""
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name == "<module>":
            yield str(frame.f_globals.get("__name__", "")).partition(".")[0]
        trace = trace.tb_next
