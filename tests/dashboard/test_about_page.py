"""Data and about: every file it names is there, and what is copied from it works."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from store_builder import NOW
from subject_store import HOSTILE, subject_store

from torchgauge.dashboard import build_site


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a store with checks, operators and a model, served somewhere."""
    folder = tmp_path_factory.mktemp("about")
    build_site(
        subject_store(folder / "store"), folder / "site", now=NOW, base_url="https://example.org/results"
    )
    return folder / "site"


def test_the_charts_are_drawn_by_the_file_of_python_s_plotly(built: Path) -> None:
    """The site has the bytes that the installed package gives, and the manifest names and pins them."""
    from plotly import offline

    bundle = json.loads((built / "manifest.json").read_bytes())["plotly"]
    content = (built / bundle["file"]).read_bytes()
    assert content.decode() == offline.get_plotlyjs()
    assert bundle["version"] == offline.get_plotlyjs_version()
    digest = base64.b64encode(hashlib.sha384(content).digest()).decode()
    assert bundle["integrity"] == f"sha384-{digest}"
    assert len(bundle["own_styles"]) == 1


def test_the_columns_of_the_downloads_are_described(built: Path) -> None:
    """Each column of the Parquet file stands in the table, metrics by their pattern."""
    page = (built / "about.html").read_text()
    described = set(re.findall(r'<th scope="row"><code>([a-z_]+)</code>', page))
    names = {name for name in pq.read_schema(built / "data/latest.parquet").names if "." not in name}
    assert names <= described


def test_the_markdown_of_a_badge_leads_to_its_image(built: Path) -> None:
    """With the address of the site."""
    page = unescape((built / "about.html").read_text())
    found = re.findall(
        r"\[!\[([^]]+)\]\(https://example\.org/results/(\S+?\.svg)\)\]\(https://example\.org/results/index\.html\)",
        page,
    )
    assert len(found) == 10
    for _, image in found:
        assert (built / image).is_file()


def test_hostile_names_of_suites_break_no_markdown(tmp_path: Path) -> None:
    """Brackets and the like are escaped in the line that people paste."""
    from store_builder import EAGER, RunBuilder, result

    from torchgauge.records import Case, DeviceTarget, Workload

    run = RunBuilder("run-1", NOW - 60)
    for bad in HOSTILE:
        result(run, Case(Workload(bad, "model"), EAGER, DeviceTarget("npusim")))
    run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    page = (tmp_path / "site/about.html").read_text()
    lines = [unescape(line) for line in re.findall(r"<code>(\[!\[.*)</code></pre>", page)]
    assert len(lines) == 1 + len(HOSTILE)
    for line in lines:
        label = line.removeprefix("[![").partition("](https://YOUR-SITE/badge/")[0]
        assert not re.search(r"(?<!\\)[][()<>!`]", label), label
