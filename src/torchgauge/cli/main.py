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
        "ab": ("torchgauge.cli.ab", "measure base and head alternately: is head slower?"),
        "matrix": ("torchgauge.cli.matrix", "measure several versions of torch or libraries in turns"),
        "bisect": ("torchgauge.cli.bisect", "find the build at which a case became slower"),
        "repro": ("torchgauge.cli.repro", "run one recorded case again, with the same settings"),
        "plan": ("torchgauge.cli.plan", "show the plan of a run; measure nothing"),
        "worker": ("torchgauge.cli.worker", "measure part of a plan on one of several machines"),
    },
    "Devices": {
        "doctor": ("torchgauge.cli.doctor", "print missing software, and how to install it"),
        "devices": ("torchgauge.cli.devices", "list devices of this machine or of an executor"),
        "bringup": ("torchgauge.cli.bringup", "bring up a device: ten questions answered in a report"),
        "check": ("torchgauge.cli.check", "check what a device can do, and print its capability card"),
        "ops": ("torchgauge.cli.ops", "operators: test, count, and rank those to implement next"),
    },
    "Results": {
        "compare": ("torchgauge.cli.compare", "compare two runs, devices or configurations of a store"),
        "report": ("torchgauge.cli.report", "print a comparison or a run as Markdown, JUnit XML or JSON"),
        "results": ("torchgauge.cli.results", "read, import, export and maintain stored results"),
        "dashboard": ("torchgauge.cli.dashboard", "build the static site from a store, serve it, publish it"),
    },
    "Continuous integration": {
        "gate": ("torchgauge.cli.gate", "turn the verdicts of a comparison into an exit code"),
        "ci": ("torchgauge.cli.ci", "steps of CI workflows: plan, run, collect, judge, report"),
    },
    "Manage": {
        "suites": ("torchgauge.cli.suites", "list suites, models, required packages, expected failures"),
        "validate": ("torchgauge.cli.validate", "check YAML files that torchgauge reads"),
        "cache": ("torchgauge.cli.cache", "list or remove compiled code kept for the next run"),
    },
}
"""The verbs by what they are for; ``--help`` lists them so."""


RENAMED = {
    "blockers": "ops blockers",
    "census": "ops census",
    "ci comment": "ci report comment",
    "ci confirm": "ci suspects measure",
    "ci issues": "ci report issues",
    "ci publish": "dashboard publish",
    "ci report": "ci report upstream",
    "ci settle": "ci suspects settle",
    "ci suspects": "ci suspects list",
    "claim": "results claim",
    "compat": "results compat",
    "expect": "suites expect",
    "expect update": "suites expect",
    "export": "results export",
    "fleet status": "devices --executor local",
    "import": "results import",
    "noise": "results noise",
    "ops": "ops judge",
    "scorecard": "results scorecard",
    "trend": "results trend",
    "triage": "results triage",
}
"""The verbs of 0.1 by their earlier names, which work until 0.2; docs/adr/0004-cli.md has the reasons."""


class VerbGroup(LazyGroup):
    """The verbs at the top, which also take their earlier names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the new name in the place of an earlier one, and print one line about it."""
        return super().parse_args(ctx, _renamed(args))


def _renamed(arguments: list[str]) -> list[str]:
    for count in (2, 1):
        old, following = " ".join(arguments[:count]), arguments[count : count + 1]
        new = RENAMED.get(old)
        if new is None:
            continue
        begins_with_option = following != [] and following[0].startswith("-")
        if new.startswith(f"{old} ") and (not begins_with_option or following[0] in ("-h", "--help")):
            continue  # a group of today
        click.echo(f"`{old}` is now `{new}`; the old name works until 0.2", err=True)
        return [*new.split(), *arguments[count:]]
    return arguments


def _show_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Say the version and end; what it takes to know the commit is loaded here alone."""
    if wanted and not context.resilient_parsing:
        from torchgauge.cli.version import described_version

        click.echo(f"torchgauge, version {described_version()}")
        context.exit()


@click.group(cls=VerbGroup, sections=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
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
