"""Packages that break others although no model needs them: the rules of ``data/conflicts.yaml`` on versions.

Parent side; nothing is imported, versions alone decide. What an exception shows is looked at by the worker
(:mod:`torchgauge.harness.suspects`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from torchgauge.suites.catalog import DATA, Name
from torchgauge.suites.document import read_document
from torchgauge.suites.schema import Date, Link, Reason, convert, refuse

FILE = DATA / "conflicts.yaml"
Version = Annotated[str, msgspec.Meta(pattern=r"^\d+(\.\d+)*$")]


class Beside(msgspec.Struct, forbid_unknown_fields=True):
    """Another package, which must be installed, in these bounds."""

    package: Name
    since: Version | None = None
    below: Version | None = None


class Follows(msgspec.Struct, forbid_unknown_fields=True):
    """Which version fits another package: ``own`` belongs to ``at``, and minor numbers rise together.

    ``free``: from this one on it fits the release of its own number and each later one. ``same_build``: a
    torch with this suffix needs one that has it too.
    """

    package: Name
    at: Version
    own: Version
    free: Version | None = None
    same_build: Name | None = None


class ConflictFields(msgspec.Struct, forbid_unknown_fields=True):
    """One rule; the data file's head says what the fields mean."""

    package: Name
    breaks: Reason
    fix: Reason
    reason: Reason
    link: Link
    date: Date
    module: str = ""
    since: Version | None = None
    below: Version | None = None
    beside: Beside | None = None
    follows: Follows | None = None
    unneeded: bool = False
    says: tuple[Name, ...] = ()


class ConflictFile(msgspec.Struct, forbid_unknown_fields=True):
    """A whole data file."""

    conflicts: tuple[ConflictFields, ...]


def load_conflicts(path: Path) -> tuple[ConflictFields, ...]:
    """The rules of ``path``.

    Raises :class:`DataFileError`: not strict YAML, an unknown field, two rules of one package, a rule without
    a condition or a pattern that is none.
    """
    document = read_document(path)
    rules = convert(document, ConflictFile).conflicts
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        at = f"$.conflicts[{index}]"
        if rule.package in seen:
            raise refuse(document, f"{at}.package", f"{rule.package!r} has two rules", "keep one")
        seen.add(rule.package)
        if not (rule.since or rule.below or rule.beside or rule.follows):
            raise refuse(document, f"{at}.package", "the entry has no rule for a conflict", "add `since`")
        if not (rule.unneeded or rule.says):
            raise refuse(
                document, f"{at}.package", "the entry has no pattern of error messages", "add `says`"
            )
        for place, pattern in enumerate(rule.says):
            try:
                re.compile(pattern)
            except re.error as error:
                raise refuse(document, f"{at}.says[{place}]", f"not a regular expression: {error}") from None
    return rules


@cache
def bundled_conflicts() -> tuple[ConflictFields, ...]:
    """The rules that ship with the package."""
    return load_conflicts(FILE)


def misfit(rule: ConflictFields, versions: Mapping[str, str]) -> str:
    """Why the package of ``rule`` does not fit what is installed; empty where it does or is not there.

    ``versions`` maps distributions, as indexes spell them, to versions.
    """
    own = versions.get(rule.package)
    if own is None or not _within(own, rule.since, rule.below):
        return ""
    beside = rule.beside
    if beside is not None:
        other = versions.get(beside.package)
        if other is None or not _within(other, beside.since, beside.below):
            return ""
    if rule.follows is not None:
        return _out_of_step(rule.package, own, rule.follows, versions)
    with_it = f" beside {beside.package} {versions[beside.package]}" if beside is not None else ""
    return f"{rule.package} {own}{with_it} breaks {rule.breaks}"


def suspicious(rule: ConflictFields, versions: Mapping[str, str]) -> bool:
    """Whether an exception may be the fault of the package of ``rule``: it is there, in no good version.

    One that nothing needs is suspicious in any version.
    """
    own = versions.get(rule.package)
    return own is not None and (rule.unneeded or _within(own, rule.since, rule.below))


def fitting(rule: ConflictFields, versions: Mapping[str, str]) -> str | None:
    """The requirement of the versions that fit what is installed (``torchaudio==2.5.*``), None where unknown.

    No requirement can ask for a build of its own suffix, so nothing fits that pip would choose: ``<0``.
    """
    follows = rule.follows
    if follows is None or follows.package not in versions:
        return None
    if follows.same_build and _build(versions[follows.package]) == follows.same_build:
        return f"{rule.package}<0"
    other = release_of(versions[follows.package])[:2]
    if follows.free is not None and other >= release_of(follows.free):
        return f"{rule.package}>={follows.free}"
    expected = _expected(follows, other)
    return f"{rule.package}=={expected[0]}.{expected[1]}.*" if expected is not None else None


def release_of(version: str) -> tuple[int, ...]:
    """The numbers of ``version`` before any suffix: (2, 13, 0) for ``2.13.0+cpu``, (2, 13) for ``2.13a0``."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found is not None else ()


def _out_of_step(package: str, own: str, follows: Follows, versions: Mapping[str, str]) -> str:
    other = versions.get(follows.package)
    if other is None or not release_of(own) or len(release_of(other)) < 2:
        return ""
    ours, theirs = release_of(own)[:2], release_of(other)[:2]
    here = f"{follows.package} {other} is installed"
    if follows.free is not None and ours >= release_of(follows.free):
        if ours > theirs:
            return f"{package} {own} needs {follows.package} {ours[0]}.{ours[1]} or later, but {here}"
    elif ours != _expected(follows, theirs):
        fits = _served(follows, ours)
        built = (
            f"is built for {follows.package} {fits}" if fits else f"is built for another {follows.package}"
        )
        return f"{package} {own} {built}, but {here}"
    wanted = follows.same_build
    if wanted and _build(other) == wanted != _build(own):
        return f"{package} {own} is not a +{wanted} build, but {here}"
    return ""


def _expected(follows: Follows, other: tuple[int, ...]) -> tuple[int, int] | None:
    """The release of the follower that belongs to ``other``; None for another major number."""
    at, own = release_of(follows.at), release_of(follows.own)
    return None if other[0] != at[0] else (own[0], own[1] + other[1] - at[1])


def _served(follows: Follows, ours: tuple[int, ...]) -> str:
    """The release of the other package to which ``ours`` belongs."""
    at, own = release_of(follows.at), release_of(follows.own)
    if len(ours) < 2 or ours[0] != own[0] or ours[1] < own[1]:
        return ""
    return f"{at[0]}.{at[1] + ours[1] - own[1]}"


def _build(version: str) -> str:
    """The suffix of ``version``, which says what it was built for."""
    return version.partition("+")[2]


def _within(version: str, since: str | None, below: str | None) -> bool:
    numbers = release_of(version)
    return (since is None or numbers >= release_of(since)) and (below is None or numbers < release_of(below))
