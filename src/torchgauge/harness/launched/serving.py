"""A launched process that is not rank 0: it runs the worker of its rank and tells how that went."""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import AuthenticationError
from pathlib import Path
from typing import Any

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.devices.discover import parse_target
from torchgauge.errors import InfrastructureError, TorchgaugeError, UsageError
from torchgauge.harness.executors.executor import Submission
from torchgauge.harness.interpreter.interpreter import Interpreter
from torchgauge.harness.job import Job
from torchgauge.harness.launched import meeting, wire
from torchgauge.harness.launched.crew import devices_of
from torchgauge.harness.launched.launch import Launch
from torchgauge.harness.pool.watch import TICK_S, Watch
from torchgauge.harness.pool.worker_host import WorkerHost
from torchgauge.harness.pool.worker_setup import WorkerSetup
from torchgauge.harness.run.campaigns import planned_parts
from torchgauge.harness.run.rank_devices import refuse_too_many
from torchgauge.harness.run.runner import stop_on_interrupt
from torchgauge.processes.kept_process import scratch
from torchgauge.records import Plan, from_plain


def serve(launch: Launch, there: Interpreter, cores: int, patience_s: float) -> int:
    """Serve rank 0 until it says that this was all; the exit code. Raises what keeps it from that."""
    with meeting.store_of(launch, there, patience_s) as found:
        told = json.loads(found["told"])
        words = meeting.own_words(launch, found)
    try:
        line = _reached(launch.address, told["port"], bytes.fromhex(told["key"]), patience_s)
    except (OSError, EOFError, AuthenticationError) as error:
        raise InfrastructureError(
            f"rank {launch.rank} cannot reach rank 0 at {launch.address}:{told['port']}: {error}",
            hint="the machines must reach each other at any port, as torch.distributed needs it too",
        ) from error
    with stop_on_interrupt(lambda: f"the worker of rank {launch.rank}") as stop, scratch("serving") as folder:
        line.send(
            rank=launch.rank,
            local_rank=launch.local_rank,
            machine=meeting.machine(),
            boot=meeting.boot(),
            cores=cores,
            words=words,
            now=SYSTEM_CLOCK.now(),
        )
        line.beat()
        try:
            return Serving(launch, line, there, folder, stop.is_set).run()
        finally:
            line.close()


def _reached(address: str, port: int, key: bytes, patience_s: float) -> wire.Wire:
    """A connection to rank 0, which hears one at a time: strangers before us take their time."""
    until = SYSTEM_CLOCK.steady() + patience_s
    while True:
        try:
            return wire.connect(address, port, key)
        except (EOFError, ConnectionResetError, TimeoutError):
            if SYSTEM_CLOCK.steady() > until:
                raise
            time.sleep(TICK_S)


class Serving:
    """What one process does for rank 0, at the other end of ``line``; files lie below ``folder``."""

    def __init__(
        self, launch: Launch, line: wire.Wire, there: Interpreter, folder: Path, stopped: Callable[[], bool]
    ) -> None:
        self._launch, self._line, self._there, self._folder = launch, line, there, folder
        self._stopped = stopped
        self._submission: Submission | None = None

    def run(self) -> int:
        """Do what rank 0 says."""
        while not self._over():
            said = self._line.receive(TICK_S)
            if not said:
                continue
            if "error" in said:
                raise UsageError(said["error"], hint=said["hint"])
            if "plan" in said:
                self._take(from_plain(Plan, said["plan"]), [(where, rank) for where, rank in said["places"]])
            elif said["cmd"] == "end":
                return 0
            elif said["cmd"] == "begin":
                self._serve_case(said)
        if self._stopped():
            return 130
        raise InfrastructureError("rank 0 has gone, without a word", hint="look at what it printed")

    def _over(self) -> bool:
        return self._line.gone or self._stopped()

    def _take(self, plan: Plan, places: list[tuple[str, int]]) -> None:
        """Look whether this machine can run ``plan``, and say so."""
        plan = replace(plan, python=self._there.path)
        try:
            suites, devices = planned_parts(plan, self._there)
            mine = meeting.machine()
            groups = refuse_too_many(
                self._there, plan.groups, devices, lambda count: devices_of(mine, places, count)
            )
        except TorchgaugeError as error:
            self._line.send(error=error.message, hint=error.hint)
            return
        refused = {
            group.id: case.refusal.reason
            for group, before in zip(groups, plan.groups, strict=True)
            if (case := group.cases[0]).refusal is not None and before.cases[0].refusal is None
        }
        for each in ("work", "logs"):
            (self._folder / each).mkdir()
        self._submission = Submission(
            plan=plan,
            groups=plan.groups,
            folder=self._folder,
            devices=devices,
            suites=suites,
            python=self._there.path,
            clock=SYSTEM_CLOCK,
            cancelled=lambda: self._line.broken or self._stopped(),
            on_event=lambda _group, _event: None,
        )
        self._line.send(refused=refused)

    def _serve_case(self, begun: dict[str, Any]) -> None:
        """One case, until rank 0 closes it or is gone."""
        assert self._submission is not None
        number, target = begun["number"], parse_target(begun["target"])
        work = self._submission.folder / "work"
        setup = WorkerSetup(self._submission, target, self._submission.groups, work)
        options = setup.host_options(tuple((name, value) for name, value in begun["variables"]))
        host = WorkerHost(self._submission, work, str(target), options)
        log, cache = self._folder / "logs" / f"{number}.log", work / f"cache-{number}"
        watch: Watch | None = None
        try:
            host.begin()
            ready = host.ready()
            self._line.send(ev="ready", number=number, ready=ready, notes=self._notes(host, ready))
            while not self._over():
                said = self._line.receive(0.0 if watch is not None and not watch.ended else TICK_S)
                if said and said.get("number") == number:
                    if said["cmd"] == "close":
                        return
                    if said["cmd"] == "start" and ready:
                        watch = host.start(self._job(said["job"], cache), log, self._pass_on(number))
                    if said["cmd"] == "condemn" and watch is not None:
                        watch.condemn(said["why"], said["limit"])
                if watch is not None and not watch.ended and watch.look(TICK_S):
                    self._tell_end(number, watch, log)
        except TorchgaugeError as error:
            self._line.send(ev="ready", number=number, ready=False, notes=[error.in_a_line])
        finally:
            host.close()
            log.unlink(missing_ok=True)
            shutil.rmtree(cache, ignore_errors=True)

    def _job(self, plain: dict[str, Any], cache: Path) -> Job:
        """The job with the paths of this machine: nothing that is compiled here is kept."""
        return replace(from_plain(Job, plain), cache=str(cache), kept="")

    def _pass_on(self, number: int) -> Callable[[dict[str, Any]], None]:
        return lambda event: self._line.send(ev="event", number=number, event=event)

    def _tell_end(self, number: int, watch: Watch, log: Path) -> None:
        ending = {name: value for name, value in vars(watch.ending).items() if name != "events"}
        ending["phase"] = watch.ending.phase.value
        text = base64.b64encode(log.read_bytes()).decode() if log.exists() else None
        self._line.send(ev="ended", number=number, ending=ending, log=text)

    def _notes(self, host: WorkerHost, ready: bool) -> list[str]:
        """What is remarkable about the host; what it printed too, where it did not come up."""
        printed = self._folder / "logs" / "host.log"
        if ready or not printed.exists():
            return list(host.notes)
        return [*host.notes, f"logs/host.log there ends: {printed.read_text(errors='replace')[-500:]}"]
