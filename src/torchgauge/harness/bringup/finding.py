"""One thing that a bringup found: what it is about, how it stands, and the command that shows it again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(str, Enum):
    """In which list of the report a finding stands."""

    WORKS = "works"
    NEXT = "next"
    DANGER = "danger"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """``subject`` is a short sentence, ``detail`` what the device or a row says; ``count`` are its cases.

    ``part`` is the name of the part that found it, ``about`` the key of a question, or empty. One that does
    not ``decide`` is listed and changes no answer: a device may do without it.
    """

    kind: Kind
    about: str
    subject: str
    detail: str = ""
    command: str = ""
    decides: bool = True
    count: int = 1
    part: str = ""

    @property
    def text(self) -> str:
        """Subject and detail in one line."""
        return f"{self.subject}: {self.detail}" if self.detail else self.subject
