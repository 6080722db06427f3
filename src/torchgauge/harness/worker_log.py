"""What a worker printed: where its host writes it, and what is kept of it without secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchgauge.processes.known_secrets import known_secrets
from torchgauge.results.atomic_file import storage_errors


@dataclass(frozen=True)
class WorkerLog:
    """The file ``printed`` among the scratch files of a run, and the log that is ``kept`` of it."""

    printed: Path
    kept: Path

    def keep(self) -> None:
        """Write the log when the worker has ended; raises :class:`InfrastructureError` on a failing disk."""
        if self.printed.exists():
            with storage_errors(self.kept):
                self.kept.write_bytes(known_secrets().hide_bytes(self.printed.read_bytes()))
                self.printed.unlink()
