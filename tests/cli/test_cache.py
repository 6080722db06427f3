"""``torchgauge cache``, and the flags that say what is kept and who compiles cold."""

from __future__ import annotations

import json

import pytest

from torchgauge.harness.compile_cache import open_kept
from torchgauge.records import Environment


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder with the kept code of two builds, named by the variable."""
    root = tmp_path / "kept"
    for number in (1, 2):
        cache = open_kept(root, Environment("any", (("torch.version", f"2.{number}"),)), float(number))
        (cache.folder / "code.so").write_bytes(b"x" * 2048)
        cache.close()
    monkeypatch.setenv("TORCHGAUGE_COMPILE_CACHE", str(root))
    return root


def test_builds_are_listed(invoke, kept) -> None:
    """The one used last first, for people and as JSON."""
    shown = invoke("cache", "list")
    assert shown.exit_code == 0, shown.output
    assert shown.output.index("torch 2.2") < shown.output.index("torch 2.1")
    listed = json.loads(invoke("cache", "list", "--json").stdout)
    assert [each["about"]["torch.version"] for each in listed] == ["2.2", "2.1"]
    assert all(each["bytes"] > 2048 and not each["in_use"] for each in listed)


def test_builds_are_cleared(invoke, kept) -> None:
    """The one that is named, then all; a name that is none ends with 2."""
    listed = json.loads(invoke("cache", "list", "--json").stdout)
    assert invoke("cache", "clear", listed[1]["key"]).exit_code == 0
    (left,) = json.loads(invoke("cache", "list", "--json").stdout)
    assert left["key"] == listed[0]["key"]
    wrong = invoke("cache", "clear", "nothing")
    assert wrong.exit_code != 0
    assert json.loads(invoke("cache", "list", "--json").stdout)
    assert "removed" in invoke("cache", "clear").output
    assert json.loads(invoke("cache", "list", "--json").stdout) == []


def test_what_is_in_use_is_not_cleared(invoke, kept) -> None:
    """It is said that it stays."""
    cache = open_kept(kept, Environment("any", (("torch.version", "2.2"),)), 3.0)
    assert "; kept, in use: 1" in invoke("cache", "clear").output
    (left,) = json.loads(invoke("cache", "list", "--json").stdout)
    assert left["in_use"]
    cache.close()


def test_what_is_no_folder_ends_with_2(process, tmp_path) -> None:
    """Nothing would be listed, and nothing removed, without a word."""
    (tmp_path / "file").write_text("")
    for verb in ("list", "clear"):
        done = process("cache", verb, "--compile-cache", str(tmp_path / "file"))
        assert done.returncode == 2
        assert "this is a file" in done.stderr
        assert "try: pass a folder" in done.stderr


@pytest.mark.parametrize(
    "about", ["[]", '{"identity": [1], "used_at": 1}', '{"identity": {}, "used_at": NaN}']
)
def test_a_damaged_description_is_listed_and_cleared(invoke, kept, about) -> None:
    """As one of nothing known, which was used least lately."""
    for file in kept.glob("*/about.json"):
        file.write_text(about)
    assert "torch unknown" in invoke("cache", "list").output
    assert json.loads(invoke("cache", "list", "--json").stdout)[0]["used_at"] == 0
    assert invoke("cache", "clear").exit_code == 0
    assert json.loads(invoke("cache", "list", "--json").stdout) == []


def test_none_keeps_none(invoke, monkeypatch) -> None:
    """With ``none`` there is nothing to list or clear, and that is no error."""
    monkeypatch.setenv("TORCHGAUGE_COMPILE_CACHE", "none")
    assert json.loads(invoke("cache", "list", "--json").stdout) == []
    assert invoke("cache", "clear").exit_code == 0


def settings(invoke, *flags: str) -> dict:
    """The settings of a plan with ``flags``."""
    shown = invoke("plan", "toy", "--device", "fake", "--config", "eager", "--json", *flags)
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)["settings"]


def test_campaigns_sample_cold_compiles(invoke, kept) -> None:
    """Each once in a week unless flags say otherwise; the folder is the flag's, or the variable's."""
    default = settings(invoke)
    assert (default["cold_compile"], default["compile_cache"]) == ("1/14", str(kept))
    typed = settings(invoke, "--cold-compile", "all", "--compile-cache", "none")
    assert (typed["cold_compile"], typed["compile_cache"]) == ("all", None)


def test_another_choice_ends_with_2(process) -> None:
    """The message names what can be said."""
    done = process("plan", "toy", "--device", "fake", "--cold-compile", "2/7")
    assert done.returncode == 2
    assert "1/14 to sample each case every two weeks" in done.stderr
