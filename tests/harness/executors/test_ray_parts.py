"""Parts of executor ray that need no cluster: an agent that cannot take a job, a broker that hangs."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.harness.executors.ray import agent as agents
from torchgauge.harness.executors.ray.agent import Agent, Known, Post
from torchgauge.harness.executors.ray.broker_link import BrokerLink
from torchgauge.processes.kept_process import KeptProcess

POST = Post("run-1", "fake", "fake", "one", {}, (), orphan_s=math.inf)
"""An agent ends its process ``orphan_s`` seconds after the last call, and here that is pytest's."""


def test_an_agent_that_cannot_take_a_job_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at what the call raises: a full disk of a node had held its jobs up for a day."""

    def full(_: str) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(agents, "new_scratch", full)
    agent = Agent(POST)
    agent.take("part-1", b"{}", ["group"])
    told = agent.poll({"part-1": Known()}, [], 5.0)["part-1"]
    assert (told.code, told.whole, told.began) == (1, True, False)
    assert told.words == "it could not be started: [Errno 28] No space left on device"
    assert agent.poll({}, ["part-1"], 0.0) == {}


def test_a_broker_that_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    """What is said to it fills a pipe; whoever says it goes on, and finds out that it is silent."""
    deaf = [sys.executable, "-c", "import time; time.sleep(600)"]
    process = KeptProcess(deaf, {}, stdin=subprocess.PIPE)
    link = BrokerLink(process, SYSTEM_CLOCK, tmp_path / "log", SYSTEM_CLOCK.steady())
    link.begin_to_say()
    link.tell(start=["x" * 1_000_000] * 3)
    assert process.poll() is None, "it was not held up until the broker had ended"
    assert "is silent" in link.trouble(-1.0)
    link.close(0.1)
    assert process.poll() is not None
