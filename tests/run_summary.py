"""Names at the end of a run its slowest tests and the time of each folder."""

from __future__ import annotations

from collections import Counter

import pytest

SLOWEST = 30
MINUTE = 60.0
_seconds: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the time of a test's setup, call or teardown to that of the test."""
    _seconds[report.nodeid] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print both tables, longest first; times are those of workers, which run side by side."""
    if len(_seconds) <= SLOWEST:
        return
    folders: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for test, seconds in _seconds.items():
        folder = test.partition("::")[0].rpartition("/")[0]
        folders[folder] += seconds
        tests[folder] += 1
    terminalreporter.section(f"slowest {SLOWEST} tests")
    for test, seconds in _seconds.most_common(SLOWEST):
        terminalreporter.write_line(f"{seconds:7.1f} s  {test}")
    terminalreporter.section(f"time by folder, of {_seconds.total() / MINUTE:.1f} worker-minutes in all")
    for folder, seconds in folders.most_common():
        terminalreporter.write_line(f"{seconds:7.1f} s  {tests[folder]:5d} tests  {folder}")
