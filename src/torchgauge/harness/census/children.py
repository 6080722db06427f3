"""Children that record a census, one after another: the parent's half of their life.

One child records many models, so that libraries are imported once. It says where it is before each; if it
dies or passes its deadline, the recording that it was at gets a problem and a new child goes on behind it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.devices.declared_variables import variables_of
from torchgauge.devices.device import Device
from torchgauge.errors import InfrastructureError
from torchgauge.harness.census import job as lines
from torchgauge.harness.census.job import CensusItem, CensusJob
from torchgauge.harness.events import EventReader, Kinds
from torchgauge.harness.interpreter.staging import environment_for, tree_for
from torchgauge.processes.kept_process import scratch, start_apart
from torchgauge.processes.known_secrets import last_line
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.python_command import python_command
from torchgauge.records import DeviceTarget, to_plain

CHILD = "torchgauge.harness.census.child"
_ANSWERS = (lines.MODEL, lines.ENTRY)
_PAIRS = tuple[tuple[str, str], ...]
_RECORDED = {"index": int, "problem?": str, "operators?": _PAIRS, "received?": _PAIRS, "parts?": dict}
_LINES: Kinds = {
    lines.VERSIONS: {"versions": dict},
    lines.REFUSED: {"problem": str},
    **dict.fromkeys((lines.BEGIN, *_ANSWERS), _RECORDED),
}
START_S = 600.0
"""A child that has not come to its first recording by then never will; importing torch can take minutes."""
_POLL_S = 0.1


@dataclass(frozen=True)
class CensusRunner:
    """Where recordings run: the interpreter, the device, and what children are given beside their items.

    ``packages`` are those whose versions they say, ``variables`` what they need in their environment, and
    ``deadline_s`` what one recording may take.
    """

    python: str
    target: DeviceTarget
    device: Device
    packages: tuple[str, ...]
    variables: Mapping[str, str]
    deadline_s: float

    def answers(self, items: Sequence[CensusItem]) -> Iterator[tuple[CensusItem, dict[str, Any]]]:
        """Every item with the line that answers it, in order, whatever happens to the children.

        Raises :class:`InfrastructureError` where a child cannot start or open the device.
        """
        at = 0
        with scratch("census") as folder:
            environment = {
                **passed(declared=variables_of(self.device)),
                **environment_for(self.python, tree_for(self.python, folder)),
                **self.variables,
                **self.device.environment((self.target.index,)),
            }
            while at < len(items):
                files = folder / f"from-{at}"
                files.mkdir()
                done = 0
                for line in _one_child(self._command(items[at:], files), environment, files, self.deadline_s):
                    yield items[at + done], line
                    done += 1
                if not done:
                    raise InfrastructureError(
                        "the recording process exited without a result", hint="torchgauge doctor"
                    )
                at += done

    def _command(self, items: Sequence[CensusItem], files: Path) -> list[str]:
        report = str(files / "report.jsonl")
        job = CensusJob(self.target, self.device.session, self.packages, tuple(items), report)
        (files / "job.json").write_text(json.dumps(to_plain(job)), encoding="utf-8")
        return python_command(self.python, CHILD, str(files / "job.json"))


def _one_child(
    command: list[str], environment: Mapping[str, str], files: Path, deadline_s: float
) -> Iterator[dict[str, Any]]:
    """The answers of one child; where it ends in the middle of a recording, the last one says how.

    Raises :class:`InfrastructureError` where it did not come as far as its first recording.
    """
    log, reader = files / "output", _Reader(files / "report.jsonl")
    with log.open("wb") as sink:
        child = start_apart(command, environment, sink)
    try:
        while True:
            ended = child.poll() is not None
            yield from reader.answers()
            if ended:
                break
            if reader.events.problem:
                problem = reader.events.problem
                break
            if reader.silent_s() > (deadline_s if reader.began else START_S):
                problem = f"no response within {deadline_s:g} s"
                break
            time.sleep(_POLL_S)
    finally:
        child.end()
        reader.events.close()
    if ended:
        problem = reader.events.problem or f"the recording process ended: {_ending(child.returncode, log)}"
    if reader.began:
        yield {"problem": problem, "versions": reader.versions}
    elif not reader.answered:
        raise InfrastructureError(
            f"the recording process did not start: {problem}", hint="torchgauge doctor prints details"
        )


class _Reader:
    """What a child has written so far.

    ``began`` says that it is in the middle of a recording, ``answered`` that it has finished one, and
    ``versions`` are those that it said.
    """

    def __init__(self, path: Path) -> None:
        self.events, self.last = EventReader(path, kinds=_LINES), time.monotonic()
        self.versions: dict[str, str] = {}
        self.began = self.answered = False
        self._at = 0

    def silent_s(self) -> float:
        """Seconds since the last line, or since the start."""
        return time.monotonic() - self.last

    def answers(self) -> Iterator[dict[str, Any]]:
        """Answers that came since the last call; raises :class:`InfrastructureError` for a lost device."""
        for line in self.events.read():
            self.last = time.monotonic()
            kind = line["ev"]
            turn = self.began if kind in _ANSWERS else not self.began
            first = kind in (lines.VERSIONS, lines.REFUSED) and not self.answered
            if not turn or not (first or line.get("index") == self._at):
                self.events.problem = "the model's process wrote an unexpected line"
                return
            if kind == lines.REFUSED:
                raise InfrastructureError(
                    f"the device cannot be opened: {line['problem']}", hint="torchgauge devices"
                )
            if kind == lines.VERSIONS:
                self.versions = line["versions"]
            self.began = kind == lines.BEGIN
            if kind in _ANSWERS:
                self.answered = True
                self._at += 1
                yield {**line, "versions": self.versions}


def _ending(code: int | None, log: Path) -> str:
    how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
    said = last_line(log) if code and code > 0 else ""
    return f"{how}, {said[:120]}" if said else how
