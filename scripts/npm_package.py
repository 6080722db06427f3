"""Bring one package of the npm registry into the user's cache, by npm itself, and print the folder it is in.

::

    python scripts/npm_package.py axe-core 4.14.1 sha512-...

The archive must have the digest that is given (as ``npm view NAME@VERSION dist.integrity`` prints it); no
script of the package runs. What is in the cache already is used as it is, without asking anybody. Ends with 1
and a line that says why where the package cannot be brought. Standard library only.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TIMEOUT_S = 180


class NotBroughtError(Exception):
    """The package is neither in the cache nor to be had."""


def cache_folder() -> Path:
    """Where packages are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "torchgauge" / "npm"


def bring(name: str, version: str, integrity: str) -> Path:
    """The folder of the unpacked package; raises :class:`NotBroughtError`."""
    digest = hashlib.sha256(integrity.encode()).hexdigest()[:8]
    plain = re.sub(r"[^a-z0-9.]+", "-", f"{name}-{version}".lower()).strip("-")
    folder = cache_folder() / f"{plain}-{digest}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        archive = _packed(name, version, Path(work))
        found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if f"sha512-{found}" != integrity:
            raise NotBroughtError(f"{name} {version} has the digest sha512-{found}, not {integrity}")
        with tarfile.open(archive) as files:
            safe = (
                {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            )  # Debian 12's Python has none
            files.extractall(Path(work) / "unpacked", **safe)
        try:
            (Path(work) / "unpacked" / "package").rename(folder)
        except OSError:
            if not folder.is_dir():  # else somebody else was faster
                raise
    return folder


def _packed(name: str, version: str, work: Path) -> Path:
    """The archive as the registry sends it."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotBroughtError(f"{name} {version} is brought by npm, which is not installed")
    command = [npm, "pack", f"{name}@{version}", "--ignore-scripts", "--pack-destination", str(work)]
    try:
        done = subprocess.run(
            command, cwd=work, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotBroughtError(f"npm took longer than {TIMEOUT_S} s for {name} {version}") from None
    archives = list(work.glob("*.tgz"))
    if done.returncode or len(archives) != 1:
        lines = done.stderr.strip().splitlines()[-3:]
        raise NotBroughtError(f"npm cannot bring {name} {version}: {' '.join(lines)}")
    return archives[0]


def main() -> int:
    """The command."""
    try:
        sys.stdout.write(f"{bring(*sys.argv[1:4])}\n")
    except (NotBroughtError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
