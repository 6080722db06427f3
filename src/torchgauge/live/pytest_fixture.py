"""The fixture ``torchgauge``: a test measures a model, and a run of tests is a run in a store.

What :mod:`torchgauge.pytest_plugin` imports when a test takes the fixture.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.live.compare import LiveComparison, compare
from torchgauge.live.measure import measure
from torchgauge.live.result import LiveResult, keep, summary_of
from torchgauge.results.comparing import verdict_words
from torchgauge.results.lookup import resolve_run
from torchgauge.results.store import Store
from torchgauge.suites.suite import HOST

if TYPE_CHECKING:
    from torchgauge.records.comparison import MetricVerdict

ALL = "all"
JUDGED = ("latency", "status")
"""Metrics by which a test fails; peak memory of a process with other tests says nothing."""


class LiveTests:
    """The measurements of a session, its store, and the run that they are compared with."""

    def __init__(self, store: str, compared: str) -> None:
        """Find the run ``compared`` in ``store``; raises :class:`UsageError` where there is none."""
        if compared and not store:
            raise UsageError("--torchgauge-compare needs a store", hint="--torchgauge-store FOLDER")
        self.store, self.results = store, list[LiveResult]()
        self.base = resolve_run(Store.open(store), compared) if compared else ""

    def verdicts(self, result: LiveResult) -> list[MetricVerdict]:
        """Return how ``result`` compares with its cases in the base run, by ``torchgauge compare``'s rule."""
        from torchgauge.results.comparing.run_pairs import RunSide
        from torchgauge.results.comparing.two_runs import compare_named
        from torchgauge.results.joined_store import one_store

        with tempfile.TemporaryDirectory() as folder:
            run = keep(Path(folder, "store"), [result])
            with one_store([self.store, f"{folder}/store"], f"{folder}/out") as (path, _):
                found = compare_named(Store.open(path), RunSide(self.base), RunSide(run))
        cases = {row.case_id for row in result.rows}
        return [each for each in found.verdicts if each.head_case in cases and each.metric in JUDGED]

    def finish(self) -> str:
        """Write the rows of the session to its store; returns a line for the summary, empty for none."""
        if not self.store or not self.results:
            return ""
        return f"run {keep(self.store, self.results)} in {self.store}"


class LiveTest:
    """The fixture of one test."""

    def __init__(self, tests: LiveTests, node: Any, device: str | None) -> None:
        self.device, self._tests, self._node = device, tests, node
        self._own: list[LiveResult] = []

    def measure(self, model: Any, inputs: Any = (), **options: Any) -> LiveResult:
        """Measure as :func:`torchgauge.measure` does, and keep the rows for the store of the session.

        A row is named after the test, and after its ``name`` where a test measures several models. Medians go
        into the test's properties.
        """
        options.setdefault("device", self.device)
        name = "-".join(filter(None, (self._node.nodeid.rpartition("/")[2], options.pop("name", ""))))
        with _alone():
            found = measure(model, inputs, **options, name=name, progress=False)
        self._own.append(found)
        self._tests.results.append(found)
        for row in found:
            summary = summary_of(row, "latency")
            prefix = f"torchgauge.{row.case.configuration.name}"
            self._node.user_properties.append((f"{prefix}.status", row.status.value))
            if summary is not None and summary.median is not None:
                self._node.user_properties.append((f"{prefix}.latency_s", summary.median))
        return found

    def compare(self, old: Callable[..., Any], new: Callable[..., Any], **options: Any) -> LiveComparison:
        """Compare as :func:`torchgauge.compare` does."""
        with _alone():
            return compare(old, new, **options)

    def judge(self) -> None:
        """Fail the test where a row is worse than in the base run; skip it where nothing is decided."""
        if not self._tests.base:
            return
        verdicts = [each for result in self._own for each in self._tests.verdicts(result)]
        worse = [each for each in verdicts if each.verdict in verdict_words.WORSE]
        if worse:
            pytest.fail(f"worse than run {self._tests.base}: {_listed(worse)}", pytrace=False)
        open_ = [each for each in verdicts if each.verdict in verdict_words.SILENT]
        if open_ or (self._own and not verdicts):
            said = _listed(open_) if open_ else "the run has no row of this test"
            pytest.skip(f"no verdict against run {self._tests.base}: {said}")


def devices_of(option: str | None) -> list[str | None]:
    """Return the devices that ``option`` lists; with ``all`` those that are present here."""
    if option is None:
        return [None]
    if option != ALL:
        return [name.strip() for name in option.split(",") if name.strip()]
    from torchgauge.devices.hooks import current_accelerator, device_count

    accelerator = current_accelerator()
    return [HOST, *([accelerator] if accelerator and device_count(accelerator) else [])]


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process of this user times under pytest, as those of pytest-xdist do."""
    import fcntl

    path = Path(tempfile.gettempdir(), f"torchgauge-pytest-{os.getuid()}.lock")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InfrastructureError(
            f"{path}: {error.strerror}", hint="set TMPDIR to a folder that you own"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _listed(verdicts: list[MetricVerdict]) -> str:
    def text(each: MetricVerdict) -> str:
        gained = verdict_words.named(each)
        ratio = f" {gained}" if gained else ""
        why = f" ({each.reason})" if each.reason else ""
        return f"{each.head_case} {each.metric} {verdict_words.name(each.verdict)}{ratio}{why}"

    return "; ".join(map(text, verdicts))
