"""A Job that Kubernetes takes, and whose pods measure every case of the plan once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from torchgauge.harness.fleet.kubernetes_job import QUEUE_S, _name
from torchgauge.records import Status

MODELS = ("slow_1", "slow_2", "slow_3")
WORDS = ("--image", "example/torchgauge:1", "--claim", "results")


@pytest.fixture(scope="module")
def plan(make_sandbox: Any) -> Path:
    """A plan of three groups for each of two devices."""
    sandbox = make_sandbox()
    file: Path = sandbox.store_path.parent / "plan.json"
    groups = ("--models", ",".join(MODELS), "--device", "fake,cpu", "--config", "eager")
    done = sandbox.run("plan", "slow", *groups, *sandbox.quick, "--json")
    assert done.returncode == 0, done.stderr
    file.write_text(done.stdout)
    return file


def job_of(sandbox: Any, plan: Path, *words: str) -> dict[str, Any]:
    """The Job that is printed."""
    done = sandbox.run("fleet", "kubernetes", str(plan), *WORDS, *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.safe_load(done.stdout)
    return found


def test_it_fits_kubernetes_own_schema(sandbox: Any, plan: Path) -> None:
    """With nothing that the schema does not know: Kubernetes would drop it in silence."""
    words = (
        "--device",
        "fake",
        "--resource",
        "nvidia.com/gpu=1",
        "--resource",
        "memory=8Gi",
        "--parallel",
        "9",
    )
    job = job_of(sandbox, plan, *words, "--groups-per-job", "2")
    kubernetes_validate.validate(job, "1.31", strict=True)  # podFailurePolicy is stable since
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    spec = job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimitPerIndex"]) == (2, 2, 1)
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1", "memory": "8Gi"}
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["restartPolicy"] == "Never"


def test_a_pod_may_take_as_long_as_its_cases_and_the_job_as_its_pods(sandbox: Any, plan: Path) -> None:
    """Two parts after each other, each twice; the longer one counts."""
    job = job_of(sandbox, plan, "--device", "fake", "--groups-per-job", "2")["spec"]
    one = job_of(sandbox, plan, "--device", "fake", "--groups-per-job", "1")["spec"]
    of_two = job["template"]["spec"]["activeDeadlineSeconds"]
    assert job["activeDeadlineSeconds"] == 4 * of_two + QUEUE_S
    assert 0 < one["template"]["spec"]["activeDeadlineSeconds"] < of_two


def test_names_are_labels_with_their_pods_behind_them_and_no_two_alike() -> None:
    """A pod's host name is the Job's with its number, of at most 63 characters (RFC 1123)."""
    campaign = "20261122t031500z-cloud-npu-pool-of-the-large-machine-in-the-cellar-0001"
    names = [_name(run, device, 12) for run in ("run_1", campaign) for device in ("npu", "npu.1")]
    assert len(set(names)) == 4
    assert names[0] == "torchgauge-run-1-npu"
    for name in names:
        assert re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", f"{name}-11")
        assert len(f"{name}-11") <= 63


def test_its_pods_measure_the_plan(sandbox: Any, plan: Path) -> None:
    """The script of each index, run here, leaves parts that make one whole run."""
    job = job_of(sandbox, plan, "--device", "fake", "--groups-per-job", "2")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    volume = sandbox.store_path.parent
    shutil.copyfile(plan, volume / "plan.json")
    script = container["command"][2].replace("/torchgauge/", f"{volume}/")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for index in range(job["spec"]["completions"]):
        variables = {"JOB_COMPLETION_INDEX": str(index), "NODE_NAME": f"node-{index}", "PATH": path}
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            env=sandbox.environment | variables,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    parts = sorted(str(each) for each in (volume / "parts").iterdir())
    assert [Path(each).name for each in parts] == ["part-fake-0", "part-fake-1"]
    again = subprocess.run(["/bin/sh", "-c", script], env=sandbox.environment | variables, check=False)
    assert again.returncode == 0  # a pod that is started again finds its part complete
    merged = sandbox.run("results", "merge", *parts, "--store", str(sandbox.store_path))
    found = [row for row in sandbox.rows() if row.status is Status.PASS]
    assert sorted(row.case.workload.model for row in found) == [*MODELS], merged.stderr
    assert {dict(row.facts)["node"] for row in found} == {"node-0", "node-1"}


def test_what_cannot_be_made_is_said(sandbox: Any, plan: Path) -> None:
    """Several devices in the plan, one that is not, and a resource without a count."""
    several = sandbox.run("fleet", "kubernetes", str(plan), *WORDS)
    assert several.returncode == 2
    assert "the plan has 2 devices" in several.stderr
    other = sandbox.run("fleet", "kubernetes", str(plan), *WORDS, "--device", "gold")
    assert other.returncode == 2
    assert "no group on 'gold'" in other.stderr
    wrong = sandbox.run("fleet", "kubernetes", str(plan), *WORDS, "--resource", "gpu")
    assert wrong.returncode == 2
