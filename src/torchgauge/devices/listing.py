"""Device reports as lines for a terminal."""

from __future__ import annotations

from torchgauge.devices.discover import DeviceReport, Presence


def report_lines(report: DeviceReport) -> list[str]:
    """What is known of one device: a headline, and facts or the reason why it is not here."""
    title = f"{report.name:<10} {report.presence.value:<8}"
    if report.presence is not Presence.PRESENT:
        lines = [f"{title} {report.reason}"]
        return [*lines, f"{'':<20}try: {report.fix}"] if report.fix else lines
    memory = f", {report.memory_bytes / 2**30:.1f} GiB" if report.memory_bytes else ""
    lines = [f"{title} {report.count} x {report.model or report.label}{memory}"]
    return [*lines, *(f"{'':<20}{name:<12} {text}" for name, text in _facts(report) if text)]


def _facts(report: DeviceReport) -> list[tuple[str, str]]:
    torch = report.torch
    compiling = [f"{name}: {refusal or 'yes'}" for name, refusal in report.compile]
    missing = [f"{hook.name} ({hook.problem})" for hook in report.hooks if not hook.source]
    return [
        ("torch", f"{torch.version} ({torch.flavour})" if torch else "none needed"),
        ("provider", report.provider),
        ("autocast", ", ".join(report.autocast_dtypes)),
        ("compile", "; ".join(compiling)),
        ("collectives", report.distributed_backend or "none"),
        ("telemetry", ", ".join(report.telemetry)),
        ("workers", "forked from a warm process" if report.fork_safe else "fresh processes"),
        ("missing", "; ".join(missing)),
    ]
