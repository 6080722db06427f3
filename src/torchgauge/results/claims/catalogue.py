"""Finding a claim by its name, its title or words of what it says."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.results.claims.claim import Claim

_WORD = re.compile(r"[a-z0-9.]+")
_NO_HELP = frozenset(
    {"a", "an", "and", "are", "by", "in", "is", "of", "on", "or", "than", "the", "to", "with"}
)


def find_claim(words: str, claims: Sequence[Claim]) -> Claim:
    """The one claim that ``words`` mean: its name, its title, or words that only it has.

    Raises :class:`UsageError` with the candidates where several have them, and
    :class:`UnknownNameError` with suggestions where none has.
    """
    asked = words.strip().lower()
    for claim in claims:
        if asked in (claim.name, claim.title.lower()):
            return claim
    wanted = _words(asked)
    scores = {claim.name: len(wanted & _words(_text(claim))) for claim in claims} if wanted else {}
    whole = [claim for claim in claims if wanted and scores[claim.name] == len(wanted)]
    titled = [claim for claim in whole if wanted <= _words(f"{claim.name} {claim.title}")]
    for group in (whole, titled):
        if len(group) == 1:
            return group[0]
    if whole:
        names = ", ".join(claim.name for claim in (titled or whole))
        raise UsageError(f"{words!r} matches several claims", hint=f"one of: {names}")
    raise _unknown(words, asked, claims, scores)


def _unknown(words: str, asked: str, claims: Sequence[Claim], scores: dict[str, int]) -> UnknownNameError:
    """The error for words that no claim has, with those that have the most of them."""
    names = [claim.name for claim in claims]
    by_title = {claim.title.lower(): claim.name for claim in claims}
    close = [
        *difflib.get_close_matches(asked, names, n=3, cutoff=0.5),
        *(by_title[title] for title in difflib.get_close_matches(asked, by_title, n=3, cutoff=0.5)),
        *(name for name, score in sorted(scores.items(), key=lambda pair: -pair[1]) if score),
    ]
    error = UnknownNameError("claim", words, names, hint="torchgauge results claim --list")
    error.suggestions = list(dict.fromkeys(close))[:3]
    meant = f"; did you mean {' or '.join(error.suggestions)}?" if error.suggestions else ""
    error.message = f"unknown claim {words!r}{meant}"
    return error


def _text(claim: Claim) -> str:
    published, select = claim.published, claim.select
    parts = (claim.name, claim.title, claim.statement, published.by, *select.configurations, *select.devices)
    return " ".join(parts)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(".") for word in _WORD.findall(text.lower())) - _NO_HELP - {""}
