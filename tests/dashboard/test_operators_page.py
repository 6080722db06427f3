"""Operator coverage: verdicts by device and dtype."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from store_builder import NOW
from subject_store import subject_store

from torchgauge.dashboard import build_site


def _text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)).replace(" ,", ",")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of two devices with three operators."""
    folder = tmp_path_factory.mktemp("operators")
    build_site(subject_store(folder / "store"), folder / "site", now=NOW)
    return folder / "site"


def test_every_operator_has_a_verdict_by_device_and_dtype(built: Path) -> None:
    """The worst over the variants, a star where some pass, nothing where nothing was measured."""
    page = (built / "operators.html").read_text()
    (body,) = re.findall(r'grid ops">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    rows = {
        _text(row).split()[0]: re.findall(r'<td class="(\w+)">([^<]*)</td>', row)
        for row in body.strip().splitlines()
    }
    assert rows["add"] == [("p", "pass")] * 4
    assert rows["topk"] == [("p", "pass"), ("z", ""), ("e", "err*"), ("z", "")]
    assert next(iter(rows)) == "topk"
