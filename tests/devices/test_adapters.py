"""Every adapter that ships with torchgauge keeps its promises, with or without its hardware."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchgauge import registry
from torchgauge.devices.device import DeviceDescriptor, Provision, driver_version
from torchgauge.devices.discover import GROUP, find_device
from torchgauge.devices.messages import is_lost_device
from torchgauge.devices.probe import AUTOLOAD_VARIABLE
from torchgauge.devices.verified import entries, read, verified
from torchgauge.errors import DataFileError
from torchgauge.suites.expectations import FOLDER, load_expectations

PAGES = Path(__file__).parents[2] / "docs" / "devices"
NAMES = ("cpu", "cuda", "fake", "hpu", "mps", "npu", "xpu")
ON_HARDWARE = ("cuda", "hpu", "mps", "npu", "xpu")

DESCRIPTORS = """
import json, sys
from torchgauge import registry
from torchgauge.devices.descriptor_conformance import check_device
found = {name: check_device(registry.load("torchgauge.devices", name)) for name in sys.argv[1:]}
print(json.dumps([found, "torch" in sys.modules]))
"""

OPEN = """
import json, sys
from torchgauge import registry
from torchgauge.devices.conformance import check_session
from torchgauge.errors import InfrastructureError
found = {}
for name, index in [*((name, 0) for name in sys.argv[1:]), ("cpu", 3)]:
    try:
        session = registry.resolve(registry.load("torchgauge.devices", name).session)(name, index)
        found[f"{name}.{index}"] = {"violations": check_session(session)}
    except InfrastructureError as error:
        found[f"{name}.{index}"] = {"message": error.message, "hint": error.hint}
print(json.dumps(found))
"""


@pytest.mark.parametrize("name", NAMES)
def test_adapter_has_its_data_and_its_page(name: str) -> None:
    """A device is registered under its name, has a verified entry, a page that says it, and expectations."""
    device = find_device(name, "/no/such/python")
    assert device.name == name
    assert name in entries()
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert f"\nVerified on hardware: {verified(name).text}.\n" in page
    for label in device.runner_labels:  # may be empty: some devices are in no runner's labels
        assert f"`{label}`" in page
    for variable in getattr(device, "visibility_variables", ()):  # may be empty: not all can be hidden
        assert f"`{variable}`" in page
    table = (PAGES / "README.md").read_text(encoding="utf-8")
    row = next(line for line in table.splitlines() if line.startswith(f"| [`{name}`]({name}.md) |"))
    assert row.endswith(f"| {verified(name).date} |")
    if device.torch_type is not None:
        assert load_expectations(FOLDER / f"{name}.yaml").device == name


def test_no_built_in_adapter_is_forgotten() -> None:
    """The names of this test are those of the built-in plugins, and of the data."""
    assert set(registry._builtin(GROUP)) == set(NAMES)
    assert set(entries()) == set(NAMES)


def test_descriptors_conform_without_torch(worker: Callable[..., Any]) -> None:
    """Every descriptor keeps its promises, and reading its session class imports no torch."""
    violations, torch = worker(DESCRIPTORS, *NAMES)
    assert violations == {name: [] for name in NAMES}
    assert torch is False


@pytest.mark.torch
def test_session_refuses_or_conforms(worker: Callable[..., Any]) -> None:
    """A session whose device is absent says so and what to type; one that opens keeps every promise."""
    found = worker(OPEN, *ON_HARDWARE, **{AUTOLOAD_VARIABLE: "0"})
    for name in ON_HARDWARE:
        answer = found[f"{name}.0"]
        if "violations" in answer:
            assert answer["violations"] == [], name
        else:
            assert f"device {name!r}" in answer["message"]
            assert answer["hint"]
    assert found["cpu.3"]["message"] == "'cpu' is a single device: there is no index 3"


@pytest.mark.parametrize(
    "text",
    [
        "devices: {cpu: {date: '2026-02-31x', machine: m}}",
        "devices: {cpu: {date: '2026-02-28'}}",
        "devices: {cpu: {date: never, machine: m}}",
    ],
)
def test_verified_data_that_cannot_be_true_is_refused(tmp_path: Path, text: str) -> None:
    """A day needs a machine, `never` has none, and unknown fields are mistakes."""
    path = tmp_path / "verified.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=r"verified\.yaml"):
        read(path)


def test_index_becomes_the_first_visibility_variable() -> None:
    """The others are named for people and never set."""
    device = DeviceDescriptor("x", "X", "m:S", "x", visibility_variables=("A_VISIBLE_DEVICES", "B"))
    assert device.environment((2, 5)) == {"A_VISIBLE_DEVICES": "2,5"}
    assert device.environment(()) == {}


def test_driver_version_is_the_first_that_can_be_read(tmp_path: Path) -> None:
    """A file holds the version alone, or names it among other things."""
    (tmp_path / "plain").write_text("580.12\n", encoding="utf-8")
    (tmp_path / "named").write_text("package=driver\nVersion=25.2.0\n", encoding="utf-8")
    missing, plain, named = (str(tmp_path / name) for name in ("missing", "plain", "named"))
    assert driver_version(Provision(driver_files=(missing, plain, named))) == "580.12"
    assert driver_version(Provision(driver_files=(named,))) == "25.2.0"
    assert driver_version(Provision(driver_files=(missing,))) == ""


LOST = [
    "CUDA error: uncorrectable ECC error encountered",
    "GPU 0000:81:00.0: GPU has fallen off the bus.",
    "no ROCm-capable device is detected",
    "level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)",
    "wait for compute device to finish failed, runtime result = 507010.",
    "synStatus=26 [Generic failure] Device acquire failed.",
    "npusim runtime error: device lost, it no longer answers",
]
STILL_THERE = [
    "CUDA error: device-side assert triggered",
    "runtime result = 507035: The vector core execution is abnormal.",
    "CUDA out of memory. Tried to allocate 2.00 GiB",
    "lost precision on device",
]


@pytest.mark.parametrize("text", LOST)
def test_lost_device_is_recognised_in_the_words_of_its_runtime(text: str) -> None:
    """Also where a compiler wraps the error; a ValueError with the same words is none."""
    wrapped = RuntimeError("backend compiler failed")
    wrapped.__cause__ = RuntimeError(text)
    assert is_lost_device(RuntimeError(text))
    assert is_lost_device(wrapped)
    assert not is_lost_device(ValueError(text))


@pytest.mark.parametrize("text", STILL_THERE)
def test_fault_of_a_program_is_no_lost_device(text: str) -> None:
    """What the model did itself stays an error of its case."""
    assert not is_lost_device(RuntimeError(text))
