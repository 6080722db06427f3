"""plotly.js for the charts: copied from Python's plotly into the site, and loaded from nowhere else.

It is never part of this package. Pages load it when a chart comes into view, pinned by its SHA-384.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from torchgauge.errors import MissingPackageError

_VERSION = re.compile(r"__plotlyjs_version__\s*=\s*[\"'](\d+\.\d+\.\d+[\w.+-]*)[\"']")
_OWN_STYLE = re.compile(rb'getElementById\("([0-9a-f]{64})"\)')
"""Ids of style elements that the bundle adds unless they are there: it has those of maps.

The pages' policy forbids them, so charts put elements with these ids there first.
"""


@dataclass(frozen=True)
class PlotlyBundle:
    """plotly.js as a site has it: ``file`` is its place there, another content has another name.

    ``integrity`` is the SHA-384 as pages pin it, ``licence`` stands in the first lines of the content.
    """

    content: bytes
    version: str
    file: str
    integrity: str
    own_styles: tuple[str, ...]
    licence: str = "MIT"

    @property
    def record(self) -> dict[str, object]:
        """The fields that the manifest has: all but the content."""
        return {name: value for name, value in vars(self).items() if name != "content"}


@cache
def plotly_bundle() -> PlotlyBundle:
    """Return the bundle inside Python's plotly; raises :class:`MissingPackageError` where that is damaged."""
    version = _VERSION.search(_of_plotly("offline/_plotlyjs_version.py").decode())
    if version is None:
        raise _damaged("its version of plotly.js is missing")
    content = _of_plotly("package_data/plotly.min.js")
    digest = hashlib.sha384(content)
    return PlotlyBundle(
        content,
        version[1],
        f"assets/plotly-{version[1]}-{digest.hexdigest()[:8]}.min.js",
        f"sha384-{base64.b64encode(digest.digest()).decode()}",
        tuple(sorted({match.decode() for match in _OWN_STYLE.findall(content)})),
    )


def _of_plotly(name: str) -> bytes:
    """Return a file of Python's plotly, without importing that, which takes longer than a small build."""
    try:
        return Path(str(metadata.distribution("plotly").locate_file(f"plotly/{name}"))).read_bytes()
    except (metadata.PackageNotFoundError, OSError) as error:
        raise _damaged(f"its {name} cannot be read: {error}") from error


def _damaged(problem: str) -> MissingPackageError:
    return MissingPackageError(
        f"Python's plotly is damaged: {problem}", hint="pip install --force-reinstall plotly"
    )
