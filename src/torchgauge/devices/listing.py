"""Device reports as lines for a terminal: a block for each device that is here, one line for each other."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from torchgauge.devices.discover import DeviceReport, Presence
from torchgauge.devices.import_safety import ImportSafety, ImportTrial
from torchgauge.devices.probe import Unit

NARROWEST = 60
WIDEST = 110
FACT = 14
WAY = 21


def listing(reports: Sequence[DeviceReport], width: int) -> list[str]:
    """The lines of all ``reports`` in a terminal of ``width`` columns."""
    width = min(max(width, NARROWEST), WIDEST)
    indent = max((len(report.name) for report in reports), default=0) + 4
    lines: list[str] = []
    for presence in Presence:
        chosen = [report for report in reports if report.presence is presence]
        if chosen:
            lines.append(presence.value)
        for report in chosen:
            lines += (
                _block(report, indent, width)
                if presence is Presence.PRESENT
                else _line(report, indent, width)
            )
    return [*lines, *_wrapped("verified on hardware  ", _verified(reports), width)]


def import_lines(found: ImportSafety, width: int) -> list[str]:
    """The lines of :class:`ImportSafety` in a terminal of ``width`` columns."""
    width = min(max(width, NARROWEST), WIDEST)
    packages = ", ".join(f"{item.package or item.name} {item.version}".strip() for item in found.extensions)
    loads = f"import torch loads {packages}" if packages else "import torch loads no extension"
    about = f" for {found.device}" if found.device else ""
    lines = _wrapped("", f"{found.python}: {loads}{about}", width)
    for trial in found.trials:
        lines += _wrapped(f"  {trial.way.value:<{WAY}}", f"{_ending(trial)} ({trial.how})", width)
        if trial.trouble is not None:
            causes = [trial.trouble.cause, *trial.trouble.chain[-2::-1]]
            heads = ["root cause: ", *["raised as: "] * (len(causes) - 1), "try: "]
            for head, text in zip(heads, [*causes, trial.trouble.fix], strict=True):
                lines += _wrapped(" " * (WAY + 2) + head, text.partition("\n")[0], width)
    return lines


def _ending(trial: ImportTrial) -> str:
    if trial.survived is None:
        return "not tried"
    if trial.import_s is None:
        return "fails"
    return f"survives, {trial.import_s:.2f} s"


def _block(report: DeviceReport, indent: int, width: int) -> Iterator[str]:
    first, *others = _units(report)
    yield f"  {report.name:<{indent - 2}}{first}"[:width]
    yield from (f"{'':<{indent}}{unit}"[:width] for unit in others)
    for name, text in _facts(report):
        if text:
            yield from _wrapped(f"{'':<{indent}}{name:<{FACT}}", text, width)


def _line(report: DeviceReport, indent: int, width: int) -> Iterator[str]:
    why = report.why.value if report.why is not None else report.reason
    detail = report.presence is Presence.BROKEN or why == report.reason
    head = f"  {report.name:<{indent - 2}}{why:<21}"
    if not detail and len(head) + len(report.fix) <= width:
        yield f"{head}{report.fix}".rstrip()
        return
    yield head.rstrip()
    if detail and report.reason != why:
        yield from _wrapped(f"{'':<{indent}}", report.reason, width)
    if report.fix:
        yield from _wrapped(f"{'':<{indent}}try: ", report.fix, width)


def _units(report: DeviceReport) -> list[str]:
    """One text for each run of equal devices, such as ``NAME.0-7  8 x MODEL, 80.0 GiB``."""
    if not report.units:
        return [report.label]
    runs: list[list[Unit]] = []
    for unit in report.units:
        if runs and (runs[-1][0].model, runs[-1][0].memory_bytes) == (unit.model, unit.memory_bytes):
            runs[-1].append(unit)
        else:
            runs.append([unit])
    return [_run(report, run) for run in runs]


def _run(report: DeviceReport, run: list[Unit]) -> str:
    first, last = run[0], run[-1]
    memory = f", {first.memory_bytes / 2**30:.1f} GiB" if first.memory_bytes else ""
    index = f"index {first.index}" if first is last else f"index {first.index}-{last.index}"
    times = f"{len(run)} x " if len(run) > 1 else ""
    return f"{times}{first.model or report.label}{memory} ({index})"


def _facts(report: DeviceReport) -> list[tuple[str, str]]:
    torch = report.torch
    missing = [hook.name for hook in report.hooks if not hook.source]
    return [
        ("torch", f"{torch.version} ({torch.flavour})" if torch else "none needed"),
        ("provider", report.provider),
        ("driver", report.driver),
        ("autocast", ", ".join(report.autocast_dtypes)),
        ("compile", _compile(report)),
        ("collectives", report.distributed_backend or "none"),
        ("profiler", report.profiler),
        ("telemetry", ", ".join(key.partition(".")[2] for key in report.telemetry) or "none"),
        ("tool", report.tool),
        ("workers", "forked from a process that imported torch" if report.fork_safe else "fresh processes"),
        ("missing", f"{', '.join(missing)} (--json says why)" if missing else ""),
    ]


def _compile(report: DeviceReport) -> str:
    """Backends that work, the device's default marked, then those that do not."""
    works = [
        f"{name} (default)" if name == report.compile_default else name
        for name, refusal in report.compile
        if not refusal
    ]
    refused = [name for name, refusal in report.compile if refusal]
    return "; ".join(filter(None, [", ".join(works), f"not {', '.join(refused)}" if refused else ""]))


def _verified(reports: Sequence[DeviceReport]) -> str:
    dated = [
        f"{report.name} {report.verified.date} ({report.verified.machine})"
        for report in reports
        if report.verified.machine
    ]
    never = [report.name for report in reports if report.verified.date == "never" and report.torch_type]
    return "; ".join([*dated, *([f"never: {', '.join(never)}"] if never else [])]) or "not stated"


def _wrapped(head: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
