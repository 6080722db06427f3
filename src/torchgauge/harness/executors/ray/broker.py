"""Run as a program: the half of the driver that speaks to Ray, a process that may hang, or be ended by it.

Commands are lines of JSON on standard input: ``{"start": [{"name", "device", "groups"}]}``,
``{"stop": [names]}`` and ``{"drop": [names]}``; its end ends everything. Answers are lines of JSON on the
descriptor ANSWER: ``jobs`` (state by name: stage, words, again, told) and ``notes``, at least every second.
``broker ORDER ANSWER``, where ORDER is a file of JSON (:class:`Order`).
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray

from torchgauge.harness.executors.part_jobs import JobState, Stage
from torchgauge.harness.executors.ray.agent import Known, Told
from torchgauge.harness.executors.ray.agents import Agents, Hired
from torchgauge.harness.executors.ray.cluster_facts import NAMESPACE
from torchgauge.harness.executors.ray.head import Head
from torchgauge.harness.executors.ray.order import Order
from torchgauge.harness.executors.ray.spool import Fetched
from torchgauge.records import from_plain

CYCLE_S = 0.05
"""Seconds that one look at all agents may take."""
SAY_S = 1.0
"""Seconds after which the driver hears something, even if nothing has changed."""
LOCK = "broker.lock"


@dataclass
class Job:
    """A job that was given to the broker; ``agent`` has it, or nobody yet."""

    name: str
    device: str
    groups: Sequence[str]
    fetched: Fetched
    known: Known = field(default_factory=Known)
    agent: Hired | None = None
    state: JobState = field(default_factory=lambda: JobState(Stage.WAITING, "no agent is free"))


@dataclass
class Broker:
    """All jobs, and the agents that have them."""

    order: Order
    agents: Agents
    answer: int
    jobs: dict[str, Job] = field(default_factory=dict)
    said: dict[str, list[Any]] = field(default_factory=dict)
    spoke: float = 0.0
    lines: bytes = b""

    def run(self) -> None:
        """Serve until the driver is gone."""
        while self.hear():
            self.agents.survey(
                {job.device for job in self.jobs.values() if job.state.stage is not Stage.ENDED}
            )
            self.assign()
            for agent in self.agents.ready:
                self.agents.ask(agent, {name: self.jobs[name].known for name in agent.jobs})
            for agent, answer in self.agents.answers(CYCLE_S):
                self.take(agent, answer)
            for agent, words in self.agents.lost():
                self.leave(agent, words)
            self.judge_waiting()
            self.speak()

    def hear(self) -> bool:
        """Do what the driver says; false where it is gone."""
        while select.select([0], [], [], 0)[0]:
            data = os.read(0, 1 << 16)
            if not data:
                return False
            *lines, self.lines = (self.lines + data).split(b"\n")
            for line in lines:
                self.obey(json.loads(line))
        return True

    def obey(self, command: dict[str, Any]) -> None:
        """Start, stop or drop jobs."""
        for each in command.get("start", ()):
            fetched = Fetched(Path(self.order.folder) / each["name"])
            self.jobs[each["name"]] = Job(each["name"], each["device"], each["groups"], fetched)
        for name in command.get("stop", ()):
            job = self.jobs.get(name)
            if job is not None and job.agent is not None:
                self.agents.tell(job.agent, "stop", [name])
            elif job is not None:
                self.end(job, "it was cancelled")
        for name in command.get("drop", ()):
            job = self.jobs.pop(name, None)
            if job is not None and job.agent is not None:
                self.agents.strike(job.agent)
                self.leave(job.agent, "it did not stop")

    def assign(self) -> None:
        """Give jobs to agents; one more than runs where enough are left, so that none waits for us."""
        for device in self.agents.devices():
            waiting = [job for job in self.jobs.values() if _waits(job) and job.device == device]
            agents = [each for each in self.agents.ready if each.place.device == device]
            for depth in (0, 1):
                for agent in agents:
                    if not waiting or (depth and len(waiting) <= len(agents)):
                        break
                    if len(agent.jobs) == depth and self.agents.has_room(agent, depth):
                        self.give(waiting.pop(0), agent)

    def give(self, job: Job, agent: Hired) -> None:
        """Let ``agent`` measure ``job``."""
        plan = job.fetched.folder.with_suffix(".json").read_bytes()
        job.agent, job.known = agent, Known()
        job.state = JobState(Stage.WAITING, f"queued on node {agent.place.node}")
        agent.jobs.append(job.name)
        self.agents.tell(agent, "take", job.name, plan, job.groups)

    def take(self, agent: Hired, answer: dict[str, Told]) -> None:
        """Write what ``agent`` has told, files first."""
        for name, told in answer.items():
            job = self.jobs.get(name)
            if job is None or job.agent is not agent:
                continue  # it was given up: what it still says is nobody's
            try:
                job.fetched.take(told.pieces)
            except (OSError, ValueError) as error:
                self.agents.strike(agent)
                self.leave(agent, f"what its agent told cannot be kept: {error}")
                return
            job.known = Known(told.began, dict(job.fetched.had))
            if told.code is not None and told.whole:
                agent.jobs.remove(name)
                agent.forget.append(name)
                how = told.words or f"torchgauge worker ended with exit status {told.code}"
                self.end(job, f"{how} on node {agent.place.node}")
            elif told.began:
                job.state = JobState(Stage.RUNNING, f"on node {agent.place.node}")

    def leave(self, agent: Hired, words: str) -> None:
        """Jobs of an agent that is no more: what it had begun has ended, the rest waits for another."""
        for job in list(self.jobs.values()):
            if job.agent is agent and job.state.stage is not Stage.ENDED:
                if job.known.began:
                    self.end(job, f"{words} (node {agent.place.node})")
                else:
                    job.agent, job.state = None, JobState(Stage.WAITING, words)
        agent.jobs.clear()

    def end(self, job: Job, words: str, *, again: bool = True) -> None:
        """Nothing more comes of ``job``."""
        job.agent, job.state = None, JobState(Stage.ENDED, words, again=again, told=True)

    def judge_waiting(self) -> None:
        """End jobs that no agent will take, and say what the others wait for."""
        for job in self.jobs.values():
            if _waits(job):
                hopeless, words = self.agents.outlook(job.device)
                if hopeless:
                    self.end(job, words, again=False)
                else:
                    job.state = JobState(Stage.WAITING, words)

    def speak(self) -> None:
        """Tell the driver what has changed."""
        now = {
            name: [job.state.stage.value, job.state.words, job.state.again, job.state.told]
            for name, job in self.jobs.items()
        }
        changed = {name: state for name, state in now.items() if self.said.get(name) != state}
        notes, self.agents.notes = self.agents.notes, []
        if not (changed or notes or time.monotonic() - self.spoke > SAY_S):
            return
        self.said, self.spoke = now, time.monotonic()
        line = json.dumps({"jobs": changed, "notes": notes}).encode() + b"\n"
        while line:
            line = line[os.write(self.answer, line) :]
        for name in [name for name, job in self.jobs.items() if job.state.stage is Stage.ENDED]:
            self.jobs.pop(name)


def _waits(job: Job) -> bool:
    return job.agent is None and job.state.stage is Stage.WAITING


def main(order_file: str, answer: int) -> None:
    """Join the cluster and serve."""
    order = from_plain(Order, json.loads(Path(order_file).read_bytes()))
    lock = os.open(Path(order.folder) / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    ray.init(address=order.address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
    agents = Agents(order, Head(order.answer_s), json.loads(Path(order.plan_file).read_bytes()))
    Broker(order, agents, answer).run()
    agents.dismiss()
    os._exit(0)  # Ray may wait for a head that is gone


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
