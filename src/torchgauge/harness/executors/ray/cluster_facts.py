"""Run as a program: what a cluster says of itself, as JSON on the last line of standard output.

A process of its own, since Ray may wait for ever, or end the process that asks: ``ADDRESS AUTHENTICATION
ANSWER_S [agents]``.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from torchgauge.harness.executors.ray import parity
from torchgauge.harness.executors.ray.access import GENERATE, MODE, TOKEN

NAMESPACE = "torchgauge"
"""Ray's namespace of all agents."""
OPEN = 0
"""Exit status of a stranger that was let in."""


def main(address: str, authentication: str, answer_s: float, *asked: str) -> None:
    """Say what is asked of the cluster, or why it cannot be told."""
    import ray  # noqa: F401  takes as long as the machine is busy, whatever the cluster does

    signal.setitimer(signal.ITIMER_REAL, 3 * answer_s)  # ends this process, whatever Ray waits for
    if authentication == "token" and _lets_strangers_in(address, answer_s):
        _say(
            {
                "refused": f"the Ray cluster at {address} has no token authentication: whoever reaches "
                "it can run anything on its nodes",
                "hint": f"{GENERATE}; or --executor-option authentication=none",
            }
        )
        return
    from ray._raylet import GcsClient  # type: ignore[attr-defined]
    from ray.exceptions import AuthenticationError, RayError

    try:
        nodes = GcsClient(address=address).get_all_node_info(timeout=answer_s)
    except AuthenticationError:
        what = "refused the token" if authentication == "token" else "wants a token"
        _say({"refused": f"the Ray cluster at {address} {what}", "hint": GENERATE})
        return
    except (RayError, RuntimeError, TimeoutError) as error:
        _say(
            {"refused": f"the Ray cluster at {address} does not answer: {' '.join(str(error).split())[:300]}"}
        )
        return
    alive = [each for each in nodes.values() if each.state == 0]
    plain = [
        {
            "id": each.node_id.hex(),
            "host": each.node_manager_hostname,
            "name": each.node_name,
            "resources": dict(each.resources_total),
        }
        for each in alive
    ]
    found: dict[str, Any] = {"nodes": named(plain)}
    if "agents" in asked:
        found |= _agents(address, answer_s, found["nodes"])
    _say(found)


def named(nodes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """``nodes`` with a ``name`` for people, which no two of them share."""
    given = [
        each["name"] if not _is_address(each["name"]) else each["host"].partition(".")[0] for each in nodes
    ]
    twice = Counter(given)
    return [
        {**each, "name": name if twice[name] == 1 else f"{name}-{each['id'][:6]}"}
        for each, name in zip(nodes, given, strict=True)
    ]


def _is_address(name: str) -> bool:
    return not name or ":" in name or name.replace(".", "").isdecimal()


def _lets_strangers_in(address: str, answer_s: float) -> bool:
    """Whether the cluster answers somebody who has another token; by a fork: Ray reads it once."""
    import ray
    from ray._raylet import GcsClient  # type: ignore[attr-defined]

    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.setitimer(signal.ITIMER_REAL, answer_s)
            os.environ.update({MODE: "token", TOKEN: secrets.token_hex(32)})
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # Ray says there that it was refused
            GcsClient(address=address).get_all_node_info(timeout=answer_s)
            code = OPEN
        except (ray.exceptions.RayError, RuntimeError, TimeoutError):
            pass
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == OPEN


def _agents(address: str, answer_s: float, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What agents there are, what is free, and which nodes differ from this machine."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
    there = ray.remote(num_cpus=0)(parity.facts)
    asked = {
        each["id"]: there.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(each["id"], soft=False), max_retries=0
        ).remote()
        for each in nodes
    }
    reports = []
    for each in ray.util.list_named_actors(all_namespaces=True):
        if each["namespace"] == NAMESPACE:
            try:
                reports.append(ray.get_actor(each["name"], NAMESPACE).report.remote())
            except ValueError:  # it has just ended
                continue
    answered, _ = ray.wait(
        [*asked.values(), *reports], num_returns=len(asked) + len(reports), timeout=answer_s
    )
    free = ray._private.state.available_resources_per_node()
    here = parity.facts()
    return {
        "agents": [found for ref in reports if ref in answered and (found := _got(ref))],
        "silent": sum(ref not in answered for ref in reports),
        "free": free,
        "differ": {
            node: "it did not answer" if ref not in answered else _differs(_got(ref), here)
            for node, ref in asked.items()
        },
    }


def _differs(there: dict[str, str] | None, here: dict[str, str]) -> str:
    if there is None:
        return "torchgauge cannot be started there"
    return "; ".join(parity.differences(there, here))


def _got(ref: Any) -> Any:
    import ray

    try:
        return ray.get(ref, timeout=1)
    except ray.exceptions.RayError:
        return None


def _say(found: dict[str, Any]) -> None:
    sys.stdout.write(f"\n{json.dumps(found)}\n")
    sys.stdout.flush()
    os._exit(0)  # Ray may wait for a head that is gone


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), *sys.argv[4:])
