"""The ``torchgauge`` command: verbs in five groups, each loaded only when it is asked for."""

from __future__ import annotations

import os
import sys

import click

from torchgauge.cli.lazy_group import LazyGroup
from torchgauge.cli.start import INTERRUPTED, answer_interrupts, failed, open_closed_streams
from torchgauge.errors import TorchgaugeError
from torchgauge.results.hostile_text import OutputLostError, show_visibly

COMMANDS = {
    "Measure": {
        "run": ("torchgauge.cli.run", "measure suites on devices"),
        "ab": ("torchgauge.cli.ab", "measure base and head alternately: is it slower?"),
        "matrix": ("torchgauge.cli.matrix", "measure several versions in turns: what did each change?"),
        "plan": ("torchgauge.cli.plan", "the plan as it would run"),
        "worker": ("torchgauge.cli.worker", "measure some groups of a plan file, as one machine of several"),
        "repro": ("torchgauge.cli.repro", "run one case again exactly"),
        "bisect": ("torchgauge.cli.bisect", "find the build at which a case became slower"),
        "ops": ("torchgauge.cli.ops", "judge PyTorch's operators on a device against the host"),
        "census": ("torchgauge.cli.census", "operators that models need, or that a device has"),
    },
    "Devices": {
        "devices": ("torchgauge.cli.devices", "what devices are here, and why others are not"),
        "fleet": ("torchgauge.cli.fleet", "devices of a cluster, and who has them"),
        "doctor": ("torchgauge.cli.doctor", "what is missing on this machine and what to type"),
        "bringup": ("torchgauge.cli.bringup", "bring a device up: ten answers, a report, a bundle"),
        "check": ("torchgauge.cli.check", "check what a device can do, and print its capability card"),
        "compat": ("torchgauge.cli.compat", "what devices can do, side by side, from stores"),
        "scorecard": ("torchgauge.cli.scorecard", "a device's points in PyTorch's quality levels"),
        "blockers": (
            "torchgauge.cli.blockers",
            "operators to implement next, by the models they unblock",
        ),
    },
    "Judge": {
        "gate": ("torchgauge.cli.gate", "turn verdicts into an exit code"),
        "compare": ("torchgauge.cli.compare", "compare two runs, devices or configurations of a store"),
        "trend": ("torchgauge.cli.trend", "find changes in nightly history and confirm them"),
        "claim": ("torchgauge.cli.claim", "check a published claim against what a store holds"),
        "noise": (
            "torchgauge.cli.noise",
            "how much unchanged code varies, and a policy made of that",
        ),
        "triage": ("torchgauge.cli.triage", "failures by root cause, with a command for each"),
    },
    "Publish": {
        "report": ("torchgauge.cli.report", "a comparison or a run as Markdown, JUnit XML or JSON"),
        "dashboard": ("torchgauge.cli.dashboard", "build the static site from a store, or serve it"),
        "export": ("torchgauge.cli.export", "write a run as PyTorch's dynamo CSVs or HUD's JSON"),
    },
    "Manage": {
        "ci": ("torchgauge.cli.ci", "continuous integration: plan, run, collect, judge, publish"),
        "results": ("torchgauge.cli.results", "list, show and query what is in a store"),
        "suites": ("torchgauge.cli.suites", "suites, their models and what they need"),
        "expect": ("torchgauge.cli.expect", "rewrite expectations from results, with the diff shown"),
        "validate": ("torchgauge.cli.validate", "check every YAML file of torchgauge's own"),
        "import": ("torchgauge.cli.import_", "read dynamo CSVs, HUD's JSON or TorchBench's as a run"),
        "cache": ("torchgauge.cli.cache", "compiled code that is kept for the next run"),
    },
}
"""The verbs by what they are for; ``--help`` lists them so."""


def _show_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Say the version and end; what it takes to know the commit is loaded here alone."""
    if wanted and not context.resilient_parsing:
        from torchgauge.cli.version import described_version

        click.echo(f"torchgauge, version {described_version()}")
        context.exit()


@click.group(cls=LazyGroup, sections=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Benchmarks and compatibility checks for PyTorch on any device.

    Exit codes: 0 as expected, 1 regression or unexpected status, 2 usage, 3 infrastructure or incomplete,
    5 nothing selected, 130 interrupted.
    """


def main() -> None:
    """Entry point: errors that torchgauge raises on purpose become one message and an exit code."""
    answer_interrupts()
    open_closed_streams()
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from torchgauge.workflows.guarded_log import guard_log

        guard_log()
    show_visibly()
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """The exit code of the command line ``arguments``; a mistake in it is one message on standard error."""
    try:
        code = cli.main(arguments, prog_name="torchgauge", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:  # no mistake: a person looks around
        error.show()
        code = error.exit_code
    except click.ClickException as error:
        from torchgauge.cli.mistake import mistake_text

        click.echo(mistake_text(error, arguments), err=True)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        os.write(2, b"interrupted\n")
        code = INTERRUPTED
    except TorchgaugeError as error:
        from torchgauge.cli.answer import aside

        aside([f"error: {error}"])
        code = error.exit_code
    except OutputLostError as error:
        code = 0 if isinstance(error.__cause__, BrokenPipeError) else 3
        sys.stderr.write(f"error: output could not be written: {error}\n" * bool(code))
    except Exception as error:  # noqa: BLE001  the top of the command line: a mistake of ours
        code = failed(error)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
