"""The driver's end of its broker: lines of JSON to a process that may hang or be gone."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchgauge.clock import Clock
from torchgauge.harness.executors.part_jobs import JobState, Stage
from torchgauge.processes.kept_process import KeptProcess
from torchgauge.results.atomic_file import write_atomically

LOG = "broker.log"


@dataclass
class BrokerLink:
    """A broker that was started: what it has said, and when."""

    process: KeptProcess
    clock: Clock
    log: Path
    heard: float
    states: dict[str, JobState] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    spoken: bool = False
    ended: bool = False
    sayer: threading.Thread | None = None
    unsaid: queue.SimpleQueue[bytes | None] = field(default_factory=queue.SimpleQueue)

    @classmethod
    def begin(
        cls, order: Mapping[str, Any], folder: Path, environment: Mapping[str, str], clock: Clock
    ) -> BrokerLink:
        """A broker for ``order``, whose files lie in ``folder``."""
        file, log = folder / "broker.json", folder / LOG
        write_atomically(file, json.dumps(order).encode())
        reads, writes = os.pipe()
        try:
            with log.open("ab") as output:
                process = KeptProcess(
                    [sys.executable, "-m", f"{__package__}.broker", str(file), str(writes)],
                    environment,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    pass_fds=(writes,),
                )
        except BaseException:
            os.close(reads)
            raise
        finally:
            os.close(writes)
        link = cls(process, clock, log, clock.steady())
        threading.Thread(target=link._listen, args=(reads,), name="broker", daemon=True).start()
        link.begin_to_say()
        return link

    def begin_to_say(self) -> None:
        """Write what is told in a thread: the broker may read late, or never."""
        self.sayer = threading.Thread(target=self._say, name="to the broker", daemon=True)
        self.sayer.start()

    def _listen(self, reads: int) -> None:
        with os.fdopen(reads, "rb") as lines:
            for line in lines:
                said = json.loads(line)
                self.states |= {
                    name: JobState(Stage(stage), words, again, told)
                    for name, (stage, words, again, told) in said["jobs"].items()
                }
                self.notes += said["notes"]
                self.heard, self.spoken = self.clock.steady(), True
        self.ended = True

    def tell(self, **command: Any) -> None:
        """Say ``command``; a broker that is gone is found out elsewhere, and one that hangs delays nobody."""
        self.unsaid.put(json.dumps(command).encode() + b"\n")

    def _say(self) -> None:
        assert self.process.stdin is not None
        try:
            while (line := self.unsaid.get()) is not None:
                self.process.stdin.write(line)
                self.process.stdin.flush()
        except (OSError, ValueError):
            self.ended = True
        finally:
            with suppress(OSError):
                self.process.stdin.close()

    def trouble(self, patience_s: float) -> str:
        """Why nothing more is to be expected of it; "" where it is well."""
        if self.ended:
            return f"the connection to the Ray cluster ended: {self._last_words()}"
        if self.clock.steady() - self.heard > patience_s:
            return f"the connection to the Ray cluster is silent for {patience_s:g} s"
        return ""

    def close(self, patience_s: float = 5.0) -> None:
        """Let it end, or end it."""
        self.unsaid.put(None)
        with suppress(OSError, subprocess.TimeoutExpired):
            self.process.wait(patience_s)
        self.process.end()
        if self.sayer is not None:
            self.sayer.join(patience_s)

    def _last_words(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "it said nothing")
