"""How long the threads of this process waited for a core, as Linux counts it.

``/proc/self/task/TID/schedstat`` holds, in nanoseconds, the time on a CPU and the time in a run queue
(Linux, ``Documentation/scheduler/sched-stats.rst``). ``/proc/self/schedstat`` is the main thread's alone.
"""

from __future__ import annotations

import os
from pathlib import Path

TASKS = Path("/proc/self/task")


class RunQueue:
    """Waiting time of all threads of this process, in nanoseconds since any point in time.

    A thread that ends keeps what it had waited; a new one counts from the next :meth:`refresh`.
    """

    def __init__(self, tasks: Path = TASKS) -> None:
        self._tasks = tasks
        self._files: dict[str, int] = {}
        self._waited: dict[str, int] = {}
        self.refresh()

    @property
    def known(self) -> bool:
        """Whether the system tells."""
        return bool(self._waited)

    def refresh(self) -> None:
        """Look for new threads."""
        try:
            names = os.listdir(self._tasks)  # noqa: PTH208  names alone: this stands between two blocks
        except OSError:
            return
        for name in names:
            if name not in self._files:
                try:
                    self._files[name] = os.open(self._tasks / name / "schedstat", os.O_RDONLY | os.O_CLOEXEC)
                except OSError:
                    continue
        self.read()

    def read_ns(self) -> int:
        """What all threads have waited so far, together."""
        return sum(self.read().values())

    def read(self) -> dict[str, int]:
        """What each thread has waited so far, by its id."""
        for name, file in list(self._files.items()):
            try:
                self._waited[name] = int(os.pread(file, 64, 0).split()[1])
            except (OSError, IndexError, ValueError):  # the thread has ended
                os.close(file)
                del self._files[name]
        return dict(self._waited)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()
