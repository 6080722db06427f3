"""The benchmark's generated store is a real one: the ordinary readers read it, and it is what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from site_files import generator, small_shape
from store_builder import NOW

from torchgauge.dashboard.history import MEDIAN
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.records import Case, Status
from torchgauge.results.dataset import read_table
from torchgauge.results.store import Store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small store."""
    folder = tmp_path_factory.mktemp("generated")
    generator().generate(folder, small_shape(nights=12, models=9, configurations=3, silent=2))
    return folder


def test_the_million_rows_are_a_million() -> None:
    """What the default says; not generated here."""
    assert generator().Shape().rows == 1_003_200


def test_the_command_line_lists_its_runs(made: Path) -> None:
    """As any other store's."""
    entry = "import sys; from torchgauge.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", entry, "results", "list", "--json", "--store", str(made / "store")]
    runs = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout)
    planted = json.loads((made / "planted.json").read_text())
    assert len(runs) == 12 * 2 - 2
    assert sum(run["planned"] for run in runs) == planted["rows"] == 22 * 27
    assert {run["state"] for run in runs} == {"complete"}


def test_its_tables_are_those_of_the_schema_and_its_keys_those_of_the_cases(made: Path) -> None:
    """Every table reads in full, and a key is what the package would give the case."""
    store = Store.open(made / "store")
    rows = read_table(store, "results").to_pylist()
    assert len(rows) == 22 * 27
    assert read_table(store, "environments").num_rows > 0
    assert read_table(store, "calibrations").num_rows == 44
    module = generator()
    shape = small_shape(nights=12, models=9, configurations=3, silent=2)
    cases: list[Case] = [case for index in range(2) for case in module.Device(index, shape).after]
    assert {case.key for case in cases} <= {row["case_key"] for row in rows}
    counts = Counter(row["status"] for row in rows)
    assert len(counts) >= 7
    assert 0.6 < counts[Status.PASS.value] / len(rows) < 0.9


def test_equal_seeds_give_equal_tables_and_nights_can_be_added(made: Path, tmp_path: Path) -> None:
    """A test of many nights adds them one by one."""
    shape = small_shape(nights=12, models=9, configurations=3, silent=2)
    generator().generate(tmp_path, shape, range(11))
    generator().generate(tmp_path, shape, [11])
    for path in (made / "store" / "tables").rglob("*.parquet"):
        assert path.read_bytes() == (tmp_path / "store" / path.relative_to(made / "store")).read_bytes()


def test_planted_steps_the_silent_device_and_the_renamed_model_are_there(made: Path) -> None:
    """The site shows what was planted."""
    data = read_site_data(Store.open(made / "store"), NOW)
    planted = json.loads((made / "planted.json").read_text())
    assert data.recent.planned.tolist() == [54] * 10 + [27] * 2
    for step in planted["steps"]:
        case = next(
            number
            for number, case in enumerate(data.recent.cases)
            if (case.device, case.workload.model, case.column.configuration)
            == (step["device"], step["model"], step["configuration"])
        )
        series = data.recent.values["latency"][MEDIAN, case]
        before, after = series[: step["night"]], series[step["night"] : 10]
        if np.isfinite(before).any() and np.isfinite(after).any():
            assert np.nanmedian(after) / np.nanmedian(before) == pytest.approx(step["factor"], abs=0.05)
    models = {case.workload.model for case in data.case_index}
    assert set(planted["renamed"][0].values()) & models == {
        planted["renamed"][0]["from"],
        planted["renamed"][0]["to"],
    }


def test_its_site_builds_without_pandas(made: Path, tmp_path: Path) -> None:
    """Importing pandas costs a tenth of a nightly build."""
    code = (
        "import sys; from torchgauge.dashboard import build_site; build_site(*sys.argv[1:], now=1.8e9); "
        "sys.exit('pandas is imported' if 'pandas' in sys.modules else 0)"
    )
    command = [sys.executable, "-c", code, str(made / "store"), str(tmp_path / "site")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
