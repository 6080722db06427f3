"""Running a list of checks on a device's descriptor or session; standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Violations = Iterator[str]
Subject = TypeVar("Subject")


def violations_of(checks: Iterable[Callable[[Subject], Violations]], subject: Subject) -> list[str]:
    """Sentences that say which promises ``subject`` breaks, each after the name of its check."""
    found: list[str] = []
    for check in checks:
        label = check.__name__.strip("_").replace("_", " ")
        try:
            found.extend(f"{label}: {problem}" for problem in check(subject))
        except Exception as error:  # noqa: BLE001 - whatever a subject raises here is a violation
            found.append(f"{label}: raised {type(error).__name__}: {error}")
    return found
