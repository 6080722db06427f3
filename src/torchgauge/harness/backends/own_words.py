"""Whether a library refused by itself, so that its own words are the reason; worker side.

By who raised and not by what is said: a statement ``raise`` or ``assert`` in the library's own code is a
refusal; what comes out of a function that it called is a failure like any other.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import contextmanager

from torchgauge.errors import NotOfferedError
from torchgauge.harness.worker.verdicts import first_line

REFUSALS = (AssertionError, ImportError, NotImplementedError, RuntimeError)


@contextmanager
def in_own_words(package: str) -> Iterator[None]:
    """Raise :class:`NotOfferedError` with the words of ``package`` where its own code refuses inside."""
    try:
        yield
    except REFUSALS as error:
        if not refused_by(error, package):
            raise
        raise NotOfferedError(f"{package} refuses: {first_line(error)}") from error


def refused_by(error: BaseException, package: str) -> bool:
    """Whether a statement of ``package`` itself raised ``error``."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not str(last.tb_frame.f_globals.get("__name__", "")).startswith(f"{package}."):
        return False
    return dis.opname[last.tb_frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS"
