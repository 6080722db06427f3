"""A group of verbs that are imported one at a time, so that ``--help`` stays quick."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

import click

from torchgauge.errors import InfrastructureError


class LazyGroup(click.Group):
    """A group whose verbs are named with one line of help each, under headings.

    A verb is the ``command`` of its module, or what stands behind a colon: ``package.module:name``.
    """

    def __init__(
        self, *arguments: Any, sections: Mapping[str, Mapping[str, tuple[str, str]]], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.sections = sections
        self.verbs = {name: verb for verbs in sections.values() for name, verb in verbs.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, sorted."""
        return sorted(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb; None for an unknown one."""
        if cmd_name not in self.verbs:
            return None
        module, _, name = self.verbs[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest close names for an unknown verb."""
        if args and args[0] not in self.verbs and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], self.verbs, n=3, cutoff=0.5)
            meant = f" Did you mean {' or '.join(close)}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; a pipe that broke within it is a failure, which click would end with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise InfrastructureError("a connection was closed", hint="run the command again") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs by section, in one column, without importing them."""
        widest = max(map(len, self.verbs))
        for heading, verbs in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), doc) for name, (_, doc) in verbs.items()])
