"""How long a whole night takes under `act`: plan, 2 pools of 2 shards, collect, gate, issues, publish.

The workflows are the project's own and run on this machine, without a network. Usage:

    python benchmarks/act_nightly.py [--configs eager,inductor] [--models noop,mlp]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests" / "workflows"
sys.path[:0] = [str(TESTS), str(TESTS / "act")]

from act_runner import GitHost  # noqa: E402
from github_server import TOKEN, GitHub, serving  # noqa: E402

TARGET_S = 90.0
JOBS = 11
CONFIG = """\
version: 1
campaign: {{suites: [toy], models: [{models}], configs: [{configs}], budget: 15m}}
pools:
  - {{name: cpu, device: cpu, runs-on: ubuntu-24.04, shards: 2}}
  - {{name: sim, device: npusim, runs-on: [self-hosted, tg-sim], shards: 2}}
"""


def main() -> int:
    """Run one night and print its time; 1 where a job failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configs", default="eager", help="configurations, separated by commas")
    parser.add_argument("--models", default="", help="models of the toy suite (default: all)")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, serving(GitHub()) as github:
        git_host = GitHost(Path(folder) / "git_host", "owner/project")
        git_host.add_workflows()
        git_host.commit({"torchgauge.yml": CONFIG.format(models=options.models, configs=options.configs)})
        begin = time.perf_counter()
        run = git_host.act(
            "workflow_dispatch",
            "nightly.yml",
            secrets={"GITHUB_TOKEN": TOKEN},
            environment={"GITHUB_API_URL": github.base, "OMP_NUM_THREADS": "1"},
        )
        seconds = time.perf_counter() - begin
    print(
        f"nightly, 2 pools x 2 shards, toy suite, {options.configs}: {seconds:.1f} s (target {TARGET_S:.0f})"
    )
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after, on {os.cpu_count()} cores")
    for name, result in sorted(run.jobs):
        print(f"  {result:8} {name}")
    return 0 if {result for _, result in run.jobs} == {"success"} and len(run.jobs) == JOBS else 1


if __name__ == "__main__":
    sys.exit(main())
