"""The kept census: what a file holds comes back, the same bytes each time, and stale versions are seen."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from torchgauge.errors import InfrastructureError
from torchgauge.suites.census.data import FOLDER, CensusData, load, read, to_bytes
from torchgauge.suites.census.record import EAGER, PATHS, ModelCensus

MLP = ModelCensus(
    "toy",
    "mlp",
    "inference",
    "float32",
    EAGER,
    frozenset({("aten::addmm", "float32"), ("aten::relu", "float32"), ("aten::arange", "int64")}),
    recorded_on="npusim",
    received=frozenset({("aten::addmm.out", "float32")}),
)
LOST = ModelCensus("toy", "lost", "training", "bfloat16", EAGER, frozenset(), problem="RuntimeError: gone")
DATA = CensusData(
    {"torch": "2.13.0", "timm": "1.0.31"},
    (MLP, LOST),
    {"aten::addmm": frozenset({"addmm", "nn.functional.linear"}), "aten::relu": frozenset({"relu"})},
    {"aten::native_layer_norm": frozenset({"aten::rsqrt.out"})},
)


def test_equal_censuses_give_equal_bytes() -> None:
    """Neither the order of recording nor the hour is in a file."""
    turned = CensusData(
        dict(reversed(DATA.versions.items())),
        tuple(reversed(DATA.models)),
        dict(reversed(DATA.opinfo.items())),
        DATA.parts,
    )
    assert to_bytes(turned) == to_bytes(DATA)
    assert to_bytes(CensusData(DATA.versions, (MLP,))) != to_bytes(DATA)


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(b"{}"), gzip.compress(b'{"format": 99}'), gzip.compress(b"[]")],
    ids=["no gzip", "empty", "unknown format", "a list"],
)
def test_a_file_that_is_no_census_is_refused_with_its_name(tmp_path: Path, content: bytes) -> None:
    """The error names the file."""
    path = tmp_path / "broken.json.gz"
    path.write_bytes(content)
    with pytest.raises(InfrastructureError, match=r"broken\.json\.gz is not a census"):
        load(path)


def test_the_census_that_ships_is_small_whole_and_canonical() -> None:
    """Every entry has operators or says why not, and writing the file again gives its bytes."""
    files = sorted(FOLDER.iterdir())
    assert files
    assert sum(path.stat().st_size for path in files) < 400_000
    for path in files:
        data = read(path)
        assert path.name == f"{data.key}.json.gz"
        assert path.read_bytes() == to_bytes(data)
        assert all(bool(each.operators) != bool(each.problem) for each in data.models)
        assert {each.path for each in data.models} <= set(PATHS)
        assert data.opinfo["aten::addmm"] >= {"addmm"}


def test_every_model_that_runs_eagerly_is_in_the_census_that_ships() -> None:
    """Each suite whose packages need nothing but an installation is complete in both modes."""
    from torchgauge import registry

    data = load()
    for name in ("toy", "timm", "huggingface"):
        suite = registry.load("torchgauge.suites", name)
        wanted = {
            (entry.name, mode)
            for entry in suite.models()
            if entry.framework == "torch" and "small" in entry.sizes
            for mode in entry.batch
        }
        held = {(each.model, each.mode) for each in data.models if (each.suite, each.path) == (name, EAGER)}
        assert held == wanted
