"""Executor ``ray``: parts of the plan as jobs of agents on the nodes of a Ray cluster.

No folder is shared: what a job writes on its node is fetched as it grows. Ray only places agents and carries
bytes; whatever it promises beyond that is not relied on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchgauge.errors import InfrastructureError
from torchgauge.harness.executors.executor import Submission, Yield
from torchgauge.harness.executors.fleet import FleetDevice
from torchgauge.harness.executors.part_jobs import PartJobs
from torchgauge.harness.executors.ray.access import Access, cluster, require_access
from torchgauge.harness.executors.ray.ray_fleet import custom, ray_fleet
from torchgauge.harness.executors.ray.ray_jobs import RayJobs, RayOptions, resource_of


@dataclass(frozen=True)
class RayExecutor:
    """Agents on a Ray cluster."""

    name: str = "ray"
    options: type = RayOptions
    elsewhere: bool = True

    def ready(self, options: RayOptions) -> None:
        """Raise where Ray, a token or the cluster's head is missing."""
        require_access(access_of(options))

    def refuse(self, options: RayOptions, devices: Sequence[str]) -> None:
        """Raise :class:`InfrastructureError` where the cluster lets us not in, or has none of ``devices``.

        Ray itself would wait for ever for a device that no node has.
        """
        nodes = cluster(access_of(options))["nodes"]
        found: dict[str, float] = {}
        for node in nodes:
            for name, count in node["resources"].items():
                found[name] = found.get(name, 0) + count
        missing = [device for device in devices if found.get(resource_of(device, options), 0) < 1]
        if missing:
            has = [f"{count:g} {name}" for name, count in sorted(custom(found).items())]
            wanted = ", ".join(repr(resource_of(each, options)) for each in missing)
            raise InfrastructureError(
                f"no node of the Ray cluster has {wanted}: it has {', '.join(has) or 'no custom resource'}",
                hint="ray start --resources='{\"DEVICE\": 1}' says what a node has; "
                "--executor-option resource=NAME how it is called",
            )

    def fleet(self, options: RayOptions) -> list[FleetDevice]:
        """The nodes, the agents of all runs, and where one of this torchgauge would be refused."""
        return ray_fleet(cluster(access_of(options), "agents"))

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """Let agents measure the groups, and yield what they write."""
        options = submission.options or RayOptions()
        yield from PartJobs(submission, RayJobs(submission, options, access_of(options)), options).run()


def access_of(options: RayOptions) -> Access:
    """How the cluster that ``options`` name is spoken to."""
    address = options.address or os.environ.get("RAY_ADDRESS", "")
    return Access(address, options.authentication, options.answer_s)


EXECUTOR = RayExecutor()
