#!/usr/bin/env python3
"""Build the documentation's site from the Markdown of the repository.

    python docs/sphinx/build.py [OUT [ROOT]]    OUT (site-docs) is replaced; ROOT is this repository

Exit 1 where a link or an anchor leads nowhere or a page stands in no index. Nothing is fetched, neither here
nor by a browser that reads the site.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from navigation import START, below, sidebar
from pages import BrokenLinkError, Pages
from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = Path(__file__).parent


def stage(pages: Pages, folder: Path) -> None:
    """Write the pages to ``folder`` as Sphinx reads them; raises :class:`BrokenLinkError`."""
    for file, place in pages.places.items():
        text = pages.text(file)
        contents = sidebar(pages) if file == START else below(pages, file)
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{text}\n{contents}" if contents else text, encoding="utf-8")
    for file in sorted(pages.copies):
        target = folder / "files" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(pages.root / file, target)


def build(root: Path, out: Path) -> int:
    """Build the site of the repository ``root`` in ``out``; 0 where nothing is wrong."""
    found = re.search(r'__version__ = "([^"]+)"', (root / "src/torchgauge/__init__.py").read_text("utf-8"))
    os.environ["TORCHGAUGE_DOCS_VERSION"] = found[1] if found else ""
    with tempfile.TemporaryDirectory(prefix="torchgauge-docs-") as scratch:
        source, built = Path(scratch, "source"), Path(scratch, "site")
        try:
            stage(Pages.of(root), source)
        except BrokenLinkError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        options = ["-W", "--keep-going", "-n", "-q", "-b", "html", "-j", "auto"]
        failed = sphinx([*options, "-c", str(SETTINGS), "-d", f"{scratch}/trees", str(source), str(built)])
        if failed:
            return 1
        (built / ".buildinfo").unlink(missing_ok=True)
        shutil.rmtree(built / "_sources", ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(built, out)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Build into the folder that is named; 0 where nothing is wrong."""
    out = Path(arguments[0] if arguments else ROOT / "site-docs")
    failed = build(Path(arguments[1]).resolve() if len(arguments) > 1 else ROOT, out)
    sys.stdout.write("the site was not built\n" if failed else f"open {out / 'index.html'}\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
