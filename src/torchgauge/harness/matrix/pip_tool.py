"""pip, which makes the environments of a matrix: what it would install, from where, how large; and its words.

pip lives in a virtual environment of its own and installs into others (``--python``), so that an environment
holds what was locked and nothing else. It is made as new as the index has it: older ones download whole
packages only to say what they would install.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import sys
from collections.abc import Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from torchgauge.devices.probe import spawn
from torchgauge.errors import TorchgaugeError
from torchgauge.harness.interpreter.install import first_reason
from torchgauge.harness.interpreter.staging import LOCKED, environment_for
from torchgauge.processes.kept_process import scratch
from torchgauge.processes.passed_variables import Purpose, passed
from torchgauge.results.atomic_file import FREE
from torchgauge.results.held import held
from torchgauge.suites.install_needs import distribution_of

VENV_TIMEOUT_S = 120.0
RESOLVE_TIMEOUT_S = 600.0
ASK_TIMEOUT_S = 10.0
"""For the size of one file; one that is not known by then is said to be unknown."""
_CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_CONFLICT = re.compile(r"The conflict is caused by:\n(?P<lines>(?:[ ]+.*\n)+)")
_UNREACHABLE = re.compile(
    r"^.*(Retrying \(|Max retries exceeded|Connection refused|NewConnectionError|Could not fetch URL).*$",
    re.MULTILINE,
)
"""Lines in which pip says that a place where it looks did not answer."""
OTHER_FOLDER = f"{FREE}, or pass --environments DIR on another disk; then repeat the command"
_UNWRITABLE = re.compile(r"No space left on device|Disk quota exceeded|File too large|Read-only file system")
_AVAILABLE = re.compile(r"^Available versions: (?P<versions>.*)$", re.MULTILINE)


class PipFailedError(TorchgaugeError):
    """pip did not do it; the message is its own first reason.

    ``unreachable``: an index did not answer, so that what pip did not find may well be there. ``full``: the
    disk took no more.
    """

    unreachable = False
    full = False


@dataclass(frozen=True)
class Download:
    """One distribution that pip would install: its exact pin, and where it lies."""

    name: str
    version: str
    url: str
    direct: bool = False

    @property
    def pin(self) -> str:
        """The line of a lock that installs exactly this."""
        return f"{self.name} @ {self.url}" if self.direct else f"{self.name}=={self.version}"


@dataclass(frozen=True)
class Pip:
    """The pip of one folder of environments."""

    python: Path

    @staticmethod
    def in_folder(folder: Path) -> Pip:
        """The pip of ``folder``, made where it is not there yet; raises :class:`PipFailedError`."""
        place = folder / "pip"
        python = place / "bin" / "python"
        made = place / "made"

        def there() -> bool:
            return made.is_file() and python.exists()

        try:
            if not there():
                folder.mkdir(parents=True, exist_ok=True)
                lock = folder / "pip.lock"
                lock.touch()
                with held(lock):  # another matrix may make it at this moment
                    if not there():
                        make_environment(place, with_pip=True)
                        update = ["install", "--quiet", "--no-input", "--upgrade", "pip"]
                        with suppress(
                            PipFailedError
                        ):  # the one that Python brings may download more to answer
                            Pip(python).run(update, VENV_TIMEOUT_S)
                        made.touch()
            if not (place / LOCKED).is_file():  # pip may be older than this mark
                (place / LOCKED).touch()
        except OSError as error:
            raise PipFailedError(
                f"{error.filename or place} cannot be written: {error.strerror or error}", hint=OTHER_FOLDER
            ) from error
        return Pip(python)

    def resolve(self, requirements: Sequence[str], constraints: Sequence[str]) -> tuple[Download, ...]:
        """Everything that ``requirements`` would install into an empty environment, by name.

        Raises :class:`PipFailedError`.
        """
        with scratch("matrix") as folder:
            file, report = folder / "constraints.txt", folder / "report.json"
            file.write_text("\n".join(constraints) + "\n", encoding="utf-8")
            words = ["install", "--no-input", "--dry-run", "--ignore-installed"]
            self.run([*words, "--report", str(report), "-c", str(file), *requirements], RESOLVE_TIMEOUT_S)
            found = json.loads(report.read_text(encoding="utf-8"))["install"]
        return tuple(sorted(map(_download, found), key=lambda each: each.name))

    def versions(self, name: str) -> tuple[str, ...]:
        """The versions of ``name`` for this Python and platform, newest first.

        Raises :class:`PipFailedError` where pip finds none.
        """
        found = _AVAILABLE.search(self.run(["index", "versions", "--pre", name], RESOLVE_TIMEOUT_S))
        return tuple(found["versions"].split(", ")) if found else ()

    def install(self, lock: Path, into: Path, log: Path, timeout: float) -> None:
        """Install the lines of ``lock`` and nothing else; raises :class:`PipFailedError`."""
        words = ["--python", str(into), "install", "--no-input", "--no-deps", "-r", str(lock)]
        self.run(words, timeout, log)

    def uninstall_all_but(self, names: Container[str], python: Path) -> None:
        """Remove the distributions that ``names`` does not contain; raises :class:`PipFailedError`."""
        there = (re.split("==| @ ", pin)[0] for pin in self.freeze(python))
        if rest := [name for name in there if distribution_of(name) not in names]:
            self.run(["--python", str(python), "uninstall", "--yes", *rest], RESOLVE_TIMEOUT_S)

    def freeze(self, python: Path) -> tuple[str, ...]:
        """What pip says is installed, a pin a line; raises :class:`PipFailedError`."""
        said = self.run(["--python", str(python), "freeze", "--all"], RESOLVE_TIMEOUT_S)
        return tuple(sorted(line for line in said.splitlines() if "==" in line or " @ " in line))

    def run(self, words: Sequence[str], timeout: float, log: Path | None = None) -> str:
        """What pip prints; raises :class:`PipFailedError` with its first reason."""
        variables = {**passed(Purpose.INSTALL), **environment_for(str(self.python))}
        variables |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        with scratch("matrix") as folder:
            output = log or folder / "output"
            try:
                ending = spawn([str(self.python), "-m", "pip", *words], variables, timeout, output)
            except OSError as error:
                raise PipFailedError(f"{self.python} cannot be started: {error.strerror or error}") from error
            text = output.read_text(encoding="utf-8", errors="replace")
        if ending.returncode == 0:
            return text
        if ending.returncode is None:
            raise PipFailedError(
                f"pip did not end within {timeout:g} s", hint="repeat the command to continue"
            )
        said = _UNREACHABLE.search(text)
        if said is None:
            raise _failure(_reason(text), text)
        failure = PipFailedError(
            f"a package index did not respond: {said[0].strip()[:300]}; {_reason(text)}",
            hint="check pip's index, proxy and network, then repeat the command",
        )
        failure.unreachable = True
        raise failure


def _reason(text: str) -> str:
    """Why pip failed, in its own words; of a conflict what is in it."""
    found = _CONFLICT.search(text)
    lines = [line.strip() for line in found["lines"].splitlines()] if found else []
    return "; ".join(dict.fromkeys((first_reason(text), *lines)))[:600]


def _failure(message: str, text: str, hint: str = "") -> PipFailedError:
    """The failure ``message``; ``hint`` is what to try, unless ``text`` says that the disk takes no more."""
    full = _UNWRITABLE.search(text) is not None
    failure = PipFailedError(message, hint=OTHER_FOLDER if full else hint)
    failure.full = full
    return failure


def make_environment(place: Path, *, with_pip: bool = False) -> None:
    """A virtual environment of this Python at ``place``, in place of what was there.

    Raises :class:`PipFailedError`.
    """
    words = [sys.executable, "-m", "venv", "--clear", *([] if with_pip else ["--without-pip"]), str(place)]
    with scratch("matrix") as folder:
        output = folder / "output"
        ending = spawn(words, passed(Purpose.INSTALL), VENV_TIMEOUT_S, output)
    if ending.returncode != 0:
        said = ending.output.splitlines()[-1:] or ["it printed nothing"]
        raise _failure(f"the virtual environment could not be created: {said[0][:300]}", ending.output,
                       hint="apt install python3-venv (Debian and Ubuntu)")  # fmt: skip
    (place / LOCKED).touch()


def size_of(downloads: Sequence[Download]) -> tuple[int, int]:
    """Bytes of ``downloads`` that are known, and how many are not."""
    with ThreadPoolExecutor(8) as pool:
        sizes = list(pool.map(_size, (each.url for each in downloads)))
    return sum(each for each in sizes if each is not None), sum(each is None for each in sizes)


def _size(url: str) -> int | None:
    """Bytes of the file at ``url``, without fetching it; None where nobody says."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            return Path(unquote(parts.path)).stat().st_size
        if parts.scheme not in ("http", "https"):
            return None
        asked = Request(url.partition("#")[0], method="HEAD")  # noqa: S310  the scheme is looked at above
        with urlopen(asked, timeout=ASK_TIMEOUT_S, context=_context()) as answer:  # noqa: S310
            length = answer.headers.get("Content-Length", "")
    except (OSError, ValueError):
        return None
    return int(length) if length.isdigit() else None


def _context() -> ssl.SSLContext:
    named = next((os.environ[name] for name in _CERTIFICATES if os.environ.get(name)), None)
    return ssl.create_default_context(cafile=named if named and Path(named).is_file() else None)


def _download(item: dict[str, Any]) -> Download:
    metadata = item["metadata"]
    name = re.sub(r"[-_.]+", "-", str(metadata["name"])).lower()
    return Download(name, metadata["version"], item["download_info"]["url"], bool(item.get("is_direct")))
