"""plotly.js for the charts: the small bundle from an npm registry, else the full one inside Python's plotly.

It is brought at build time and written into the site, so that no page asks anybody else for it, and is never
part of this package. The small bundle (``plotly.js-basic-dist-min``, a quarter of the full one) is of the
version that the installed ``plotly`` holds. What comes from a registry is checked against the SHA-512 of the
registry's metadata and kept in the user's cache; what pages load is pinned by its SHA-384.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPException
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from torchgauge.errors import InfrastructureError, MissingPackageError
from torchgauge.results.atomic_file import write_atomically
from torchgauge.user_cache import user_cache

PACKAGE = "plotly.js-basic-dist-min"
MEMBER = "package/plotly-basic.min.js"
DEFAULT_REGISTRY = "https://registry.npmjs.org/"
METADATA_LIMIT = 1 << 20
ARCHIVE_LIMIT = 4 << 20
BUNDLE_LIMIT = 8 << 20
"""Most bytes of the registry's answer, the archive and what is in it; 4.1 has 2 KB, 390 KB and 1.2 MB."""

SOCKET_TIMEOUT_S = 10.0
TRANSFER_TIMEOUT_S = 60.0
LICENCE = "MIT"
"""The licence of plotly.js, which stands in the first lines of either bundle."""

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_VERSION = re.compile(r"__plotlyjs_version__\s*=\s*[\"'](\d+\.\d+\.\d+[\w.+-]*)[\"']")
_OWN_STYLE = re.compile(rb'getElementById\("([0-9a-f]{64})"\)')
"""Ids of style elements that a bundle adds unless they are there: the full one has those of maps.

The pages' policy forbids them, so charts put elements with these ids there first.
"""

_ERRORS = (OSError, HTTPException, ValueError, tarfile.TarError, EOFError, zlib.error, msgspec.MsgspecError)


class Wanted(StrEnum):
    """Which bundle a build asks for; ``AUTO`` is the small one, else the full one, else none."""

    AUTO = "auto"
    BASIC = "basic"
    FULL = "full"
    NONE = "none"


@dataclass(frozen=True)
class PlotlyBundle:
    """A bundle: ``flavour`` is ``basic`` or ``full``, ``source`` says where it came from."""

    flavour: str
    version: str
    source: str
    content: bytes

    @property
    def integrity(self) -> str:
        """The SHA-384 as pages pin it."""
        return "sha384-" + base64.b64encode(hashlib.sha384(self.content).digest()).decode()

    @property
    def file(self) -> str:
        """Where the bundle is in a site; another content has another name."""
        digest = hashlib.sha384(self.content).hexdigest()[:8]
        return f"assets/plotly-{self.flavour}-{self.version}-{digest}.min.js"

    @property
    def record(self) -> dict[str, str | list[str]]:
        """What the manifest says of the bundle."""
        return {
            "file": self.file,
            "flavour": self.flavour,
            "version": self.version,
            "integrity": self.integrity,
            "licence": LICENCE,
            "source": self.source,
            "own_styles": sorted({found.decode() for found in _OWN_STYLE.findall(self.content)}),
        }


@dataclass(frozen=True)
class Charts:
    """The bundle of a build, None where charts are off, and what a person has to know of how that came."""

    bundle: PlotlyBundle | None = None
    note: str = ""


NO_CHARTS = Charts()


class _RefusedError(ValueError):
    """What a registry answered must not be used."""


def bring(wanted: Wanted, *, registry: str | None = None, cache: Path | None = None) -> Charts:
    """The bundle that ``wanted`` asks for.

    ``registry`` and ``cache`` are npm's configured registry and the user's cache folder unless given. With
    ``AUTO`` a failure is a note; ``BASIC`` raises :class:`InfrastructureError` and ``FULL``
    :class:`MissingPackageError` where there is no such bundle.
    """
    if wanted in (Wanted.NONE, Wanted.FULL):
        return Charts(full_bundle()) if wanted is Wanted.FULL else NO_CHARTS
    try:
        return Charts(basic_bundle(registry or configured_registry(), cache or cache_folder()))
    except (InfrastructureError, MissingPackageError) as error:
        if wanted is Wanted.BASIC:
            raise
        note = error.message
    try:
        found = full_bundle()
    except MissingPackageError as error:
        return Charts(None, f"{note}; {error.message}; charts are off, every table is there")
    return Charts(found, f"{note}; the full bundle of Python's plotly is used, which loads more slowly")


def _of_plotly(name: str) -> bytes:
    """A file of Python's plotly, read without importing that, which takes longer than a small build.

    Raises :class:`MissingPackageError` where it is not there.
    """
    try:
        return Path(str(metadata.distribution("plotly").locate_file(f"plotly/{name}"))).read_bytes()
    except metadata.PackageNotFoundError as error:
        raise MissingPackageError(
            "Python's plotly is not installed", hint="pip install plotly, or --plotly none"
        ) from error
    except OSError as error:
        raise _broken(f"its {name} cannot be read: {error.strerror or error}") from error


def _broken(why: str) -> MissingPackageError:
    hint = "pip install --force-reinstall plotly, or --plotly none"
    return MissingPackageError(f"Python's plotly is damaged: {why}", hint=hint)


def plotlyjs_version() -> str:
    """The version of plotly.js inside Python's plotly."""
    found = _VERSION.search(_of_plotly("offline/_plotlyjs_version.py").decode())
    if found is None:
        raise _broken("it does not say which plotly.js it holds")
    return found[1]


