"""Model code as a part of the environment: on rows, between runs, along a trend and before a run goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import torchgauge
from torchgauge import registry
from torchgauge.suites.torchbench.checkout import revision

RUN = (
    "run", "torchbench", "--models", "lennard_jones,llama", "--config", "eager", "--mode", "inference",
    "--device", "cpu", "--measure-seconds", "0.02", "--no-memory-probe", "--no-calibration",
    "--no-accuracy", "--prefetch", "1",
)  # fmt: skip


def cli(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """One torchgauge command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(torchgauge.__file__).parents[1]), **more}
    return subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *arguments],
        capture_output=True, text=True, check=False, env={"OMP_NUM_THREADS": "1", **environment},
    )  # fmt: skip


@pytest.mark.torch
def test_a_run_goes_on_over_the_code_of_its_plan_alone_and_the_next_run_names_what_changed(
    tmp_path: Path, fake_torchbench: Any
) -> None:
    """An edited model, another commit, another checkout and another setting are refused, and nothing else.

    Rows name commit and code. Between two runs ``compare`` names both, and ``trend`` the models that changed.
    """
    checkout, store = tmp_path / "upstream", ("--store", str(tmp_path / "store"))
    commit = fake_torchbench.write(checkout)
    model = checkout / "torchbenchmark" / "models" / "llama" / "__init__.py"
    text = model.read_text()
    begun = cli(*RUN, "--torchbench", str(checkout), *store, "--budget", "0.1")
    assert "Continue with: torchgauge run --resume" in begun.stderr, begun.stderr

    def resume(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return cli("run", "--resume", "latest", *words, *store, **more)

    model.write_text(f"{text}\nEDITED = True\n")
    edited = resume()
    model.write_text(text)
    other = tmp_path / "other"
    fake_torchbench.write(other)
    refused = [edited, resume("--torchbench", str(other)), resume("--threads", "3")]
    fake_torchbench.git(
        checkout, "-c", "user.name=t", "-c", "user.email=t@t.invalid", "commit", "--allow-empty", "-mx"
    )
    refused.append(resume())
    fake_torchbench.git(checkout, "reset", "--hard", commit)
    assert [done.returncode for done in refused] == [2] * 4, [done.stderr for done in refused]
    messages = (
        "code of model 'torchbench/llama' differs",
        f"was planned with --torchbench {checkout}",
        "--threads 3: ",
        "data of suite 'torchbench' differs",
    )
    for done, message in zip(refused, messages, strict=True):
        assert message in done.stderr
    assert f"--torchbench {other}: " in refused[1].stderr
    assert "was planned with the default\n  try: torchgauge run --resume " in refused[2].stderr
    ended = resume(TORCHGAUGE_TORCHBENCH=str(other))  # a variable is not typed: the plan's checkout counts
    assert "[2/2] llama eager: pass" in ended.stderr, ended.stderr

    model.write_text(f"{text}\nEDITED = True\n")
    cli(*RUN, "--torchbench", str(checkout), *store)
    rows = json.loads(cli("results", "query", "--json", *store).stdout)
    facts = [(row["model"], json.loads(row["facts"])) for row in rows]
    (dirty,) = {each["checkout"] for _, each in facts} - {commit[:12]}
    assert dirty.startswith(f"{commit[:12]} dirty ")
    codes = {name: {each["model_code"] for other, each in facts if other == name} for name, _ in facts}
    assert {name: len(held) for name, held in codes.items()} == {"lennard_jones": 1, "llama": 2}
    compared = cli("compare", "latest~1", "latest", *store).stdout
    assert f"differs: checkout of torchbench: {commit[:12]} -> {dirty}" in compared
    assert "differs: code of torchbench/llama: " in compared
    assert "lennard_jones:" not in "".join(x for x in compared.splitlines() if x.startswith("differs"))
    assert "only the time differs" not in compared
    trend = cli("results", "trend", *store).stdout
    assert ": torchbench/llama" in trend
    assert "model code changed on" in trend


@pytest.mark.parametrize("folder", ["models", "models/fb", "canary_models"])
def test_the_digest_of_a_model_covers_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """An edit changes the digest of the model in each folder where upstream's runner finds models."""
    file = tmp_path / "torchbenchmark" / folder / "inner_net" / "__init__.py"
    file.parent.mkdir(parents=True)
    monkeypatch.setenv("TORCHGAUGE_TORCHBENCH", str(tmp_path))
    suite, digests = registry.load(registry.SUITES, "torchbench"), []
    for text in ("class Model: ...", "class Model: size = 4"):
        file.write_text(text)
        digests.append(suite.code("inner_net", {"canary": folder == "canary_models"}, "")["model_code"])
    assert digests[0] != digests[1]


def test_two_edits_of_a_helper_are_two_states_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_torchbench: Any
) -> None:
    """The file lies outside the model's digest: commit, ``dirty`` and a digest of the changes name it."""
    commit = fake_torchbench.write(tmp_path)
    monkeypatch.setenv("TORCHGAUGE_TORCHBENCH", str(tmp_path))
    helper = tmp_path / "torchbenchmark" / "models" / "plain" / "__init__.py"
    suite, states = registry.load(registry.SUITES, "torchbench"), []
    for text in ("WIDTH = 4\n", "WIDTH = 8\n"):
        helper.write_text(text)
        revision.cache_clear()  # a run asks git once
        states.append(suite.code("llama", {}, ""))
    assert states[0]["model_code"] == states[1]["model_code"]
    assert states[0]["checkout"] != states[1]["checkout"]
    assert all(state["checkout"].startswith(f"{commit[:12]} dirty ") for state in states)


def test_data_of_a_model_is_not_its_code(tmp_path: Path) -> None:
    """Python files count everywhere; others only where they are small and lie in no folder of data."""
    from torchgauge.suites.model_code import LARGEST_BYTES, code_digest

    (tmp_path / "data").mkdir()
    (tmp_path / "__init__.py").write_text("one")
    digests = [code_digest([tmp_path])]
    for name, text in (
        ("data/notes.txt", "x"),
        ("weights.bin", "x"),
        ("big.json", "x" * (LARGEST_BYTES + 1)),
        ("sizes.yaml", "x"),
        ("net.cfg", "x"),
        ("data/loader.py", "x"),
    ):
        (tmp_path / name).write_text(text)
        digests.append(code_digest([tmp_path]))
    assert digests[0] == digests[1] == digests[2] == digests[3]
    assert len(set(digests)) == 4
