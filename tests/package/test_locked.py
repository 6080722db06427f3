"""What the jobs that write install: each release is pinned with its hashes, and nothing is forgotten."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[2]
LOCKED = PROJECT / "src" / "torchgauge" / "workflows" / "locked.txt"
TRY = "run `make lock` and commit the file"
_ENTRY = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[\w.+!]+)(?: --hash=sha256:[0-9a-f]{64})+")


def locked() -> dict[str, str]:
    """Name to version of every entry; fails for a line of any other kind."""
    text = "".join(line for line in LOCKED.read_text().splitlines(keepends=True) if not line.startswith("#"))
    found = {}
    for line in re.sub(r" \\\n\s*", " ", text).splitlines():
        entry = _ENTRY.fullmatch(line.strip())
        assert entry, f"{line!r} is not pinned by a hash: {TRY}"
        found[entry["name"]] = entry["version"]
    return found


def needed(requirement: Requirement) -> bool:
    """Whether it is installed on Linux without an extra."""
    environment = {"extra": "", "sys_platform": "linux", "platform_system": "Linux", "python_version": "3.11"}
    return requirement.marker is None or requirement.marker.evaluate(environment)


def check(told: str, versions: dict[str, str]) -> None:
    """Fail where the requirement ``told`` is not what was locked."""
    requirement = Requirement(told)
    if needed(requirement):
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{told} is not locked: {TRY}"
        assert requirement.specifier.contains(version, prereleases=True), f"{told}, locked {version}: {TRY}"


def test_every_dependency_of_torchgauge_is_locked() -> None:
    """Those of pyproject.toml, and what builds the package, as the versions there allow."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    versions = locked()
    for told in (*project["project"]["dependencies"], *project["build-system"]["requires"]):
        check(told, versions)


def test_the_lock_agrees_with_the_constraints() -> None:
    """A release that constraints.txt pins is the same in both."""
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (PROJECT / "constraints.txt").read_text(), re.MULTILINE))
    both = {name: pins[name] for name in locked() if name in pins}
    assert both
    assert both == {name: locked()[name] for name in both}, TRY


@pytest.mark.parametrize("name", sorted(locked()))
def test_what_a_locked_package_needs_is_locked_too(name: str) -> None:
    """As far as the package is installed here: pip refuses a file of hashes that leaves one out."""
    try:
        told = requires(name) or []
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")
    versions = locked()
    for each in told:  # may be empty: many packages need nothing
        check(each, versions)
