"""What stands for TorchBench's data is what its loaders open: layout, shapes and counts, from one seed."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from pathlib import Path
from typing import Any, get_args

import pytest

from torchgauge.records import Workload
from torchgauge.suites.torchbench import checkout_copy as torchbench_copy
from torchgauge.suites.torchbench.checkout_copy import copy_of
from torchgauge.suites.torchbench.data_files import Files
from torchgauge.suites.torchbench.suite import SUITE, Synthetic
from torchgauge.suites.torchbench.synthetic_data import DATA_SETS, provide

DATA = "torchbenchmark/data/.data"
RECIPE = {"synthetic": "super_slomo", "data": "obs.pkl"}
NEEDS_TORCH = {"drq", "omniglot"}


def size(data: bytes) -> tuple[int, int, int]:
    """Width, height and bytes per pixel of a PNG whose checksums and rows are right."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, found = 8, {}
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(kind + body),)
        found[kind] = body
        at += 12 + length
    width, height, depth, colour = struct.unpack_from(">IIBB", found[b"IHDR"])
    channels = {0: 1, 2: 3}[colour]
    assert depth == 8
    assert len(zlib.decompress(found[b"IDAT"])) == height * (1 + channels * width)
    return width, height, channels


def written(kind: str, root: Path, *, batch: int = 1, seed: str = "s", model: str = "m") -> Path:
    """``root`` with the files of ``kind``."""
    DATA_SETS[kind].write(Files(root, model, batch, seed))
    return root


def contents(root: Path) -> dict[str, str]:
    """Digest of each file below ``root``."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_schema_names_the_data_sets_and_no_others() -> None:
    """A word that the data file may use is a data set, and each is used by a model with data."""
    assert set(get_args(Synthetic)) == {"", *DATA_SETS}
    used = {str(model.recipe["synthetic"]) for model in SUITE.models() if model.recipe.get("synthetic")}
    assert used == set(DATA_SETS)
    assert sum(bool(model.recipe.get("synthetic")) for model in SUITE.models()) == 23


def test_a_model_without_data_has_nothing_to_stand_for(tmp_path: Path) -> None:
    """``torchgauge validate`` reads a data file through this schema: it names the line."""
    from torchgauge.errors import DataFileError
    from torchgauge.suites.catalog import YamlSuite

    text = """suite: torchbench
models:
  - name: plain
    tiers: [full]
    batch: {inference: 1}
    sizes: [small]
    packages: [torch]
    recipe:
      synthetic: coco
