"""``torchgauge cache``: compiled code that is kept for the next run of the same torch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from torchgauge.cli.answer import JSON, say_json
from torchgauge.counted import counted

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = click.option(
    "--compile-cache",
    "folder",
    metavar="DIR",
    help="folder of compiled code (or TORCHGAUGE_COMPILE_CACHE; default: in the user's cache)",
)


def _root(folder: str | None) -> Path | None:
    """The folder of kept caches, None for ``none``; raises :class:`UsageError` for what is no folder."""
    from pathlib import Path

    from torchgauge.errors import UsageError
    from torchgauge.harness.compile_cache import chosen_folder

    root = chosen_folder(folder)
    if root is None:
        return None
    if Path(root).exists() and not Path(root).is_dir():
        raise UsageError(f"{root} is not a folder", hint="--compile-cache DIR")
    return Path(root)


@click.group("cache")
def command() -> None:
    """List or remove compiled code that is kept for the next run."""


@command.command("list")
@FOLDER
@JSON
def list_builds(folder: str | None, as_json: bool) -> None:
    """List builds with kept code, most recently used first.

    Example: torchgauge cache list
    """
    from dataclasses import asdict

    from torchgauge.harness.compile_cache import builds
    from torchgauge.results import units

    root = _root(folder)
    found = builds(root) if root is not None else []
    if as_json:
        say_json([{**asdict(each), "folder": str(each.folder)} for each in found])
        return
    for each in found:
        about = each.about
        text = f"torch {about.get('torch.version', 'unknown')}, device {about.get('device', 'unknown')}"
        mark = "  (in use)" if each.in_use and os.access(each.folder, os.W_OK) else ""
        moment = units.moment(each.used_at)
        click.echo(f"{each.key}  {units.quantity(each.bytes, 'B')}  last used {moment}  {text}{mark}")
    count = counted(len(found), "build")
    click.echo(f"{count}{f' in {root}' if root else ': the compile cache is off'}", err=True)


@command.command("clear")
@click.argument("key", nargs=-1)
@FOLDER
def clear(key: tuple[str, ...], folder: str | None) -> None:
    """Remove the kept code of builds KEY..., or of all builds; code in use stays.

    Example: torchgauge cache clear
    """
    from torchgauge.errors import UnknownNameError, UsageError
    from torchgauge.harness.compile_cache import builds, remove
    from torchgauge.results import units

    root = _root(folder)
    found = {each.key: each for each in builds(root)} if root is not None else {}
    for each in key:
        if each not in found:
            raise UnknownNameError("build", each, found)
    if found and root is not None and not os.access(root, os.W_OK):
        raise UsageError(f"no write permission for {root}", hint="run this as the owner of the folder")
    chosen = [build for build in found.values() if not key or build.key in key]
    removed = remove(root, chosen) if root is not None else 0
    busy = sum(build.in_use for build in chosen)
    click.echo(f"{units.quantity(removed, 'B')} removed" + (f"; kept, in use: {busy}" if busy else ""))
