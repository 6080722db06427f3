"""``torchgauge suites expect``: expectations as data that results can rewrite."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.answer import asides, say
from torchgauge.cli.option_values import CommaList
from torchgauge.cli.options import STORES
from torchgauge.counted import counted

if TYPE_CHECKING:
    from torchgauge.results.triage.expectation_update import Proposal
    from torchgauge.suites.expectation_file import ExpectationFile

_OF_CLUSTER = re.compile(r"([0-9a-f]{12})=(.*)", re.DOTALL)
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@click.command("expect")
@STORES
@click.option("--device", type=CommaList(), default=(), help="devices by name (default: all in the stores)")
@click.option("--suite", "suites", type=CommaList(), default=(), help="only rows of these suites")
@click.option("--file", "own", metavar="FILE", help="expectations file (default: the shipped one)")
@click.option("--out", metavar="DIR", help="write changed files to DIR as DEVICE.yaml")
@click.option("--in-place", is_flag=True, help="overwrite the expectations files")
@click.option("--dry-run", is_flag=True, help="show the diff; write nothing (default)")
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="number of newest runs of a case that must agree",
)
@click.option("--once", is_flag=True, help="as --runs 1")
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="URL|CLUSTER=URL",
    help="issue that explains new entries, or those of one cluster of `results triage`",
)
@click.option("--prune", is_flag=True, help="also remove entries that match no measured case")
def command(own: str | None, out: str | None, in_place: bool, dry_run: bool, **options: Any) -> None:
    """Rewrite expected failures from results and show the diff.

    A new entry needs --link.

    Exit codes: 0, or 3 if part of a store could not be read.

    Example: torchgauge suites expect --device DEVICE --link https://example.org/42 --in-place
    """
    from torchgauge.errors import UsageError
    from torchgauge.results.triage.case_evidence import read_evidence
    from torchgauge.results.triage.expectation_update import proposal
    from torchgauge.results.triage.reading import Wanted

    if sum((out is not None, in_place, dry_run)) > 1:
        raise UsageError("several outputs were given", hint="one of --out, --in-place and --dry-run")
    ask = _ask(options["links"], prune=options["prune"])
    runs = 1 if options["once"] else options["runs"]
    evidence = read_evidence(options["stores"], Wanted((), options["suites"]), runs)
    files = _files(own, options["device"], evidence.devices, in_place=in_place)
    found = [proposal(file, evidence.cases, ask) for file in files]
    for each in found:
        _show(each)
    asides(evidence.notes, evidence.gaps)
    if out is not None or in_place:
        _refuse_unlinked(found)
        _write([each for each in found if each.changed], Path(out) if out is not None else None)
    elif any(each.changed for each in found):
        click.echo("nothing was written; try: --in-place or --out DIR", err=True)
    raise SystemExit(3 if evidence.gaps else 0)


def _ask(links: tuple[str, ...], *, prune: bool):  # type: ignore[no-untyped-def]
    from torchgauge.clock import SYSTEM_CLOCK, utc
    from torchgauge.errors import UsageError
    from torchgauge.results.triage.expectation_update import Ask

    by_cluster = {found[1]: found[2] for text in links if (found := _OF_CLUSTER.fullmatch(text))}
    for_all = [text for text in links if not _OF_CLUSTER.fullmatch(text)]
    if len(for_all) > 1:
        raise UsageError(
            "several --link URLs have no cluster",
            hint="pass one --link URL for all entries, or --link CLUSTER=URL for each cluster",
        )
    for link in (*for_all, *by_cluster.values()):
        if not re.fullmatch(r"https?://\S+", link) or not link.isprintable():
            raise UsageError(
                f"{link!r} is not an http or https URL", hint="--link https://example.org/issues/42"
            )
    date = f"{utc(SYSTEM_CLOCK.now()):%Y-%m-%d}"
    return Ask(date, for_all[0] if for_all else "", by_cluster, prune)


def _files(
    own: str | None, wanted: tuple[str, ...], there: tuple[str, ...], *, in_place: bool
) -> list[ExpectationFile]:
    """The files to rewrite: a person's own, or that of each device."""
    from torchgauge.errors import UnknownNameError, UsageError
    from torchgauge.suites.expectation_file import new_file, read_file
    from torchgauge.suites.expectations import bundled_file

    for device in wanted:
        if device not in there:
            raise UnknownNameError("device of the store", device, there)
    if own is not None:
        path = Path(own)
        if path.exists():
            file = read_file(path)
            if wanted and wanted != (file.table.device,):
                raise UsageError(
                    f"{own} contains expectations of device {file.table.device!r}",
                    hint="leave out --device",
                )
            return [file]
        if len(wanted) != 1:
            raise UsageError(f"{own} does not exist", hint="--device NAME for a new file")
        return [new_file(wanted[0], path)]
    files = []
    for device in wanted or there:
        if not _DEVICE.fullmatch(device):
            raise UsageError(f"device name {device!r} cannot be a file name", hint="--file FILE")
        bundled = bundled_file(device)
        if bundled is None and in_place:
            raise UsageError(
                f"torchgauge ships no expectations for device {device!r}", hint="--file FILE --device NAME"
            )
        files.append(read_file(bundled) if bundled else new_file(device, Path(f"{device}.yaml")))
    return files


def _show(found: Proposal) -> None:
    """The difference on standard output, what to know of it on standard error."""
    import difflib

    path = found.file.path
    old = found.file.text if path.exists() else ""
    lines = difflib.unified_diff(
        old.splitlines() if found.changed else [],
        found.text.splitlines() if found.changed else [],
        f"a/{path.name}",
        f"b/{path.name}",
        lineterm="",
    )
    say(lines)
    older = counted(found.recorded, "older entry", "older entries")
    click.echo(
        f"{found.file.table.device}: entries: {found.added} new, {found.removed} removed, "
        f"{found.marked} marked with a comment; {older} got a cause",
        err=True,
    )
    for note in found.notes:
        click.echo(f"  {note}", err=True)
    for each in found.unlinked:
        cases = counted(len(each.cases), "case")
        click.echo(f"  needs a link: {each.cluster}  {each.title} ({cases})", err=True)


def _refuse_unlinked(found: list[Proposal]) -> None:
    from torchgauge.errors import UsageError

    missing = {each.cluster: each.title for proposal in found for each in proposal.unlinked}
    if missing:
        listed = "".join(f"\n  {cluster}  {title}" for cluster, title in missing.items())
        raise UsageError(
            f"nothing was written: new entries need a link that explains them{listed}",
            hint="--link URL for all of them, or --link CLUSTER=URL for each",
        )


def _write(found: list[Proposal], folder: Path | None) -> None:
    """Put the files where they belong, each whole or not at all, and read each back."""
    from torchgauge.errors import UsageError
    from torchgauge.results.atomic_file import write_atomically
    from torchgauge.suites.expectations import load_expectations

    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="--out with an existing folder")
    for each in found:
        path = each.file.path if folder is None else folder / f"{each.file.table.device}.yaml"
        if not path.parent.is_dir():
            raise UsageError(f"{path} cannot be written: its folder is missing", hint=f"make {path.parent}")
        write_atomically(path, each.text.encode())
        load_expectations(path)
        click.echo(f"wrote {path}", err=True)
