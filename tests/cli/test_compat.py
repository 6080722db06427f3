"""``torchgauge results compat``: every form, where it goes, and what a person types wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import compat_store as made

from torchgauge.results.store import Store


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> list[str]:
    """Two devices, each in a store of its own, as words of the command line."""
    here, there = made.two_stores(tmp_path_factory.mktemp("compat"))
    return ["--store", here, "--store", there]


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("text", "- host: torch 2.9.0"),
        ("markdown", "# Devices compared"),
        ("csv", "section,feature,part"),
        ("json", '{\n "schema": "torchgauge.compat"'),
        ("html", "<!doctype html>"),
    ],
)
def test_every_form_is_printed_or_written(invoke, stores, tmp_path, form, begins) -> None:
    """Standard output and a file hold the same; the file's folder must exist."""
    shown = invoke("results", "compat", *stores, "--format", form)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith(begins)
    out = tmp_path / "table"
    done = invoke("results", "compat", *stores, "--format", form, "--out", str(out))
    assert (done.exit_code, done.stdout) == (0, "")
    assert out.read_text() == shown.stdout


def test_sections_and_differences_can_be_chosen(invoke, stores) -> None:
    """--what takes sections in any order, --only-differences drops what all agree on."""
    shown = invoke("results", "compat", *stores, "--what", "models,operators", "--format", "json")
    assert [each["key"] for each in json.loads(shown.stdout)["sections"]] == ["operators", "models"]
    shown = invoke("results", "compat", *stores, "--only-differences", "--expand")
    assert "tensor.views" in shown.stdout
    assert "tensor.copy" not in shown.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--store", "/no/such/store"], 2, "/no/such/store is not a store"),
        (["--devices", "gpu"], 5, "none of gpu was ever measured in these stores"),
        (["--what", "operator"], 2, "did you mean operators"),
        (["--format", "pdf"], 2, "is not one of"),
        (["--out", "/no/such/folder/file"], 2, "its folder is missing"),
    ],
)
def test_mistakes_are_explained(process, stores, words, code, said) -> None:
    """Exit 2 or 5 with what to try, and never a traceback."""
    done = process("results", "compat", *stores, *words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_store_is_nothing_selected(process, tmp_path) -> None:
    """Exit 5 with the command that fills it."""
    Store.open(tmp_path / "s", create=True)
    done = process("results", "compat", "--store", str(tmp_path / "s"))
    assert (done.returncode, "torchgauge check" in done.stderr) == (5, True), done.stderr


def test_a_damaged_run_is_exit_3_and_the_rest_is_shown(invoke, tmp_path) -> None:
    """The gap is said on standard error, and the table of what is left on standard output."""
    here, there = made.two_stores(tmp_path)
    Store.open(there).table_path("results", "run-b").write_bytes(b"no parquet")
    done = invoke("results", "compat", "--store", here, "--store", there, "--format", "csv")
    assert done.exit_code == 3
    assert "gap: run run-b" in done.stderr
    assert "tensor.copy" in done.stdout


def test_a_damaged_store_is_an_error(process, stores, tmp_path) -> None:
    """A store whose marker cannot be read is no store."""
    made.publish(tmp_path / "s", "r", made.host_rows())
    (tmp_path / "s" / "store.json").write_text("{")
    done = process("results", "compat", "--store", str(tmp_path / "s"))
    assert (done.returncode, "store.json" in done.stderr) == (2, True), done.stderr
