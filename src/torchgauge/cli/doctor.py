"""``torchgauge doctor``."""

from __future__ import annotations

import sys
from typing import Any

import click

from torchgauge.cli.answer import JSON, say, say_json
from torchgauge.cli.option_values import THREADS, FiniteRange
from torchgauge.cli.options import PYTHON, store_option


@click.command("doctor")
@click.option("--device", help="measure this device and judge whether the machine is fit to measure")
@PYTHON
@store_option("store of earlier measurements of the device")
@click.option("--threads", type=THREADS, help="CPU threads of the measuring process (default: torch's)")
@click.option(
    "--timeout",
    type=FiniteRange(0.1),
    help="timeout in seconds (default: 120 for the probe, 30 for each part)",
)
@click.option("--quick", is_flag=True, help="fewer samples")
@click.option("--no-calibration", is_flag=True, help="do not measure the speed of the device itself")
@JSON
def command(**options: Any) -> None:
    """Print missing software and the commands that install it.

    With --device, also measure the device and judge whether the machine is fit to measure.

    Exit codes: 0 fit or unknown, 3 a fix is needed.

    Example: torchgauge doctor --device DEVICE
    """
    from torchgauge.harness.run.live_lines import ASKING, LiveLines

    with LiveLines().during(ASKING):  # importing takes a second, too
        checks = _checks(options)
    from torchgauge.devices.health import CheckState
    from torchgauge.harness.doctor.doctor_text import check_lines
    from torchgauge.records import to_plain

    device, as_json = options["device"], options["as_json"]
    broken = any(check.state is CheckState.FAIL for check in checks)
    if not as_json:
        say(check_lines(checks))
    if device is None or broken or options["no_calibration"]:
        if as_json:
            say_json(to_plain({"checks": checks, "calibration": None, "fitness": None}))
        sys.exit(3 if broken else 0)
    sys.exit(_calibrate(options, checks))


def _checks(options: dict[str, Any]) -> list[Any]:
    """What the machine has and lacks; raises :class:`UsageError` where the store is none."""
    from torchgauge.devices.discover import parse_target
    from torchgauge.devices.health import CheckState, diagnose
    from torchgauge.devices.probe import TIMEOUT_S
    from torchgauge.harness.doctor.doctor_run import check_store
    from torchgauge.harness.interpreter.foreign_plugins import plugin_devices
    from torchgauge.harness.interpreter.interpreter import interpreter
    from torchgauge.harness.interpreter.packages import package_checks
    from torchgauge.harness.interpreter.staging import environment_for

    device = options["device"]
    name = parse_target(device).name if device is not None else None
    if device is not None:
        check_store(options["store"])
    there = interpreter(options["python"])
    checks = diagnose(
        there.path,
        name,
        timeout=options["timeout"] or TIMEOUT_S,
        plugins=plugin_devices(there),
        environment=environment_for(there.path),
    )
    if not any(check.name == "python" and check.state is CheckState.FAIL for check in checks):
        checks += package_checks(there.path)
    return checks


def _calibrate(options: dict[str, Any], checks: list[Any]) -> int:
    """Calibrate the device, print what came of it; the exit code."""
    from torchgauge.harness.doctor.doctor_run import calibration_campaign, run_calibration
    from torchgauge.harness.doctor.doctor_text import calibration_lines
    from torchgauge.harness.doctor.fitness import Verdict, fitness
    from torchgauge.harness.run.progress import Progress
    from torchgauge.records import to_plain

    calibrated = run_calibration(calibration_campaign(options, Progress()))
    found = fitness(calibrated)
    if options["as_json"]:
        plain = to_plain({"checks": checks, "calibration": calibrated, "fitness": found})
        say_json(plain)
    else:
        say(calibration_lines(calibrated, found))
    if calibrated.interrupted:
        return 130
    return 3 if found.verdict is Verdict.UNFIT else 0
