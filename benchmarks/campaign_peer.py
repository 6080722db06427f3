"""The peer of ``campaign.py``: PyTorch's own ``benchmarks/dynamo`` runner, as pytorch/benchmark vendors it.

Nothing of it is kept here. :func:`prepare` copies it out of a checkout into a private folder and writes the
one file that the checkout lacks, a model list's settings with nothing in them. Run as a script, this file is
the launcher of one of its processes: ``campaign_peer.py FOLDER ARGUMENTS...`` puts right what stops it
offline, then hands over to its ``timm_models.py``. What the launcher changes:

* torchvision's two schemas are defined where its compiled operators do not load;
* ``timm.create_model`` builds random weights, where the peer asks for published ones;
* inference has images of the size that timm names for training, as torchgauge's have (the peer would take the
  larger test size of some models).
"""

from __future__ import annotations

import csv
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from child_run import run_child

Results = TypeVar("Results")

VENDORED = Path("userbenchmark", "dynamo", "dynamobench")
PACKAGES = ("torch", "timm", "numpy", "pandas", "psutil", "scipy", "tqdm", "yaml")
SETTINGS = """\
skip: {all: [], device: {cpu: [], cpu_aarch64: [], cuda: []}}
batch_size: {divisors: {}}
tolerance: {freezing: [], highest_training: [], even_higher: [], even_higher_max_autotune: [],
  higher_training: [], higher_amp: [], higher_fp16_xpu: []}
require_larger_multiplier_for_smaller_tensor: []
emulate_precision_casts: []
accuracy: {skip: {large_models: [], eager_not_deterministic: []}}
scaled_compute_loss: []
dtype: {force_amp_for_fp16_bf16_models: []}
"""
TIMEOUT_S = 2000.0
"""The peer's own limit for one model."""


def missing_packages(python: str, environment: dict[str, str]) -> tuple[str, ...]:
    """What the peer imports and the interpreter ``python`` lacks."""
    code = f"from importlib.util import find_spec; print(*[p for p in {PACKAGES!r} if not find_spec(p)])"
    return tuple(run_child([python, "-c", code], str.split, env=environment).results)


def prepare(checkout: Path, folder: Path) -> None:
    """Make ``folder`` a working copy of the peer out of ``checkout``; raises ``FileNotFoundError``."""
    source = checkout / VENDORED
    if not (source / "timm_models.py").is_file():
        raise FileNotFoundError(f"{checkout} is not a checkout of pytorch/benchmark: there is no {VENDORED}")
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(source, folder)
    if not (folder / "timm_models.yaml").exists():
        (folder / "timm_models.yaml").write_text(SETTINGS, encoding="utf-8")


@dataclass(frozen=True)
class Peer:
    """The working copy in ``folder``, and how its processes are started."""

    python: str
    folder: Path
    environment: dict[str, str]
    device: str

    @property
    def output(self) -> Path:
        """Where logs, rows and timings go."""
        return self.folder.with_name("peer-output")

    def accuracy(self, model: str, batch: int) -> tuple[float, float]:
        """Return the seconds of the accuracy run and the compile time that the peer took in it.

        Raises :class:`ChildFailure` where a run fell over or has no results, as :meth:`performance` does.
        """
        return self._run("accuracy", model, batch, lambda table: compile_seconds(read_row(table)))

    def performance(self, model: str, batch: int) -> tuple[float, dict[str, list[float]]]:
        """Return the seconds of the performance run and its raw timings by configuration."""

        def timings(table: Path) -> dict[str, list[float]]:
            check_speed(read_row(table))
            return read_timings(self.output, model)

        return self._run("performance", model, batch, timings)

    def _run(
        self, what: str, model: str, batch: int, read: Callable[[Path], Results]
    ) -> tuple[float, Results]:
        """Run ``what`` in a process of its own, as upstream does."""
        self.output.mkdir(exist_ok=True)
        table, log_file = (self.output / f"{model}-{what}.{suffix}" for suffix in ("csv", "log"))
        for old in self.output.glob(f"{model}-{what}*"):
            old.unlink()
        command = [self.python, __file__, str(self.folder), f"--{what}", "--inference", "--float32"]
        command += ["--device", self.device, "--inductor", "--only", model, "--batch-size", str(batch)]
        command += ["--output", str(table), *(["--dump-raw-metrics"] if what == "performance" else [])]
        with log_file.open("wb") as log:
            options = {"env": self.environment, "cwd": self.output, "stderr": subprocess.STDOUT}
            ended = run_child(command, lambda _: read(table), limit_s=TIMEOUT_S, log=log, **options)
        return ended.seconds, ended.results


def read_row(table: Path) -> dict[str, str]:
    """Return the last row of a table of the peer by column; raise ``ValueError`` where it has none."""
    if not table.is_file():
        raise ValueError("it wrote no row")
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise ValueError("it wrote no row")
    return {key: value for key, value in rows[-1].items() if key is not None}


def compile_seconds(row: dict[str, str]) -> float:
    """Return the compile time of an accuracy run; raise ``ValueError`` where the run did not pass."""
    if row.get("accuracy") != "pass":
        raise ValueError(f"accuracy is {row.get('accuracy')!r}")
    return float(row["compilation_latency"])


def check_speed(row: dict[str, str]) -> None:
    """Raise ``ValueError`` where a performance run has no speed-up: the peer writes zeros where it failed."""
    if not float(row.get("speedup") or 0) > 0:
        raise ValueError("performance has no speed-up")


def read_timings(output: Path, model: str) -> dict[str, list[float]]:
    """Return the peer's raw timings of ``model`` in seconds: one of each configuration per repetition.

    Raises ``ValueError`` where the peer dumped none, or something else than times.
    """
    import numpy as np

    found = sorted(output.glob(f"{model}-performance-raw_timings-*.npy"))
    if not found:
        raise ValueError(f"the peer dumped no timings of {model}")
    timings = np.load(found[-1])
    if timings.ndim != 2 or timings.shape[1] != 2 or not len(timings) or not (timings > 0).all():
        raise ValueError(f"the peer dumped no times of two configurations of {model}")
    eager, inductor = timings.T.tolist()
    return {"eager": eager, "inductor": inductor}


def launch(folder: str, arguments: list[str]) -> None:
    """Become one process of the peer."""
    from torchgauge.suites.torchvision_schemas import define_missing_schemas

    define_missing_schemas()
    import timm
    import timm.data
    import timm.models

    create, resolve = timm.models.create_model, timm.data.resolve_data_config

    def without_weights(*args, **options):
        return create(*args, **{**options, "pretrained": False})

    def training_size(*args, **options):
        return resolve(*args, **{**options, "use_test_size": False})

    timm.create_model = timm.models.create_model = without_weights
    timm.data.resolve_data_config = training_size
    script = str(Path(folder, "timm_models.py"))
    sys.path[0], sys.argv = folder, [script, *arguments]
    os.environ["HF_HUB_OFFLINE"] = "1"
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    launch(sys.argv[1], sys.argv[2:])
