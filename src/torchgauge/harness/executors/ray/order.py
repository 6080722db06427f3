"""What the broker is told at its start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceOrder:
    """How agents of a device are placed.

    Each takes one ``resource``. A node has at most ``most`` of them (0: as many as it has of the resource);
    of several, each sees one entry of the variable ``visibility``. ``passed_on`` are names of variables, or
    patterns, that its workers need.
    """

    name: str
    resource: str
    most: int
    visibility: str
    passed_on: tuple[str, ...]


@dataclass(frozen=True)
class Order:
    """A run as its broker knows it; ``folder`` is that of its parts. Times are seconds.

    ``variables`` are those of the driver that workers get, ``worker_python`` their interpreter ("" for that
    of the node), ``facts`` what must be equal on each node.
    """

    run_id: str
    address: str
    folder: str
    plan_file: str
    devices: tuple[DeviceOrder, ...]
    variables: dict[str, str]
    worker_python: str
    facts: dict[str, str]
    per_node: int
    lost_s: float
    answer_s: float
