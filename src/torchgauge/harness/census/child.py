"""Child entry: records what models and operators dispatch, in the target interpreter, one after another.

Before each recording its place in the job is written, so that a parent whose child dies knows what to blame.
A broad ``except`` stands here as at the top of every worker: what a model raises is its entry's problem.
"""

from __future__ import annotations

import gc
import json
import re
import sys
import warnings
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from torchgauge.devices.installed import versions
from torchgauge.devices.session import DeviceSession
from torchgauge.harness.census import job as lines
from torchgauge.harness.census.job import CensusItem, CensusJob
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.records import Workload, from_plain
from torchgauge.registry import resolve
from torchgauge.suites.census.record import EAGER
from torchgauge.suites.lending import as_lender_knows

MOST_OF_A_REASON = 200
SAMPLES = 8
"""Of PyTorch's samples of an operator."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


class Recording:
    """One child's work: the device stays open, and a model is built once for all its paths."""

    def __init__(self, job: CensusJob, report: Any) -> None:
        self.job, self.report = job, report
        self.session: DeviceSession = resolve(job.session)(job.device.name, job.device.index)
        self.subject: tuple[Workload, Subject, Any] | None = None

    def run(self) -> None:
        """Record every item of the job; each ends in one line."""
        for index, item in enumerate(self.job.items):
            self.emit(lines.BEGIN, index=index)
            try:
                recorded = self._model(item) if item.workload is not None else self._entry(item.name)
            except Exception as error:  # noqa: BLE001  the model's own failure: it becomes its entry's problem
                self.subject = None
                recorded = {"problem": reason_of(error)}
            self.emit(lines.MODEL if item.workload is not None else lines.ENTRY, index=index, **recorded)

    def emit(self, kind: str, **fields: Any) -> None:
        """Write one line and flush it: the process may die in the next moment."""
        self.report.write(json.dumps({"ev": kind, **fields}) + "\n")
        self.report.flush()

    # --- models ------------------------------------------------------------------------------

    def _model(self, item: CensusItem) -> dict[str, Any]:
        import torch

        from torchgauge.suites.census.recorder import Recorder

        subject, scenario = self._subject(item)
        torch.set_grad_enabled(True)
        scenario.enter()
        self.session.seed(subject.seed)
        if item.path == EAGER:
            step = scenario.step(subject)
            with Recorder() as recorder:
                step()
            self.session.synchronize()
            return _recorded(recorder)
        return self._graphs(subject, scenario)

    def _graphs(self, subject: Subject, scenario: Any) -> dict[str, Any]:
        import torch

        from torchgauge.harness.worker import compilation
        from torchgauge.suites.census.graphs import GraphRecorder

        compilation.reset()
        recorder = GraphRecorder()
        compiled = torch.compile(subject.module, backend=recorder)
        scenario.step(replace(subject, call=compiled))()
        self.session.synchronize()
        compilation.reset()
        if not recorder.graphs:
            return {"problem": "dynamo captured no graph"}
        return {"operators": sorted(recorder.operators)}

    def _subject(self, item: CensusItem) -> tuple[Subject, Any]:
        """The model of ``item`` on the device, and its scenario."""
        from torchgauge.harness.worker.subjects import make_subject

        assert item.workload is not None
        if self.subject is not None and self.subject[0] == item.workload:
            return self.subject[1], self.subject[2]
        self.subject = None
        gc.collect()
        built = _builder(item)(*as_lender_knows(item.workload, item.recipe or {}))
        scenario = import_module(item.scenario)
        subject = make_subject(built, item.workload, self.session, self.session.torch_device)
        self.subject = (item.workload, subject, scenario)
        return subject, scenario

    # --- operators ---------------------------------------------------------------------------

    def _entry(self, name: str) -> dict[str, Any]:
        """What the samples of an entry of the database dispatch, forward and backward where it has one."""
        import torch

        from torchgauge.suites.census.recorder import Recorder
        from torchgauge.suites.ops import database, samples
        from torchgauge.suites.ops.host_tensors import host_tensors

        op = database.operators()[name]
        if not op.dtypes:
            raise NotImplementedError(f"{name} supports no dtype on the host, where samples are created")
        dtype = torch.float32 if torch.float32 in op.dtypes else min(op.dtypes, key=str)
        torch.set_grad_enabled(True)
        recorder = Recorder()
        back = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        for grad in (False, True) if back else (False,):
            with samples.outside_tests():
                made = list(samples.host_samples(op, dtype, SAMPLES, requires_grad=grad))
            for index, sample in enumerate(made):
                on_host = host_tensors(op, dtype, sample, index)
                _one_sample(recorder, op, samples.carried(sample, self.session.torch_device, on_host))
        return _recorded(recorder)


def _one_sample(recorder: Any, op: Any, sample: Any) -> None:
    """Record one call and, where its result has a graph, the way back, with gradients made unseen."""
    import torch

    from torchgauge.suites.ops.samples import tensors_of
    from torchgauge.suites.ops.variants import plain

    try:
        with recorder:
            result = plain(op, sample)
        outputs = [each for each in tensors_of(result) if each.requires_grad]
        if not outputs:
            return
        gradients = [torch.ones_like(each) for each in outputs]
        with recorder:
            torch.autograd.backward(outputs, gradients)
    except Exception:  # noqa: BLE001  whether the operator works is the business of `torchgauge ops judge`
        return  # what it dispatched until then it does ask for


def reason_of(error: BaseException) -> str:
    """Type and first line of what was raised, without addresses, which differ from run to run."""
    text = _ADDRESS.sub("0x...", str(error)).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"[:MOST_OF_A_REASON]


def _recorded(recorder: Any) -> dict[str, Any]:
    parts = {name: sorted(found) for name, found in recorder.parts.items()}
    return {
        "operators": sorted(recorder.operators),
        "received": sorted(recorder.received),
        "parts": parts,
    }


def _builder(item: CensusItem) -> Any:
    from torchgauge.suites.torchvision_schemas import define_missing_schemas

    define_missing_schemas()
    for name in item.preload:
        import_module(name)
    return resolve(item.builder)


def main(arguments: list[str]) -> int:
    """Do the job in the file that is named."""
    job = from_plain(CensusJob, json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    warnings.simplefilter("ignore")
    with open(job.report, "a", encoding="utf-8") as report:  # noqa: PTH123  a line at a time, flushed
        report.write(json.dumps({"ev": lines.VERSIONS, "versions": versions(job.packages)}) + "\n")
        try:
            recording = Recording(job, report)
        except Exception as error:  # noqa: BLE001  the device is lost or broken, not the model
            report.write(json.dumps({"ev": lines.REFUSED, "problem": reason_of(error)}) + "\n")
            return 1
        recording.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
