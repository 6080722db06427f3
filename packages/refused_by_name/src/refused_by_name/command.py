"""The command ``refused-by-name``: scan installed packages, and print a page, CSV or JSON.

The source of a package is third-party text: no cell of a table or of a spreadsheet may act.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from refused_by_name import tried_feature
from refused_by_name.device_words import accelerators
from refused_by_name.finding import Effect, Refusal, Scanned
from refused_by_name.scan import scan

CSV_HEADER = ("package", "version", "file", "line", "function", "effect", "names", "test", "says")
SHOWN = 400
"""Rows of places that raise in a page; CSV and JSON have all of every effect."""
LONGEST = 120
"""Characters of a cell of a page."""
TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Tried:
    """The ends of ``feature`` on ``device``: ``place`` is where its name is looked at."""

    feature: str
    device: str
    place: str
    as_it_is: str
    let_through: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code, 2 for a name that is not a package."""
    parser = argparse.ArgumentParser(
        "refused-by-name", description="Find where installed packages look at the name of a device."
    )
    parser.add_argument("packages", nargs="*", default=["torch"], metavar="PACKAGE", help="default: torch")
    parser.add_argument(
        "--device", action="append", default=[], help="also try features on this torch device type"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="every place as CSV")
    form.add_argument("--json", action="store_true", help="every place as JSON")
    options = parser.parse_args(arguments)
    try:
        scanned = [scan_package(name) for name in options.packages]
    except LookupError as error:
        parser.error(str(error))
    tried = [row for device in options.device for row in try_features(sys.executable, device)]
    if options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(CSV_HEADER)
        writer.writerows(map(_safe, csv_rows(scanned)))
    elif options.json:
        plain = {"packages": [asdict(one) for one in scanned], "tried": [asdict(row) for row in tried]}
        print(json.dumps(plain))
    else:
        print("\n".join([*(line for one in scanned for line in page(one)), *tried_table(tried)]))
    return 0


def scan_package(name: str) -> Scanned:
    """Return the refusals by name in the installed package ``name``, which is not imported.

    Raises :class:`LookupError` where it is not a package with a folder of its own.
    """
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    folders = list((spec.submodule_search_locations if spec else None) or ())
    if not folders:
        raise LookupError(f"{name!r} is not an installed package with a folder of its own")
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        version = ""
    return scan(Path(folders[0]), name, version, _say)


def _say(line: str) -> None:
    """Print one line of progress."""
    print(line, file=sys.stderr, flush=True)


def try_features(python: str, device: str) -> Iterator[Tried]:
    """Yield each feature on the torch device type ``device``, tried twice, each time in a child."""
    for feature, places in tried_feature.FEATURES.items():
        ends = (_end(python, device, feature, how) for how in ("as it is", "let through"))
        _say(f"trying {feature} on {device}")
        yield Tried(feature, device, ", ".join(places), *ends)


def _end(python: str, device: str, feature: str, how: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        words = (str(answer), device, feature, how, *sorted(accelerators()))
        try:
            done = subprocess.run(
                [python, tried_feature.__file__, *words], capture_output=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no answer in {TIMEOUT_S:.0f} s"
        try:
            return str(json.loads(answer.read_bytes()))
        except (OSError, ValueError):
            return f"ended without an answer, with {done.returncode}"


def csv_rows(scanned: Sequence[Scanned]) -> Iterator[tuple[object, ...]]:
    """Yield one row of :data:`CSV_HEADER` for each place."""
    for one in scanned:
        for place in one.refusals:
            where = (one.package, one.version, place.file, place.line, place.function, place.effect.value)
            yield *where, " ".join(place.names), place.test, place.says


def _safe(row: Sequence[object]) -> list[object]:
    """Return ``row`` without formulas: a text that a spreadsheet would compute begins with an apostrophe."""
    return [f"'{cell}" if str(cell)[:1] in set("=+-@\t\r") else cell for cell in row]


def page(scanned: Scanned) -> Iterator[str]:
    """Yield the lines of a page of Markdown: counts by folder, and the places that raise."""
    by_effect = {effect: scanned.of(effect) for effect in Effect}
    raising = by_effect[Effect.RAISES]
    yield f"## Refused by name in {cell(scanned.package)} {cell(scanned.version)}"
    yield ""
    yield (
        f"Places that treat a device that they do not name otherwise: {len(scanned.refusals)}, in "
        f"{scanned.files} files. Of them {len(raising)} raise, {len(by_effect[Effect.OTHER_PATH])} take "
        f"another path in silence, and {len(by_effect[Effect.OPTIMISATION])} only make something faster."
    )
    yield from (f"- not read: {cell(file)}" for file in scanned.unread)
    counts = {effect: Counter(map(_folder, places)) for effect, places in by_effect.items()}
    folders = Counter(map(_folder, scanned.refusals))
    rows = [
        (name, *(str(counts[effect][name]) for effect in (Effect.RAISES, Effect.OTHER_PATH)))
        for name, _ in sorted(folders.items(), key=lambda item: (-item[1], item[0]))[:20]
    ]
    yield from _table(("folder", "raises", "another path"), rows)
    if raising:
        header = ("place", "function", "lets through", "test", "raises")
        shown = raising[:SHOWN]
        places = [(f"{p.file}:{p.line}", p.function, ", ".join(p.names), p.test, p.says) for p in shown]
        yield from _table(header, places)
    if len(raising) > SHOWN:
        yield f"and {len(raising) - SHOWN} more (--json and --csv have them all)"
        yield ""


def tried_table(tried: Sequence[Tried]) -> Iterator[str]:
    """Yield the lines of the table of features that were tried; none where none was."""
    if tried:
        header = ("feature", "device", "place", "as it is", "with the name let through")
        yield from _table(header, [tuple(map(str, vars(row).values())) for row in tried])


def _folder(place: Refusal) -> str:
    """Return the second folder of ``place``, such as ``torch/nn``."""
    return "/".join(place.file.split("/")[:2])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ""
    for row in (header, ["---"] * len(header), *([*map(cell, row)] for row in rows)):
        yield f"| {' | '.join(row)} |"
    yield ""


def cell(text: str) -> str:
    """Return ``text`` as code in Markdown: on one line, cut, and with nothing that ends the code or acts."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    short = plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 3]}..."
    code = short.replace("`", "'").replace("|", "\\|").strip()
    return f"`{code}`" if code else ""
