"""Calls to the head of a cluster, which may never answer: one after another in a thread of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Head:
    """The head; it is silent where a call is not answered within ``answer_s`` seconds."""

    answer_s: float
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "head"))
    open: list[tuple[float, Future[Any]]] = field(default_factory=list)

    def ask(self, call: Callable[[], Any]) -> Future[Any]:
        """What will come of ``call``."""
        future = self.thread.submit(call)
        self.open.append((time.monotonic(), future))
        return future

    @property
    def silent(self) -> bool:
        """Whether the oldest call waits for too long."""
        self.open = [each for each in self.open if not each[1].done()]
        return bool(self.open) and time.monotonic() - self.open[0][0] > self.answer_s
