"""The agents of one run: one for each device of each node, hired, watched and given up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from torchgauge.harness.executors.ray import parity
from torchgauge.harness.executors.ray.agent import Agent, Known, Post, Told
from torchgauge.harness.executors.ray.cluster_facts import named
from torchgauge.harness.executors.ray.head import Head
from torchgauge.harness.executors.ray.order import DeviceOrder, Order

SURVEY_S = 2.0
"""Seconds between looks at which nodes there are."""
POLL_S = 1.0
"""Seconds that an agent waits for news before it says that there are none."""
LIVES = 3
"""Agents that a place may cost before none is hired there again."""
LEAVE_S = 3.0
"""Seconds that agents may take to end."""
ORPHAN = 3.0
"""An agent that nobody asks for so many times ``lost_s`` ends."""


@dataclass(frozen=True)
class Place:
    """Where an agent may stand: the device ``number`` of a kind on a node."""

    node_id: str
    node: str
    device: str
    number: int


@dataclass(eq=False)
class Hired:
    """An agent; ``ref`` is what it is to answer next, ``heard`` when it last did.

    ``jobs`` are those that it has, ``forget`` those that it need not keep, ``told`` how many of these it
    knows.
    """

    place: Place
    handle: Any
    ref: Any
    heard: float
    ready: bool = False
    jobs: list[str] = field(default_factory=list)
    forget: list[str] = field(default_factory=list)
    told: int = 0


@dataclass
class Agents:
    """All agents of the run. ``refused`` are places where none may measure, with the reason."""

    order: Order
    head: Head
    plan: dict[str, Any]
    hired: dict[Place, Hired] = field(default_factory=dict)
    hiring: dict[Place, Future[Any]] = field(default_factory=dict)
    refused: dict[Place, str] = field(default_factory=dict)
    cost: dict[Place, int] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    seen: dict[str, float] = field(default_factory=dict)
    gone: list[tuple[Hired, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    nodes: Future[Any] | None = None
    surveyed: float = 0.0
    began: float = field(default_factory=time.monotonic)

    def devices(self) -> list[str]:
        """The devices of the run."""
        return [each.name for each in self.order.devices]

    @property
    def ready(self) -> list[Hired]:
        """Agents that measure or could."""
        return [agent for agent in self.hired.values() if agent.ready]

    def survey(self, wanted: set[str]) -> None:
        """Hire agents where there are devices that are ``wanted`` and none has one."""
        now = time.monotonic()
        if self.nodes is None and now - self.surveyed > SURVEY_S:
            self.nodes, self.surveyed = self.head.ask(ray.nodes), now
        if self.nodes is not None and self.nodes.done():
            with suppress(
                ray.exceptions.RayError, RuntimeError, OSError
            ):  # asked again; what was there stays
                self.places = self._places(self.nodes.result())
                self.seen |= dict.fromkeys({place.device for place in self.places}, now)
            self.nodes = None
        for place in self.places:
            if place.device in wanted and place not in {*self.hired, *self.hiring, *self.refused}:
                self.hiring[place] = self.head.ask(partial(self._hire, place))
        for place, future in list(self.hiring.items()):
            if future.done():
                self.hiring.pop(place)
                try:
                    self.hired[place] = future.result()
                except (ray.exceptions.RayError, ValueError, RuntimeError) as error:
                    self.refuse(place, f"it could not be started: {error}")

    def _places(self, nodes: list[dict[str, Any]]) -> list[Place]:
        alive = [
            {
                "id": each["NodeID"],
                "host": each["NodeManagerHostname"],
                "name": each["NodeName"],
                "resources": each["Resources"],
            }
            for each in nodes
            if each["Alive"]
        ]
        return [
            Place(node["id"], node["name"], device.name, number)
            for node in named(alive)
            for device in self.order.devices
            for number in range(_count(node["resources"], device))
        ]

    def _hire(self, place: Place) -> Hired:
        (device,) = (each for each in self.order.devices if each.name == place.device)
        variables = dict(self.order.variables)
        if device.visibility and device.most != 1:
            variables[device.visibility] = str(place.number)
        post = Post(
            self.order.run_id,
            place.device,
            device.resource,
            place.node,
            variables,
            device.passed_on,
            ORPHAN * self.order.lost_s,
            self.order.worker_python,
        )
        unit: dict[str, Any] = (
            {"num_gpus": 1} if device.resource == "GPU" else {"resources": {device.resource: 1}}
        )
        lives = self.cost.get(place, 0)
        handle = (
            ray.remote(Agent)
            .options(
                num_cpus=0,
                max_concurrency=8,
                max_restarts=0,
                name=f"{self.order.run_id}/{place.device}/{place.number}/{place.node_id}/{lives}",
                scheduling_strategy=NodeAffinitySchedulingStrategy(place.node_id, soft=False),
                **unit,
            )
            .remote(post)
        )
        return Hired(place, handle, handle.register.remote(self.plan), time.monotonic())

    def tell(self, agent: Hired, what: str, *arguments: Any) -> None:
        """Call a method of ``agent``, whatever becomes of it: its next answer says."""
        getattr(agent.handle, what).remote(*arguments)

    def has_room(self, agent: Hired, depth: int) -> bool:
        """Whether its node may measure one job more, or (``depth`` 1) have one wait."""
        others = [
            each for each in self.ready if each.place.node_id == agent.place.node_id and each is not agent
        ]
        if depth:
            return len(others) < self.order.per_node
        return sum(bool(each.jobs) for each in others) < self.order.per_node

    def ask(self, agent: Hired, known: Mapping[str, Known]) -> None:
        """Ask ``agent`` for news of its jobs, unless it is asked already."""
        if agent.ref is None:
            agent.told = len(agent.forget)
            agent.ref = agent.handle.poll.remote(dict(known), list(agent.forget), POLL_S)

    def answers(self, wait_s: float) -> Iterator[tuple[Hired, dict[str, Told]]]:
        """What agents that were asked say within ``wait_s`` seconds."""
        by_ref = {agent.ref: agent for agent in self.hired.values() if agent.ref is not None}
        if not by_ref:
            time.sleep(wait_s)
            return
        ray.wait(list(by_ref), num_returns=1, timeout=wait_s)
        answered, _ = ray.wait(list(by_ref), num_returns=len(by_ref), timeout=0)
        for ref in answered:
            agent, by_ref[ref].ref = by_ref[ref], None
            try:
                said = ray.get(ref, timeout=self.order.answer_s)
            except ray.exceptions.ActorUnavailableError:  # it may come back, until it is silent for too long
                continue
            except ray.exceptions.RayError as error:
                words = " ".join(str(error).split())[:300] or type(error).__name__
                self._give_up(agent, f"its agent died: {words}")
                continue
            agent.heard = time.monotonic()
            if agent.ready:
                del agent.forget[: agent.told]
                yield agent, said
            else:
                self._registered(agent, said)

    def _registered(self, agent: Hired, facts: dict[str, str]) -> None:
        if differing := parity.differences(facts, self.order.facts):
            self.strike(agent)
            self.refuse(agent.place, "; ".join(differing))
        else:
            agent.ready = True

    def refuse(self, place: Place, why: str) -> None:
        """Have no agent at ``place`` in this run."""
        self.refused[place] = why
        self.notes.append(f"the agent of {place.device} on node {place.node} is refused: {why}")

    def _give_up(self, agent: Hired, words: str) -> None:
        self.strike(agent)
        if not agent.ready or self.cost[agent.place] >= LIVES:
            self.refuse(agent.place, words)
        self.gone.append((agent, words))

    def strike(self, agent: Hired) -> None:
        """End ``agent``; nothing that it still says is heard."""
        self.hired.pop(agent.place, None)
        self.cost[agent.place] = self.cost.get(agent.place, 0) + 1
        self.head.ask(lambda: ray.kill(agent.handle, no_restart=True))

    def lost(self) -> list[tuple[Hired, str]]:
        """Agents that are no more, or have said nothing for too long, each once."""
        now = time.monotonic()
        for agent in self.ready:
            if now - agent.heard > self.order.lost_s:
                self._give_up(agent, f"its agent has not answered for {self.order.lost_s:g} s")
        found, self.gone = self.gone, []
        return found

    def outlook(self, device: str) -> tuple[bool, str]:
        """Whether no agent of ``device`` will come, and what is waited for."""
        if any(agent.place.device == device for agent in self.ready):
            return False, "all agents are busy"
        if self.head.silent:
            return True, f"the head of the cluster has not answered for {self.order.answer_s:g} s"
        refused = [f"{place.node}: {why}" for place, why in self.refused.items() if place.device == device]
        coming = [place for place in self.places if place.device == device and place not in self.refused]
        if coming:
            return False, f"no agent of {device} is there yet: {', '.join(sorted({p.node for p in coming}))}"
        if time.monotonic() - self.seen.get(device, self.began) < self.order.lost_s and not refused:
            return False, f"a node with {device} is looked for"
        return True, f"no agent may measure {device}: {'; '.join(refused) or 'no node has it any more'}"

    def dismiss(self) -> None:
        """Let all agents end."""
        leaving = [agent.handle.leave.remote() for agent in self.hired.values()]
        if leaving:
            ray.wait(leaving, num_returns=len(leaving), timeout=LEAVE_S)


def _count(resources: Mapping[str, float], device: DeviceOrder) -> int:
    count = int(resources.get(device.resource, 0))
    return min(count, device.most) if device.most else count
