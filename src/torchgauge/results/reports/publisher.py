"""The seam of a publisher: a name and how a report becomes text; ``torchgauge.publishers`` lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torchgauge.errors import UsageError
from torchgauge.results.atomic_file import write_atomically
from torchgauge.results.reports.report import ComparisonReport
from torchgauge.results.reports.run_report import RunReport

Report = ComparisonReport | RunReport


def write_text(target: Path, text: str) -> None:
    """Put ``text`` at ``target``, whole or not at all.

    Raises :class:`UsageError` where its folder does not exist or it is one.
    """
    if target.is_dir() or not target.parent.is_dir():
        raise UsageError(
            f"{target} cannot be written: it is a folder, or its folder is missing", hint="--out FILE"
        )
    write_atomically(target, text.encode())


@dataclass(frozen=True)
class Publisher:
    """A form of reports: ``render`` makes text of one."""

    name: str
    render: Callable[[Report], str]

    def publish(self, report: Report, target: Path) -> None:
        """Write ``report`` to the file ``target``, whole or not at all.

        Raises :class:`UsageError` where its folder does not exist or it is one.
        """
        write_text(target, self.render(report))
