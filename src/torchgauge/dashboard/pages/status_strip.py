"""The status of a case over the newest snapshots: a letter for each, equal neighbours in one element."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby

import numpy as np
from markupsafe import Markup

from torchgauge.counted import counted
from torchgauge.dashboard.history import STATUSES, History
from torchgauge.dashboard.statuses import LOOKS, NOTHING_PLANNED, SAYS_NOTHING

SHOWN = 64
"""Snapshots of a strip and of a sparkline: the newest ones."""

_FEW = 16
"""Snapshots up to which the letters are large."""

_SPOKEN = 16
"""Changes that a label tells one by one."""

_LOOK_OF = {look.letter: look for look in LOOKS.values()}
_SILENT = "".join(LOOKS[status].letter for status in sorted(SAYS_NOTHING)) + NOTHING_PLANNED
_BYTES = np.full(256, ord(NOTHING_PLANNED), np.uint8)
_BYTES[: len(STATUSES)] = [ord(LOOKS[status].letter) for status in STATUSES]


def letters(history: History) -> list[str]:
    """The letters of every case of ``history`` over its newest snapshots, oldest first."""
    codes = np.ascontiguousarray(_BYTES[history.status[:, -SHOWN:]])
    text, length = codes.tobytes().decode("ascii"), codes.shape[1]
    return [text[i * length : (i + 1) * length] for i in range(len(codes))]


@lru_cache(maxsize=4096)
def strip(text: str) -> Markup:
    """The strip of ``text``, which is one of :func:`letters`; what is missing is said beside it."""
    runs = [(letter, len(list(same))) for letter, same in groupby(text)]
    cells = "".join(
        [f'<i class="{"z" if letter == NOTHING_PLANNED else letter}">{letter * n}</i>' for letter, n in runs]
    )
    missing = sum(text.count(letter) for letter in _SILENT)
    note = f' <small class="muted">no result in {missing} of {len(text)}</small>' if missing else ""
    size = "strip few" if len(text) <= _FEW else "strip"
    return Markup(  # noqa: S704
        f'<span class="{size}" role="img" aria-label="{_label(runs)}">{cells}</span>{note}'
    )


def _label(runs: list[tuple[str, int]]) -> str:
    """The runs of equal letters in words, oldest first; every word is ours."""
    told = [
        f"{n} {'nothing planned' if letter == NOTHING_PLANNED else _LOOK_OF[letter].code}"
        for letter, n in runs[-_SPOKEN:]
    ]
    before = sum(n for _, n in runs[:-_SPOKEN])
    return ", ".join(([f"{counted(before, 'snapshot')} with many changes"] if before else []) + told)
