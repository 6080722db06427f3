"""What a row says of its samples: the median with an interval that knows how they were taken."""

from __future__ import annotations

import random

from torchgauge.harness.run.rows import summaries
from torchgauge.records import Measurement


def test_a_machine_that_drifts_widens_the_interval_of_its_samples() -> None:
    """The same samples in another order are independent ones, and their interval is narrower."""
    drifting = [0.1 + 0.0005 * i + 0.001 * (i % 3) for i in range(60)]
    shuffled = random.Random(1).sample(drifting, len(drifting))
    (wide,), (narrow,) = (
        summaries([Measurement("latency", "s", tuple(samples))], 0.95) for samples in (drifting, shuffled)
    )
    assert wide.method == "order-statistic-moods"
    assert wide.median == narrow.median
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_a_count_that_never_varies_is_certain() -> None:
    """Equal samples resemble each other in nothing that matters."""
    (found,) = summaries([Measurement("latency", "s", (0.5,) * 20)], 0.95)
    assert (found.low, found.high, found.method) == (0.5, 0.5, "order-statistic")
