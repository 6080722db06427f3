"""What a person sees of an A/B run with ``-v``: each phase of either side as it begins."""

from __future__ import annotations

from typing import Any

from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.run.live_lines import ends_no_case
from torchgauge.records.comparison import Pair, Side


class VerboseAbProgress(AbProgress):
    """The lines of :class:`AbProgress`, with the phases between them."""

    @ends_no_case
    def event(self, pair: Pair, side: Side, event: dict[str, Any]) -> None:
        """Say which phase of which side begins."""
        super().event(pair, side, event)
        if event["ev"] == "phase":
            self.say(f"  {self.doing}, after {self.elapsed_s:.1f} s")
