"""``torchgauge cache``: compiled code that is kept for the next run of the same torch."""

from __future__ import annotations

import click

FOLDER = click.option(
    "--compile-cache", "folder", metavar="DIR", help="where it is (or TORCHGAUGE_COMPILE_CACHE)"
)


@click.group("cache")
def command() -> None:
    """Compiled code that is kept for the next run of the same torch."""


@command.command("list")
@FOLDER
@click.option("--json", "as_json", is_flag=True, help="machine output on stdout")
def list_builds(folder: str | None, as_json: bool) -> None:
    """Every build with kept code, the one used last first.

    Example: torchgauge cache list
    """
    import json
    from dataclasses import asdict
    from pathlib import Path

    from torchgauge.harness.compile_cache import builds, chosen_folder
    from torchgauge.results import units

    root = chosen_folder(folder)
    found = builds(Path(root)) if root is not None else []
    if as_json:
        click.echo(json.dumps([{**asdict(each), "folder": str(each.folder)} for each in found], indent=1))
        return
    for each in found:
        about = each.about
        text = f"torch {about.get('torch.version', 'unknown')}, device {about.get('device', 'unknown')}"
        mark = "  (in use)" if each.in_use else ""
        moment = units.moment(each.used_at)
        click.echo(f"{each.key}  {units.quantity(each.bytes, 'B')}  last used {moment}  {text}{mark}")
    click.echo(f"{len(found)} builds in {root or 'no folder: none are kept'}", err=True)


@command.command("clear")
@click.argument("key", nargs=-1)
@FOLDER
def clear(key: tuple[str, ...], folder: str | None) -> None:
    """Remove the kept code of the builds KEY..., or of all; what a run uses now stays.

    Example: torchgauge cache clear
    """
    from pathlib import Path

    from torchgauge.errors import UnknownNameError
    from torchgauge.harness.compile_cache import builds, chosen_folder, remove
    from torchgauge.results import units

    root = chosen_folder(folder)
    found = {each.key: each for each in builds(Path(root))} if root is not None else {}
    for each in key:
        if each not in found:
            raise UnknownNameError("build", each, found)
    chosen = [build for build in found.values() if not key or build.key in key]
    removed = remove(Path(root), chosen) if root is not None else 0
    busy = sum(build.in_use for build in chosen)
    click.echo(f"{units.quantity(removed, 'B')} removed" + (f"; {busy} in use stay" if busy else ""))
