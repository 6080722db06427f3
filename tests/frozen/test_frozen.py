"""The promises that are recorded beside this file hold; ``python tests/frozen/promises.py`` renews them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import promises

SHOWN = 20_000
RENEW = "python tests/frozen/promises.py renews the files and prints this difference, which a person reads"


@pytest.mark.torch
def test_every_promise_is_kept() -> None:
    """Commands on three stores, pages, mistakes of YAML, a journal and public names are as recorded."""
    now = promises.record()
    assert sorted(file.name for file in promises.RECORDED.iterdir()) == sorted(now)
    differences = "".join(promises.difference(name, text) for name, text in now.items())
    assert not differences, f"\n{differences[:SHOWN]}\n{RENEW}"
