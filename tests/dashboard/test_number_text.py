"""Numbers as text: the browser's module says them digit for digit as the pages do."""

from __future__ import annotations

import random
from typing import Any

from torchgauge.dashboard.pages import number_text
from torchgauge.results import units

UNITS = ("s", "B", "ratio", "share", "count", "1/s", "FLOP", "FLOP/s", "B/s")


def _values() -> list[float]:
    """Of every size; such as end on a five, exactly or nearly; such as round up to a power of ten."""
    rng = random.Random(3)
    found = [10 ** rng.uniform(-15, 12) for _ in range(1500)]
    found += [round(10 ** rng.uniform(-4, 4), rng.randrange(6)) or 1.0 for _ in range(1000)]
    found += [n / 2**k for n in (1, 3, 5, 7, 9, 25, 125, 1001) for k in range(1, 12)]
    found += [
        1.005,
        1.125,
        12.25,
        12.35,
        0.25,
        0.35,
        99.95,
        99.96,
        999.5,
        9.96,
        0.0995,
        1023.5,
        1.0,
        2.5,
        3.5,
    ]
    return found


def test_the_browser_writes_numbers_as_the_pages_do(address: str, browser: Any) -> None:
    """Digits, intervals, changes and quantities in every unit, of thousands of values, ties among them."""
    values = _values()
    rng = random.Random(4)
    halves = [
        rng.choice((None, 10 ** rng.uniform(-4, 2.5), rng.choice((0.25, 1.25, 2.5, 12.5)))) for _ in values
    ]
    spans = [10 ** rng.uniform(-6, -0.5) for _ in values]
    asked = [
        [value, half, value * (1 - span), value * (1 + span), rng.choice(UNITS)]
        for value, half, span in zip(values, halves, spans, strict=True)
    ]
    wanted = [
        [
            number_text.digits(value, half),
            number_text.spread(half),
            number_text.change(value, half),
            units.interval(value, low, high, unit),
            units.interval(value, None, None, unit),
            units.rough(value, unit),
        ]
        for value, half, low, high, unit in asked
    ]
    page = browser.new_page()
    page.goto(address + "performance.html")
    found = page.evaluate(
        """async (asked) => {
          const text = await import("./static/number_text.js");
          return asked.map(([value, half, low, high, unit]) => [
            text.digits(value, half), text.spread(half), text.change(value, half),
            text.quantity(value, low, high, unit), text.quantity(value, null, null, unit),
            text.told(value, null, null, unit, "unsteady").replace(" · unsteady", ""),
          ]);
        }""",
        asked,
    )
    page.close()
    differing = [(a, w, f) for a, w, f in zip(asked, wanted, found, strict=True) if w != f]
    assert len(found) > 2500
    assert differing == []
