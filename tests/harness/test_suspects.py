"""A package that breaks others is named on the rows that fail of it, with what to type."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from torchgauge.devices.fake import FakeSession
from torchgauge.harness.interpreter.packages import suspects
from torchgauge.harness.suspects import Remedies, Suspect, blamed
from torchgauge.harness.worker.verdicts import outcome_of
from torchgauge.records import Cause, Phase, Status

SYMBOL = "undefined symbol: _ZN2at4_ops10select_int4callERKNS_6TensorEll"
NOISE = f"""
raise OSError("/env/torchaudio/lib/libtorchaudio.so: {SYMBOL}")
"""


@pytest.fixture
def torchaudio(tmp_path: Path) -> Path:
    """A folder with a torchaudio that was built for another torch and raises as the real one does."""
    folder = tmp_path / "conflicts"
    info = folder / "torchaudio-2.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torchaudio\nVersion: 2.1.0\n")
    (folder / "torchaudio").mkdir()
    (folder / "torchaudio" / "__init__.py").write_text("from torchaudio import _extension\n")
    (folder / "torchaudio" / "_extension.py").write_text(NOISE)
    return folder


def raised(folder: Path, source: str) -> BaseException:
    """What importing a library with ``source`` raises while ``folder`` is on the path."""
    (folder / "some_library.py").write_text(source)
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        with pytest.raises(Exception) as caught:  # noqa: PT011  whatever it is
            importlib.import_module("some_library")
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in {"torchaudio", "some_library"}:
                del sys.modules[name]
    return caught.value


KNOWN = suspects({"torch": "2.13.0+cpu", "torchaudio": "2.1.0", "setuptools": "84.0", "opacus": "1.5.4"})
LAZY = """
try:
    import torchaudio
except OSError as error:
    raise RuntimeError("Failed to import some_library.audio (look up to see its traceback)") from error
"""


@pytest.mark.parametrize(
    ("source", "guilty"),
    [
        ("import torchaudio", "torchaudio"),
        (LAZY, "torchaudio"),
        ("import pkg_resources_is_not_it", None),
        (
            "raise ModuleNotFoundError(\"No module named 'pkg_resources'\", name='pkg_resources')",
            "setuptools",
        ),
        ("raise OSError('another library does not load')", None),
        ("raise ValueError('torchaudio is fine')", None),
    ],
)
def test_what_was_being_imported_is_to_blame(torchaudio: Path, source: str, guilty: str | None) -> None:
    """The traceback shows it, also behind a wrapper's words; a name in a message alone does not."""
    found = blamed(raised(torchaudio, source), KNOWN)
    assert (found.package if found else None) == guilty


def test_a_version_that_is_known_as_good_is_no_suspect() -> None:
    """Unless nothing needs the package at all: then it is to blame for whatever its import raises."""
    there = {"torch": "2.13.0", "opacus": "1.5.3", "setuptools": "80.0", "torchao": "0.10.0"}
    assert [each.package for each in suspects(there)] == ["torchao"]


def test_only_what_imports_for_the_first_time_can_fail_of_it(torchaudio: Path) -> None:
    """In later phases an exception is the model's; the reason always ends with what to type."""
    error = raised(torchaudio, "import torchaudio")
    for phase, status in ((Phase.BUILD, Status.SKIPPED), (Phase.MEASURE, Status.ERROR)):
        assert outcome_of(error, "case", phase, FakeSession(), Remedies("", KNOWN)).status is status
    endless = Suspect("torchaudio", "1", "torchaudio", "uninstall -y torchaudio", "why " * 500, unneeded=True)
    outcome = outcome_of(error, "case", Phase.IMPORT, FakeSession(), Remedies("", (endless,)))
    assert outcome.cause is Cause.CONFLICTING_PACKAGE
    assert len(outcome.reason) == 500
    assert outcome.reason.endswith("; try: pip uninstall -y torchaudio")


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs transformers")
def test_a_model_of_transformers_fails_of_a_torchaudio_that_does_not_fit(sandbox, torchaudio: Path) -> None:
    """BERT needs no sound, and its row says which package breaks it, why and what to type; timm runs."""
    path = os.pathsep.join([sandbox.environment["PYTHONPATH"], str(torchaudio)])
    done = sandbox.measure(
        "huggingface", "timm", "--models", "BertForMaskedLM,resnet18", "--device", "cpu", "--config", "eager",
        "--no-accuracy", PYTHONPATH=path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = {row.case.workload.model: row for row in sandbox.rows()}
    assert rows["resnet18"].status is Status.PASS
    bert = rows["BertForMaskedLM"]
    assert (bert.status, bert.cause) == (Status.SKIPPED, Cause.CONFLICTING_PACKAGE)
    assert "torchaudio 2.1.0 is built for torch 2.1" in bert.reason
    assert bert.reason.endswith("; try: pip uninstall -y torchaudio")
    assert bert.failure is not None
    assert SYMBOL in bert.failure.message
