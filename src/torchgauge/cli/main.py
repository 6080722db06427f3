"""The ``torchgauge`` command: a flat set of verbs, each loaded only when it is asked for."""

from __future__ import annotations

import importlib
import sys

import click

from torchgauge import __version__
from torchgauge.errors import TorchgaugeError

COMMANDS = {
    "ab": ("torchgauge.cli.ab", "measure base and head alternately: is it slower?"),
    "bisect": ("torchgauge.cli.bisect", "find the build at which a case became slower"),
    "census": ("torchgauge.cli.census", "operators that a device has, has not, or hands to others"),
    "check": ("torchgauge.cli.check", "check what a device can do, and print its capability card"),
    "compare": ("torchgauge.cli.compare", "compare two runs, devices or configurations of a store"),
    "dashboard": ("torchgauge.cli.dashboard", "build the static site from a store, or serve it"),
    "devices": ("torchgauge.cli.devices", "what devices are here, and why others are not"),
    "doctor": ("torchgauge.cli.doctor", "what is missing on this machine and what to type"),
    "export": ("torchgauge.cli.export", "write a run as PyTorch's dynamo CSVs or HUD's JSON"),
    "gate": ("torchgauge.cli.gate", "turn verdicts into an exit code"),
    "import": ("torchgauge.cli.import_", "read dynamo CSVs, HUD's JSON or TorchBench's as a run"),
    "noise": ("torchgauge.cli.noise", "what unchanged code was seen to do, and a policy made of it"),
    "ops": ("torchgauge.cli.ops", "judge PyTorch's operators on a device against the host"),
    "plan": ("torchgauge.cli.plan", "the plan as it would run"),
    "report": ("torchgauge.cli.report", "a comparison or a run as Markdown, JUnit XML or JSON"),
    "repro": ("torchgauge.cli.repro", "run one case again exactly"),
    "results": ("torchgauge.cli.results", "list, show and query what is in a store"),
    "run": ("torchgauge.cli.run", "measure suites on devices"),
    "suites": ("torchgauge.cli.suites", "suites, their models and what they need"),
    "trend": ("torchgauge.cli.trend", "find changes in nightly history and confirm them"),
    "validate": ("torchgauge.cli.validate", "check every YAML file of torchgauge's own"),
}


class LazyGroup(click.Group):
    """A group whose commands are imported one at a time, so that ``--help`` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb; None for an unknown one."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest close names for an unknown verb."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=3, cutoff=0.5)
            meant = f" Did you mean {' or '.join(close)}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="torchgauge")
def cli() -> None:
    """Benchmarks and compatibility checks for PyTorch on any device.

    Exit codes: 0 as expected, 1 regression or unexpected status, 2 usage, 3 infrastructure or incomplete,
    5 nothing selected, 130 interrupted.
    """


def main() -> None:
    """Entry point: errors that torchgauge raises on purpose become one message and an exit code."""
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        code = 130
    except KeyboardInterrupt:
        code = 130
    except TorchgaugeError as error:
        click.echo(f"error: {error}", err=True)
        code = error.exit_code
    except BrokenPipeError:
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