"""
    path = tmp_path / "torchbench.yaml"
    for change, problem in (("coco", "requires `data`"), ("cocoa", "cocoa")):
        path.write_text(text.replace("coco", change), encoding="utf-8")
        with pytest.raises(DataFileError, match=problem):
            YamlSuite("torchbench", "", path, SUITE.builder, recipe_type=SUITE.recipe_type).models()


@pytest.mark.parametrize("kind", [kind for kind in DATA_SETS if kind not in NEEDS_TORCH])
def test_a_seed_makes_the_same_files_and_all_that_are_opened(kind: str, tmp_path: Path) -> None:
    """Every place that upstream opens is there; another seed gives other contents under the same names."""
    one, two, three = (written(kind, tmp_path / n, seed=s) for n, s in (("1", "a"), ("2", "a"), ("3", "b")))
    assert contents(one) == contents(two)
    assert contents(one).keys() == contents(three).keys()
    assert contents(one) != contents(three)
    assert DATA_SETS[kind].is_in(one, "m")
    assert not DATA_SETS[kind].is_in(tmp_path, "m")


@pytest.mark.torch
def test_arrays_have_the_shapes_that_are_opened(child: Any, tmp_path: Path) -> None:
    """One observation of nine channels; tasks of five classes with one image to learn and fifteen to ask."""
    found = child("child_synthetic.py", str(tmp_path))
    assert found["drq"]["shapes"] == [["uint8", 9, 84, 84]]
    assert found["omniglot"]["shapes"] == [
        ["float32", 5, 5, 1, 28, 28], ["int64", 5, 5], ["float32", 5, 75, 1, 28, 28], ["int64", 5, 75],
    ]  # fmt: skip
    assert found["omniglot"]["classes"] == [0, 1, 2, 3, 4]
    assert all(each["equal"] and each["seeded"] for each in found.values())


def test_utterances_lie_where_their_list_says(tmp_path: Path) -> None:
    """Each feature matrix starts at its offset and has the stated shape; tokens are numbers of the list."""
    folder = written("utterances", tmp_path) / DATA / "speech_transformer_inputs"
    lines = (folder / "input_data/lang_1char/train_chars.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(set(lines)) == 1014
    assert {"<sos>", "<eos>"} < {line.split(" ")[0] for line in lines}
    for part in ("train", "dev", "test"):
        listed = json.loads((folder / f"input_data/{part}/data.json").read_text())["utts"]
        assert len(listed) == 10
        for utterance in listed.values():
            source, target = utterance["input"][0], utterance["output"][0]
            name, _, at = source["feat"].rpartition(":")
            data = (folder / name).read_bytes()[int(at) :]
            assert data[:5] == b"\0BFM "
            assert struct.unpack_from("<bibi", data, 5) == (4, source["shape"][0], 4, 80)
            tokens = [int(token) for token in target["tokenid"].split()]
            assert len(tokens) == target["shape"][0]
            assert all(4 <= token < 1014 for token in tokens)


def test_photographs_have_boxes_and_outlines_inside_them(tmp_path: Path) -> None:
    """A hundred pictures, each annotated, in the form of COCO with its 80 classes."""
    folder = written("coco_checkpoint", tmp_path, model="detectron2_x") / DATA / "coco2017-minimal/coco"
    found = json.loads((folder / "annotations/instances_val2017_100.json").read_text())
    assert len(found["images"]) == 100
    assert len(found["categories"]) == 80
    assert (found["categories"][0]["id"], found["categories"][-1]["id"]) == (1, 90)
    sizes = {image["id"]: (image["width"], image["height"]) for image in found["images"]}
    for image in found["images"][:4]:
        assert size((folder / "val2017" / image["file_name"]).read_bytes())[:2] == sizes[image["id"]]
    assert {each["image_id"] for each in found["annotations"]} == set(sizes)
    for each in found["annotations"]:
        (x, y, w, h), (width, height) = each["bbox"], sizes[each["image_id"]]
        assert w > 0 < h
        assert x + w <= width
        assert y + h <= height
        assert each["category_id"] in {item["id"] for item in found["categories"]}
        assert len(each["segmentation"][0]) == 8
    assert (tmp_path / "torchbenchmark/models/detectron2_x/.data/detectron2_x.pkl").is_file()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Something laid out like a checkout, in a temporary folder where copies go too."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    root = tmp_path / "checkout"
    for name, text in {
        "utils/__init__.py": "",
        "torchbenchmark/__init__.py": "",
        "torchbenchmark/models/__init__.py": "",
        "torchbenchmark/models/drq/__init__.py": "HERE = __file__",
        "torchbenchmark/models/drq/net.cfg": "layers",
        "torchbenchmark/models/other/__init__.py": "",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def given(checkout: Path, **more: Any) -> Any:
    """What is provided for the model drq."""
    return provide(Workload("torchbench", "drq", **more), RECIPE, checkout)


def test_code_is_copied_and_data_is_never_written_into_the_checkout(checkout: Path) -> None:
    """Python files are no links, so that resolved paths stay in the copy; other models are left out."""
    before = contents(checkout)
    made = given(checkout)
    assert made.synthetic
    assert made.said == "synthetic, in the shape of obs.pkl"
    code = made.root / "torchbenchmark/models/drq/__init__.py"
    assert code.resolve() == code
    assert code.read_text() == "HERE = __file__"
    assert (made.root / "torchbenchmark/models/drq/net.cfg").read_text() == "layers"
    assert not (made.root / "torchbenchmark/models/other").exists()
    assert DATA_SETS["super_slomo"].is_in(made.root, "drq")
    assert contents(checkout) == before


def test_data_that_is_there_is_used_and_said(checkout: Path) -> None:
    """Real data wins; asked for nothing else, nothing is made."""
    assert given(checkout, weights="pretrained").root == checkout
    assert given(checkout, weights="pretrained").said == ""
    (checkout / DATA / "Super_SloMo_inputs").mkdir(parents=True)
    made = given(checkout)
    assert (made.root, made.said, made.synthetic) == (checkout, "real: obs.pkl", False)


def test_a_copy_that_nobody_holds_is_removed_by_the_next(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process leaves its copy; one that is in use stays."""
    monkeypatch.setattr(torchbench_copy, "_JUST_NOW_S", 0.0)
    held = copy_of(checkout, "drq")
    left = held.with_name(f"{torchbench_copy.PREFIX}left")
    left.mkdir()
    (left / ".in-use").touch()
    copy_of(checkout, "drq")
    assert held.is_dir()
    assert not left.exists()
