"""The nodes of a Ray cluster, the agents of all runs on them, and where an agent of ours would be refused."""

from __future__ import annotations

from typing import Any

from torchgauge.harness.executors.fleet import FleetDevice

BUILT_IN = ("node:", "memory", "object_store_memory", "accelerator_type:")
"""How resources begin that every node of a cluster has, and nobody asks for."""


def custom(resources: dict[str, float]) -> dict[str, float]:
    """Those of ``resources`` that somebody gave a node."""
    return {name: count for name, count in resources.items() if not name.startswith(BUILT_IN)}


def ray_fleet(facts: dict[str, Any]) -> list[FleetDevice]:
    """Devices by what ``cluster_facts ... agents`` says."""
    found = []
    for node in facts["nodes"]:
        free = facts["free"].get(node["id"], {})
        for name, count in custom(node["resources"]).items():
            runs = [
                _run(each)
                for each in facts["agents"]
                if (each["node"], each["resource"]) == (node["name"], name)
            ]
            refused = facts["differ"].get(node["id"], "")
            found.append(
                FleetDevice(
                    node["name"], name, int(count), int(free.get(name, 0)), "", tuple(sorted(runs)), refused
                )
            )
    return found


def _run(agent: dict[str, Any]) -> str:
    doing = f"measures {agent['running']}" if agent["running"] else "waits"
    return f"run {agent['run_id']}: {doing}"
