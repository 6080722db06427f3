"""How much of a program's time its delegate takes, by the trace that the runtime itself writes."""

from __future__ import annotations

from torchgauge.harness.backends.executorch_program import METHOD, Program
from torchgauge.harness.worker.case_measurements import of
from torchgauge.records import Measurement, absent

METRIC = "delegated_time_share"
DELEGATE, WHOLE = "DELEGATE_CALL", "Method::execute"
"""The runtime's names of an event: a delegate at work, and the whole call."""
RUNS = 6
"""The first one is left out: what is done once is done there."""


def delegated_time(program: Program) -> Measurement:
    """The share of each of some calls in which the delegate was at work; absent where there is no trace.

    The runtime is traced in a second program of the file, whose calls are not those that are timed.
    """
    path = program.path.with_suffix(".etdump")
    try:
        traced = program.load(traced=True)
        method = traced.load_method(METHOD)
        for _ in range(RUNS):
            method.execute(program.inputs)
        traced.write_etdump_result_to_file(str(path), str(path.with_suffix(".debug")))
        if not path.is_file():
            return absent(METRIC, "the runtime writes no trace: it was built without its event tracer")
        shares = _shares(path.read_bytes())
    finally:
        path.unlink(missing_ok=True)
        path.with_suffix(".debug").unlink(missing_ok=True)
    if not shares:
        return absent(METRIC, f"the runtime's trace has no event {WHOLE!r}")
    return of(METRIC, shares, "ETDump: delegate calls of the whole call", stopped="read once")


def _shares(dump: bytes) -> list[float]:
    from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc

    found = []
    for run in deserialize_from_etdump_flatcc(dump).run_data:
        times: dict[str, int] = {}
        for each in filter(None, (event.profile_event for event in run.events or ())):
            times[each.name] = times.get(each.name, 0) + each.end_time - each.start_time
        if times.get(WHOLE):
            found.append(times.get(DELEGATE, 0) / times[WHOLE])
    return found[1:]
