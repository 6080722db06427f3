"""What a check says of the processes that it starts."""

from __future__ import annotations

import pytest

from torchgauge.suites.conformance.check_context import root_cause

CHAIN = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
OSError: libx.so: cannot open shared object file

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 2, in <module>
torch.vague.BackendError: Failed to load the backend extension
"""


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        (CHAIN, "OSError: libx.so: cannot open shared object file"),
        ("a warning\nassertion failed in x.cpp", "assertion failed in x.cpp"),
        ("SystemExit: 3", "SystemExit: 3"),
        (" \n", "no output on stderr"),
    ],
)
def test_the_innermost_exception_is_the_cause(stderr: str, cause: str) -> None:
    """Python prints it first; without an exception the last line has to do."""
    assert root_cause(stderr) == cause
