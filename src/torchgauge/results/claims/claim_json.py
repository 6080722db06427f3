"""A claim and its answers as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from torchgauge.records.codec import to_plain
from torchgauge.results.claims.answer import Answers
from torchgauge.results.claims.claim import Claim

SCHEMA, VERSION = "torchgauge.claim", 1


def render(found: Sequence[Answers]) -> str:
    """One object: ``schema``, ``version``, and each claim as it was asked, with its answers and notes."""
    claims = [{"exit_code": each.exit_code, **to_plain(each)} for each in found]
    plain = {"schema": SCHEMA, "version": VERSION, "claims": claims}
    return json.dumps(plain, indent=1, allow_nan=False) + "\n"


def listing(claims: tuple[Claim, ...]) -> list[dict[str, Any]]:
    """The claims as plain values."""
    return [to_plain(claim) for claim in claims]
