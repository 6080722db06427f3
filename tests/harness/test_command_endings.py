"""What a person types wrong ends with an exit code, a suggestion and nothing written."""

from __future__ import annotations

import json
import shlex

import pytest

PLAN = ("toy", "--device", "fake", "--config", "eager")
MISTAKES = {
    "model": ((*PLAN, "--models", "noob"), "unknown model 'noob'; did you mean noop"),
    "configuration": (("toy", "--device", "fake", "--config", "eagre"), "did you mean eager"),
    "executor": ((*PLAN, "--executor", "locall"), "unknown executor 'locall'; did you mean local"),
    "device target": (("toy", "--device", "fa/ke"), "names no device"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_and_nothing_is_written(sandbox, mistake) -> None:
    """An unknown name ends with 2 and, where there is one, the close match; no store appears."""
    words, message = MISTAKES[mistake]
    done = sandbox.measure(*words)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not sandbox.store_path.exists()


@pytest.mark.parametrize("words", [("--models", "zzz*"), ("--mode", "training", "--models", "noop")])
def test_an_empty_selection_has_its_own_exit_code(sandbox, words) -> None:
    """A selection that is right but matches nothing ends with 5 and writes nothing."""
    done = sandbox.measure(*PLAN, *words)
    assert done.returncode == 5, done.stderr
    assert "nothing matches" in done.stderr
    assert not sandbox.store_path.exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("toy", "--models", "noop"), 0),
        (("slow", "--models", "broken"), 1),
        (("slow", "--models", "broken,killed"), 3),
        (("toy", "--models", "mlp"), 3),
        (("toy", "--models", "mlp,noop"), 0),
    ],
)
def test_the_exit_code_of_a_run(sandbox, words, code) -> None:
    """As expected 0, an unexpected status 1, an incomplete run 3 before 1; unsupported is 0, and alone 3."""
    done = sandbox.measure(*words, "--device", "fake", "--config", "eager", "--json")
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)["exit_code"] == code


def test_a_case_is_reproduced_by_the_command_in_its_row(sandbox) -> None:
    """The row's command holds the settings that differ from the defaults, and runs the same case again."""
    sandbox.measure("toy", "--models", "noop", *PLAN[1:], "--timeout", "150")
    (row,) = sandbox.rows()
    words = shlex.split(row.reproduce)
    assert words[:3] == ["torchgauge", "repro", row.case_id]
    for flag in ("--threads 1", "--measure-seconds 0.1", "--no-memory-probe", "--timeout 150"):
        assert flag in row.reproduce
    other = sandbox.store_path.with_name("other")
    done = sandbox.run(*words[1:], "--store", str(other), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"pass": 1}
    assert f"{row.case_id}: pass" in done.stderr


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("suite: mine\nmodels:\n  - name: a\n    tiers: [smoke]\n    batch: {inference: 0}\n", ":5"),
        ("suite: mine\nnothing: else\n", ""),
    ],
)
def test_a_malformed_data_file_is_refused_with_its_line(sandbox, text, where) -> None:
    """``validate`` ends with 2 and names the file, the line and the field."""
    file = sandbox.store_path.with_name("suite.yaml")
    file.write_text(text)
    done = sandbox.run("validate", str(file))
    assert done.returncode == 2, done.stdout
    assert f"{file}{where}" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_bundled_data_files_are_right(sandbox) -> None:
    """``validate`` without arguments checks every data file that ships with the package."""
    done = sandbox.run("validate")
    assert done.returncode == 0, done.stderr
    assert "toy.yaml" in done.stdout


@pytest.mark.torch
@pytest.mark.full
def test_the_default_configurations_measure_everything(sandbox) -> None:
    """Eager beside the default compiler gives every metric that the device has, memory and compile time."""
    store = ("--store", str(sandbox.store_path))
    words = ("toy", "--models", "mlp", "--device", "cpu", "--mode", "inference,training", "--threads", "1")
    done = sandbox.run("run", *words, *store, "--cold-compile", "all")
    assert done.returncode == 0, done.stderr
    compiled = [row for row in sandbox.rows() if row.case.configuration.compiled]
    assert len(compiled) == 2
    for row in compiled:
        found = {each.metric: each for each in row.measurements}
        for metric in (
            "latency",
            "throughput",
            "speedup",
            "compile_cold",
            "compile_warm",
            "peak_memory",
            "flops",
        ):
            assert found[metric].samples, (row.case_id, metric, found[metric].absent)
        assert found["compile_warm"].samples < found["compile_cold"].samples
        assert found["peak_memory"].samples[0] < 4 << 20  # the model's, whose weights are 0.13 MB
        assert found["cache_hits"].samples[0] >= 1
        assert not row.teardown
    assert sandbox.scratch() == []
