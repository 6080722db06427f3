"""What `import torch` loads by itself: real packages with an entry point, imported by fresh processes."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from torchgauge.records import Status
from torchgauge.suites.check import CheckOutcome
from torchgauge.suites.conformance import check_context
from torchgauge.suites.conformance.check_context import CheckContext
from torchgauge.suites.features import device_autoload

Install = Callable[[str], None]
pytestmark = pytest.mark.torch


class Host(CheckContext):
    """The host under test, asked without importing torch here."""

    type = "cpu"
    in_tree = True


class Simulated(CheckContext):
    """The simulated device, which its own package brings."""

    type = "npusim"
    in_tree = False


class Nowhere(CheckContext):
    """A device that no package brings."""

    type = "xyz"
    in_tree = False


def asked(way: str, context: type[CheckContext] = Host) -> tuple[CheckOutcome, dict[str, object]]:
    outcome = device_autoload.CHECKS[way](context(session=None))
    return outcome, dict(outcome.facts)


@pytest.fixture(autouse=True)
def _once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One import of each way, and none that another test took."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    monkeypatch.setattr(device_autoload, "ROUNDS", 1)
    monkeypatch.setattr(device_autoload, "_TAKEN", {})


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package whose extension ``xyz`` runs a body, here and in processes that are started."""

    def make(body: str) -> None:
        (tmp_path / "xyz_extension.py").write_text(f"def autoload():\n    {body}\n", encoding="utf-8")
        information = tmp_path / "torch_xyz-1.2.3.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-xyz\nVersion: 1.2.3\n")
        (information / "entry_points.txt").write_text("[torch.backends]\nxyz = xyz_extension:autoload\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path) + os.pathsep + os.environ.get("PYTHONPATH", ""))

    return make


def test_a_quiet_extension_costs_its_seconds(install: Install) -> None:
    """It is named with its package, and the import that loads it takes as much longer as it does."""
    install("import time; time.sleep(3)")
    (on, with_it), (off, _) = asked("on"), asked("off")
    assert (on.status, off.status) == (Status.PASS, Status.PASS), (on.reason, off.reason)
    assert "xyz (torch-xyz 1.2.3)" in str(with_it["extensions"])
    assert with_it["device_visible"] == "yes"
    (slow,), (quick,) = (each.measurements[0].samples for each in (on, off))
    assert slow > 3
    assert on.measurements[0].metric == "import_time"
    assert quick > 0


def test_an_extension_that_raises_is_named_in_its_own_words(install: Install) -> None:
    """Where it is loaded nothing can import torch; without it everything goes on, and so do other checks."""
    install("raise OSError('libxyz.so: cannot open shared object file')")
    on, _ = asked("on")
    assert on.status is Status.ERROR
    assert "Failed to load the backend extension: xyz" in on.reason
    assert "root cause is OSError: libxyz.so: cannot open shared object file" in on.reason
    assert "xyz (torch-xyz 1.2.3)" in on.reason
    assert not on.measurements
    off, facts = asked("off")
    assert (off.status, facts["device_visible"]) == (Status.PASS, "yes"), off.reason
    assert len(off.measurements[0].samples) == 1


def test_an_extension_that_ends_the_process_is_survived(install: Install) -> None:
    """A crash has no exception: how the process ended is said, and who was loaded."""
    install("import os; os._exit(7)")
    on, _ = asked("on")
    assert on.status is Status.ERROR
    assert "status 7" in on.reason
    assert "xyz (torch-xyz 1.2.3)" in on.reason


def test_an_extension_that_hangs_is_ended(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not come back is killed in time, and named."""
    monkeypatch.setattr(check_context, "CHILD_S", 2.0)
    install("import time; time.sleep(60)")
    way = device_autoload.Way("1")
    way.take(Host(session=None))
    assert "did not end within 2 s" in way.problem
    assert "xyz (torch-xyz 1.2.3)" in way.problem


def test_torch_names_a_planted_extension_that_raises() -> None:
    """The import fails in the extension's name and words, and works where none is loaded."""
    outcome, facts = asked("raising")
    assert outcome.status is Status.PASS, outcome.reason
    assert device_autoload.PLANTED in str(facts["raised"])
    assert device_autoload.ITS_WORDS in str(facts["raised"])
    assert (facts["device_visible"], facts["visible_without"]) == ("no", "yes")
    assert len(outcome.measurements[0].samples) == 1


def test_a_device_of_a_package_is_there_by_itself_and_not_without() -> None:
    """The simulated device comes with import torch alone, and not with autoload off."""
    if importlib.util.find_spec("torchgauge_npusim") is None:
        pytest.skip("torchgauge_npusim is not installed")
    (on, with_it), (off, without) = asked("on", Simulated), asked("off", Simulated)
    assert (on.status, with_it["device_visible"]) == (Status.PASS, "yes"), on.reason
    assert (off.status, without["device_visible"]) == (Status.PASS, "no"), off.reason


def test_a_device_that_nothing_brings_is_an_error() -> None:
    """Import torch alone does not show it: said with what was loaded instead."""
    outcome, facts = asked("on", Nowhere)
    assert outcome.status is Status.ERROR
    assert outcome.reason.startswith("import torch alone does not load xyz: ")
    assert facts["device_visible"] == "no"
