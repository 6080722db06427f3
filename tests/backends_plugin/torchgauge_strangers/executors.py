"""Executors of a vendor: one that keeps the rules of the seam, and one for each way to break them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from torchgauge.harness.executors.executor import RunNote, Submission
from torchgauge.registry import load


@dataclass(frozen=True)
class Executor:
    """What its name says, after the first row of the local executor."""

    name: str

    def submit(self, submission: Submission) -> Iterator[Any]:
        """The local executor's items, and what is wrong with them."""
        if self.name == "idle":
            return
        print("I execute")
        yield RunNote("a stranger executes")
        rows: list[Any] = []
        for item in load("torchgauge.executors", "local").submit(submission):
            yield item
            rows += item if isinstance(item, list) else []
            if rows and self.name == "stumbles":
                raise ValueError("I stumbled")
            if rows and self.name == "leaves":
                sys.exit(0)
            if rows and self.name == "hangs":
                time.sleep(600)
            if rows and self.name == "waits":
                self._wait(submission)
            if rows and self.name == "repeats":
                yield [rows[0]]
            if rows and self.name == "invents":
                case = replace(rows[0].case, workload=replace(rows[0].case.workload, seed=7))
                yield [replace(rows[0], case=case)]
            if rows and self.name == "mumbles":
                yield 3

    def _wait(self, submission: Submission) -> None:
        """Longer than all deadlines of a case, and alive."""
        end = submission.clock.steady() + 4
        while submission.clock.steady() < end and not submission.cancelled():
            time.sleep(0.1)


HANGS, WAITS = Executor("hangs"), Executor("waits")
FAIR, IDLE, STUMBLES, LEAVES = Executor("fair"), Executor("idle"), Executor("stumbles"), Executor("leaves")
REPEATS, INVENTS, MUMBLES = Executor("repeats"), Executor("invents"), Executor("mumbles")
