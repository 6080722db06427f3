"""Write the pictures of ``README.md`` into ``docs/images``, from the store of ``make demo``.

They are what a reader gets: the front page of the demo's site as a browser shows it, and the drawing of
what a compiler gains, which the site has as a file. The browser is Debian's Chromium, or the one that
TORCHGAUGE_CHROMIUM names.

::

    python docs/generate_pictures.py demo-results [FOLDER]
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from torchgauge.dashboard import build_site
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.results.store import Store

IMAGES = Path(__file__).parent / "images"
SIZE = {"width": 1440, "height": 800}
COLOURS = 256
"""More than a page has, but for the edges of letters: a third of the bytes."""

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def generate(store: Path, images: Path) -> tuple[Path, Path]:
    """Write both pictures of ``store`` into ``images``."""
    images.mkdir(parents=True, exist_ok=True)
    front, gain = images / "front-page.png", images / "inductor-against-eager.svg"
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder, "site")
        entries = read_site_data(Store.open(store), None).latest.entries.values()
        newest = max(entry.known_at for entry in entries if entry.known is not None)
        build_site(store, site, now=newest)  # as on its day, whenever the pictures are made
        (drawing,) = (
            path
            for path in site.glob("pictures/speedups-inductor-*.svg")
            if not path.stem.endswith(("-card", "-narrow"))
        )
        shutil.copyfile(drawing, gain)
        _shoot(site / "index.html", front)
    return front, gain


def _shoot(page: Path, image: Path) -> None:
    from playwright.sync_api import sync_playwright

    executable = os.environ.get("TORCHGAUGE_CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        shown = browser.new_page(viewport=SIZE, color_scheme="light")
        shown.goto(page.as_uri())
        shown.screenshot(path=image)
        browser.close()
    from PIL import Image

    Image.open(image).convert("RGB").quantize(COLOURS).save(image, optimize=True)


if __name__ == "__main__":
    for path in generate(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else IMAGES):
        sys.stdout.write(f"{path}: {path.stat().st_size} bytes\n")
