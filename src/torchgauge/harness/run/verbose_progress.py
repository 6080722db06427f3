"""What a person sees with ``-v``: each phase as it begins, and everything about each case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchgauge.harness.run.live_lines import ends_no_case
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.summary import result_lines
from torchgauge.records import Group, Result

if TYPE_CHECKING:
    from torchgauge.harness.run.run_report import RunReport


class VerboseProgress(Progress):
    """The lines of :class:`Progress`, with phases and whole rows between them."""

    @ends_no_case
    def event(self, group: Group, event: dict[str, Any]) -> None:
        """Say which phase of which case begins."""
        super().event(group, event)
        if event["ev"] == "phase":
            self.say(f"  {self.doing}, after {self.elapsed_s:.1f} s")

    @ends_no_case
    def results(self, results: Sequence[Result], report: RunReport) -> None:
        """Say all that the rows of a group hold."""
        super().results(results, report)
        for result in results:
            for line in result_lines(result):
                self.say(f"  {line}")