def full_bundle() -> PlotlyBundle:
    """The bundle inside Python's plotly; raises :class:`MissingPackageError` where it is not there."""
    content = _of_plotly("package_data/plotly.min.js")
    return PlotlyBundle("full", plotlyjs_version(), "the Python package plotly", content)


def basic_bundle(registry: str, cache: Path) -> PlotlyBundle:
    """The small bundle, from ``cache`` or else from ``registry``.

    Raises :class:`InfrastructureError` where the registry cannot be reached or what it sent must not be used.
    """
    version = plotlyjs_version()
    found = _cached(cache, version)
    if found is not None:
        return found
    address = f"{registry.rstrip('/')}/{PACKAGE}/{version}"
    try:
        bundle = PlotlyBundle("basic", version, *_fetch(address))
    except _ERRORS as error:
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        raise InfrastructureError(
            f"plotly.js {version} cannot be brought from {_without_password(address)}: {why}",
            hint="--plotly full uses the bundle inside Python's plotly, --plotly none builds without charts",
        ) from error
    _keep(cache, bundle)
    return bundle


def configured_registry() -> str:
    """The registry that npm would use: of its variable, of the user's ``.npmrc``, or the public one."""
    for name, value in os.environ.items():
        if name.lower() == "npm_config_registry" and value:
            return value
    path = Path(os.environ.get("NPM_CONFIG_USERCONFIG") or Path.home() / ".npmrc")
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "registry" and value.strip():
            return value.strip().strip("\"'")
    return DEFAULT_REGISTRY


def cache_folder() -> Path:
    """Where bundles are kept between builds."""
    return user_cache() / "plotly"


def _fetch(address: str) -> tuple[str, bytes]:
    """Where the bundle came from, and its bytes; raises any of ``_ERRORS``."""
    deadline = time.monotonic() + TRANSFER_TIMEOUT_S
    said = msgspec.json.decode(_get(address, METADATA_LIMIT, deadline))
    dist = said.get("dist") if isinstance(said, dict) else None
    if not isinstance(dist, dict) or not isinstance(dist.get("tarball"), str):
        raise _RefusedError("its answer names no archive")
    digests = [part[7:] for part in str(dist.get("integrity", "")).split() if part.startswith("sha512-")]
    if not digests:
        raise _RefusedError("its answer has no SHA-512 to check the archive with")
    source = urllib.parse.urljoin(address, dist["tarball"])
    archive = _get(source, ARCHIVE_LIMIT, deadline)
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() not in digests:
        raise _RefusedError("the archive does not have the SHA-512 that the registry names")
    return _without_password(source), _unpacked(archive)


def _unpacked(archive: bytes) -> bytes:
    """The bundle inside the archive; never more than its limit is unpacked."""
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    data = stream.decompress(archive, BUNDLE_LIMIT)
    if stream.unconsumed_tail:
        raise _RefusedError(f"the archive holds more than {BUNDLE_LIMIT >> 20} MiB")
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as files:
        try:
            member = files.extractfile(MEMBER)
        except KeyError:
            member = None
        content = member.read() if member is not None else b""
    if b"plotly.js" not in content[:400]:
        raise _RefusedError(f"the archive has no {MEMBER} that is plotly.js")
    return content


def _get(address: str, limit: int, deadline: float) -> bytes:
    _check_address(address)
    request = urllib.request.Request(address, headers={"Accept": "*/*"})  # noqa: S310  checked above
    try:
        opened = _OPENER.open(request, timeout=SOCKET_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()
        raise _RefusedError(f"it answers {error.code}") from None
    with opened as answer:
        parts, size = [], 0
        while chunk := answer.read1(1 << 16):
            size += len(chunk)
            if size > limit:
                raise _RefusedError(f"it sends more than {limit >> 20} MiB")
            if time.monotonic() > deadline:
                raise TimeoutError(f"it took longer than {TRANSFER_TIMEOUT_S:.0f} s")
            parts.append(chunk)
    return b"".join(parts)


def _check_address(address: str) -> None:
    parts = urllib.parse.urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        return
    raise _RefusedError("only https is used, and http on this machine")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects that stay on what is allowed."""

    def redirect_request(  # noqa: PLR0917  the base class's signature
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """The request that follows a redirect."""
        try:
            _check_address(newurl)
        except _RefusedError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = urllib.request.build_opener(_Redirects)


def _without_password(address: str) -> str:
    parts = urllib.parse.urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _cached(cache: Path, version: str) -> PlotlyBundle | None:
    """What an earlier build kept; None where it is not there or not as it was written."""
    try:
        record = msgspec.json.decode((cache / f"basic-{version}.json").read_bytes())
        content = (cache / f"basic-{version}.min.js").read_bytes()
        found = PlotlyBundle("basic", version, str(record["source"]), content)
        whole = record["integrity"] == found.integrity
    except (OSError, KeyError, TypeError, msgspec.MsgspecError):
        return None
    return found if whole else None


def _keep(cache: Path, bundle: PlotlyBundle) -> None:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        write_atomically(cache / f"basic-{bundle.version}.min.js", bundle.content)
        write_atomically(cache / f"basic-{bundle.version}.json", msgspec.json.encode(bundle.record))
    except (OSError, InfrastructureError):
        return  # the next build brings it again
