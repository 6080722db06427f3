"""Several iterators at work at once, each in a thread, and one thread that hears of all of them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

LISTEN_S = 0.5
"""Seconds between looks at whether all of them have ended."""

Item = TypeVar("Item")


def side_by_side(
    sources: Sequence[Iterable[Item]], quiet: Callable[[], None], stopping: threading.Event
) -> Iterator[Item]:
    """What the ``sources`` yield, as it comes; each is iterated in a thread of its own.

    ``quiet`` is called before each item is handed on. Raises what one of them raised; then, and where nobody
    wants more, ``stopping`` is set until all have ended, which they are to heed.
    """
    messages: queue.Queue[Item | BaseException] = queue.Queue()

    def iterate(source: Iterable[Item]) -> None:
        try:
            for item in source:
                messages.put(item)
        except BaseException as error:  # noqa: BLE001  the caller's thread raises it
            messages.put(error)

    threads = [threading.Thread(target=iterate, args=(each,), name="side by side") for each in sources]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads) or not messages.empty():
            try:
                message = messages.get(timeout=LISTEN_S)
            except queue.Empty:
                continue
            if isinstance(message, BaseException):
                raise message
            quiet()
            yield message
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
        stopping.clear()
