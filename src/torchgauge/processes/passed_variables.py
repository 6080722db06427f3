"""The variables that a process of torchgauge's is given: the one place that says so.

Why: models, packages and their builds are other people's code. What they raise and print is kept and
published, so what they cannot see they cannot tell. The list is data: ``passed_variables.ini``.
"""

from __future__ import annotations

import os
import site
from collections.abc import Iterable, Mapping
from configparser import ConfigParser
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from torchgauge.processes.secret_names import is_secret_name, password_in

VARIABLE = "TORCHGAUGE_PASS_ON"
"""Names, with commas between them, that a person passes on as well; a secret only by its full name."""
LIST = Path(__file__).with_name("passed_variables.ini")
NO_USER_SITE = "PYTHONNOUSERSITE"


class Purpose(str, Enum):
    """What a process is started for, which is what its list is chosen by."""

    MEASURE = "measure"
    INSTALL = "install"
    GIT = "git"


def passed(
    purpose: Purpose = Purpose.MEASURE,
    declared: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The variables of ``environ`` (default: our own) that a process for ``purpose`` is given.

    ``declared`` are further names, or patterns with ``*``, that the device of the process needs. The
    variable :data:`NO_USER_SITE` keeps packages of the user's site out, unless torchgauge itself lies there
    or ``environ`` sets the variable. Empty entries of ``PYTHONPATH`` stay behind, and the
    others are absolute. In a job of GitHub Actions, caches of code lie in the job's own folder.
    """
    environ = os.environ if environ is None else environ
    named = [name.strip() for name in environ.get(VARIABLE, "").split(",") if name.strip()]
    patterns = (*_patterns(purpose), *declared, *named)
    given = {} if Path(__file__).is_relative_to(site.getusersitepackages()) else {NO_USER_SITE: "1"}
    if job := job_folder(environ):
        given |= {name: str(job / "cache" / name.lower()) for name in _lists()["job"]}
    given |= {
        name: value
        for name, value in environ.items()
        if name in named
        or (not _is_private(name, value, purpose) and any(fnmatchcase(name, each) for each in patterns))
    }
    if "PYTHONPATH" in given:  # an empty entry is the current directory, and a child may run in another one
        entries = filter(None, given["PYTHONPATH"].split(os.pathsep))
        given["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in entries)
    return given


def job_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the folder that goes with the job of GitHub Actions in which this runs, None outside of one."""
    environ = os.environ if environ is None else environ
    temporary = environ.get("RUNNER_TEMP", "") if environ.get("GITHUB_ACTIONS") == "true" else ""
    return Path(temporary) if temporary else None


def _is_private(name: str, value: str, purpose: Purpose) -> bool:
    """Whether a variable stays behind although a pattern names it; pip and git log in where they fetch."""
    return is_secret_name(name) or (purpose is Purpose.MEASURE and bool(password_in(value)))


@cache
def _lists() -> ConfigParser:
    lists = ConfigParser(allow_no_value=True, delimiters=("=",), interpolation=None)
    lists.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    lists.read_string(LIST.read_text(encoding="utf-8"))
    return lists


@cache
def _patterns(purpose: Purpose) -> tuple[str, ...]:
    sections = dict.fromkeys((Purpose.MEASURE.value, purpose.value))
    return tuple(name for section in sections for name in _lists()[section])
