"""What a link to the site is shown with, and what those find who have only an address."""

from __future__ import annotations

import http.client
import io
import re
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_builder import NOW

from torchgauge.dashboard import build_site
from torchgauge.dashboard.pictures import card_image
from torchgauge.dashboard.serve import QuietHandler

BASE = "https://example.invalid/some/site/"
DRAWS = pytest.mark.skipif(not card_image.available(), reason="resvg-py is not installed")


@pytest.fixture(scope="module")
def shared(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The realistic site, as it is built for a host."""
    out = tmp_path_factory.mktemp("shared") / "site"
    build_site(store, out, now=NOW, base_url=BASE)
    return out


def head_of(path: Path) -> dict[str, str]:
    """The names and contents of the meta elements of a page."""
    text = path.read_text(encoding="utf-8")
    return dict(re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]*)">', text.split("</head>")[0]))


def pages(site: Path) -> list[str]:
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


def test_every_page_says_what_it_is_to_those_who_get_a_link(shared: Path) -> None:
    """A title, a description, an address, an icon and the feed; descriptions of kinds of pages differ."""
    found = {name: head_of(shared / name) for name in pages(shared)}
    for name, head in found.items():
        text = (shared / name).read_text()
        assert head["og:title"] in text.split("<title>")[1].split("</title>")[0], name
        assert len(head["description"]) > 15, name
        assert head["og:description"] == head["description"], name
        assert head["og:url"] == BASE + ("" if name == "index.html" else name), name
        root = "/some/site/" if name == "404.html" else "../" * name.count("/")
        assert f'<link rel="icon" type="image/svg+xml" href="{root}static/icon.svg">' in text, name
        assert f'href="{root}feed.xml">' in text, name
    top = [name for name in found if "/" not in name and not name.startswith("performance-")]
    assert len({found[name]["description"] for name in top}) == len(top)
    ET.fromstring((shared / "static" / "icon.svg").read_bytes())


@DRAWS
def test_a_link_is_shown_with_the_picture_as_pixels(shared: Path) -> None:
    """1200 x 630, light, with its title to be read; the page of a picture shows its own."""
    from PIL import Image

    images = sorted((shared / "pictures").glob("*.png"))
    assert len(images) == 6  # that of the changes only says that none is known
    for path in images:
        with Image.open(io.BytesIO(path.read_bytes())) as image:
            assert image.format == "PNG"
            assert image.size == (1200, 630)
            grey = np.asarray(image.convert("L"))
        assert grey[2, 2] == 255
        title = grey[20:80, 14:600]
        assert title.min() < 80
        dark = (title < 128).any(axis=0)
        assert np.count_nonzero(np.diff(dark)) > 15  # strokes of letters, not a bar
        head = head_of(path.with_suffix(".html"))
        assert head["og:image"] == f"{BASE}pictures/{path.name}"
        assert head["twitter:card"] == "summary_large_image"
    assert head_of(shared / "index.html")["og:image"].startswith(f"{BASE}pictures/devices-npusim")
    assert "og:image" not in head_of(shared / "404.html")


def test_without_what_draws_pixels_no_page_names_an_image(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the build says how to have them."""
    from click.testing import CliRunner

    from torchgauge.cli.main import cli

    monkeypatch.setattr(card_image, "_resvg", lambda: None)
    out = tmp_path / "site"
    asked = ["dashboard", "build", str(store), "--out", str(out), "--base-url", BASE]
    asked += ["--now", "2026-01-01T12:00:00"]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    assert "pip install 'torchgauge[dashboard]'" in done.stderr
    assert list(out.rglob("*.png")) == []
    assert not [name for name in pages(out) if "og:image" in (out / name).read_text()]
    assert list((out / "pictures").glob("devices-*.svg"))


def test_the_sitemap_has_every_page_and_nothing_else(shared: Path, site: Path) -> None:
    """With the address of the site alone, since a sitemap's addresses are absolute."""
    tree = ET.fromstring((shared / "sitemap.xml").read_bytes())
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    found = [each.text or "" for each in tree.iter(f"{space}loc")]
    assert len(found) == len(set(found))
    expected = {BASE + ("" if name == "index.html" else name) for name in pages(shared) if name != "404.html"}
    assert set(found) == expected
    assert {each.text for each in tree.iter(f"{space}lastmod")} == {"2026-01-01"}
    assert not (site / "sitemap.xml").exists()


@contextmanager
def _served(site: Path) -> Iterator[http.client.HTTPConnection]:
    handler: Any = partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
        yield connection
        connection.close()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("built_for", ["a host", "nowhere"])
@pytest.mark.parametrize("path", ["/no-such.html", "/models/deep/gone.html?x=1"])
def test_an_address_that_is_none_leads_on(built_for: str, path: str, shared: Path, site: Path) -> None:
    """The site's own page with status 404, whose links lead to pages that are there, from any depth."""
    with _served(shared if built_for == "a host" else site) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 404
        assert answer.getheader("Content-Type") == "text/html; charset=utf-8"
        assert "Page not found" in text
        links = set(re.findall(r'<a href="(/[^"#]*)"', text))
        assert len(links) > 8
        for link in (*sorted(links), "/static/style.css"):
            connection.request("GET", link)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, link
        connection.request("HEAD", path)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (404, b"")


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize(
    "path", ["/models/", "/static/", "/index.html/", f"/{'a' * 300}.html", "/%00", "/index.html%00"]
)
def test_an_address_that_no_file_can_have_is_none(path: str, coding: str, site: Path) -> None:
    """It is answered as any other that leads nowhere: no folder is listed, no exception ends the answer."""
    with _served(site) as connection:
        connection.request("GET", path, headers={"Accept-Encoding": coding})
        answer = connection.getresponse()
        assert answer.status == 404
        assert "Page not found" in answer.read().decode()
