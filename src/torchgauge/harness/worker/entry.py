"""Child entry: runs one job in the target interpreter and speaks through the events file only.

This is the one place with a broad ``except``: whatever a model raises becomes a status here; what kills the
process becomes a status in the parent (:mod:`torchgauge.harness.pool.derived_status`).
"""

from __future__ import annotations

import faulthandler
import json
import signal
from dataclasses import replace
from pathlib import Path

from torchgauge import registry
from torchgauge.devices.pinning import MOST_WORKERS, PinningError, pin, set_threads
from torchgauge.devices.session import DeviceSession
from torchgauge.harness.events import EventWriter
from torchgauge.harness.job import CALIBRATE, CHECKS, FRESH, SIDE, Job
from torchgauge.harness.worker.ranks import RANKS
from torchgauge.records import Outcome, Phase, Scalar, Status, from_plain, prepare
from torchgauge.records.placement import Placement, placement_of
from torchgauge.suites.suite import HOST


def run_job(path: str) -> None:
    """Run the job described in the file at ``path``."""
    registry.PATIENCE_S = (
        0.0  # the deadlines of phases hold here, and a process that stands still is not late
    )
    job = from_plain(Job, json.loads(Path(path).read_text(encoding="utf-8")))
    events = EventWriter(job.events, job.cursor)
    events.phase(Phase.START)
    _dump_stacks_on_signals()
    try:
        where = place(job)
    except PinningError as error:
        _refuse_all(job, events, str(error))
        return
    except Exception as error:  # noqa: BLE001  torch is imported here first, and with it the device's package
        _say_no_device(events, error)
        return
    session = open_session(job, events)
    if session is None:
        return
    if job.kind == CALIBRATE:
        _calibrate(job, session, events)
    elif job.kind == FRESH:
        from torchgauge.harness.worker.fresh_process import probe_afresh

        probe_afresh(job, session, events)
    elif job.kind == SIDE:
        from torchgauge.harness.ab.side_run import SideRun

        SideRun(job, session, events, where).run()
    elif job.kind == CHECKS:
        from torchgauge.harness.worker.check_run import CheckRun

        CheckRun(job, session, events, where).run()
    else:
        from torchgauge.harness.worker.group_run import GroupRun

        if job.processes > 1 and session.torch_device is None:
            _refuse_all(
                job, events, f"device {session.name!r} does not run torch, which the processes require"
            )
            return
        try:
            RANKS.join(job, session, events)
        except NotImplementedError as error:
            _refuse_all(job, events, str(error))
            return
        except Exception as error:  # noqa: BLE001  another rank is gone, or the library has no such backend
            _say_no_device(events, error)
            return
        GroupRun(job, session, events, where).run()


def warm_up_host() -> None:
    """Do once in the host what every forked worker would otherwise do for itself."""
    import torchgauge.harness.worker.failure  # noqa: F401  workers import it

    prepare(Job)


def open_session(job: Job, events: EventWriter) -> DeviceSession | None:
    """The device session of ``job``; a device that cannot be opened is said and None returned."""
    try:
        session: DeviceSession = registry.resolve(job.session)(job.device.name, job.device.index)
    except Exception as error:  # noqa: BLE001  the device is lost or broken, not the model
        _say_no_device(events, error)
        return None
    return session


def _say_no_device(events: EventWriter, error: Exception) -> None:
    from torchgauge.harness.worker.failure import describe

    events.emit("no_device", failure=describe(error))


def place(job: Job) -> dict[str, Scalar]:
    """Bind this process to the CPUs and threads that its cases ask for; the facts of where it runs.

    Raises :class:`PinningError`.
    """
    placement = Placement() if job.group is None else placement_of(job.group.cases[0].case.configuration)
    if job.cpus and not placement.cpus and placement.numa is None:
        placement = replace(placement, cpus=job.cpus)
    facts = pin(placement)
    if not job.runs_torch:
        return facts
    share = 1 if job.device.name == HOST else MOST_WORKERS
    return {**facts, **set_threads(placement, job.settings.threads, share)}


def _refuse_all(job: Job, events: EventWriter, reason: str) -> None:
    """Every case of ``job`` asks for what this machine has not."""
    for planned in job.group.cases if job.group is not None else ():
        events.outcome(Outcome(planned.case.key, Status.UNSUPPORTED, Phase.START, None, reason))
    events.phase(Phase.DONE)


def _calibrate(job: Job, session: DeviceSession, events: EventWriter) -> None:
    from torchgauge.devices.fingerprint import environment

    events.phase(Phase.MEASURE)
    identity = environment(session)
    notes: tuple[str, ...] = ()
    if job.runs_torch:
        from torchgauge.suites.torchvision_schemas import define_missing_schemas

        notes = define_missing_schemas()  # so that model libraries import at all
    events.emit("environment", environment=identity, notes=notes)
    if job.settings.calibrate:
        from torchgauge.devices.calibrate import calibrate
        from torchgauge.harness.timing_lock_client import TimingLockClient

        with TimingLockClient(job.timing_lock, events).held():  # other devices may be prepared beside it
            found = calibrate(session, job.at)
        events.emit("calibration", calibration=found)
    events.phase(Phase.DONE)


def _dump_stacks_on_signals() -> None:
    """Write Python stacks to the case's log on a fault, and on SIGUSR1 before a timeout kills."""
    faulthandler.enable(file=2, all_threads=True)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
