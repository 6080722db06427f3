"""A Job of Kubernetes whose pods each measure one part of a plan; it is data, and nothing is started.

Fields: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/
"""

from __future__ import annotations

import hashlib
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.harness.executors.part_jobs import longest_s
from torchgauge.records import Group, Plan

MOST_SCRIPT = 100_000
"""Bytes of the script; Linux takes 128 KiB in one argument."""
USAGE = 2
"""Exit code of a command that is wrong whoever runs it: it is not tried again."""
QUEUE_S = 86_400
"""Seconds that pods may wait for their places: the Job's own clock runs meanwhile."""
LABEL = 63
"""Characters of a DNS label (RFC 1123)."""
USER = 1000
SCRATCH = "/tmp"  # noqa: S108  of the container, where nobody else is
SHARED_MEMORY = "/dev/shm"  # noqa: S108  where torch expects it
VOLUME = "/torchgauge"
SCRIPT = """case "$JOB_COMPLETION_INDEX" in
{choices}
*) exit 2;;
esac
into={folder}/part-{device}-"$JOB_COMPLETION_INDEX"
# whatever its rows say, a part whose journal is complete is done, and a pod that is started again finds it so
complete() {{ tail -n 1 "$into/journal.jsonl" 2>/dev/null | grep -q '"state":"complete"'; }}
if complete; then exit 0; fi
torchgauge worker {plan} "$@" --into "$into" --node "$NODE_NAME"
code=$?
if complete; then exit 0; fi
exit "$code"
"""


@dataclass(frozen=True)
class KubernetesOptions:
    """What a person says of the cluster.

    ``claim`` is a volume claim that every pod can write, in which ``plan_path`` is the plan's file;
    ``resources`` are what a pod needs, such as ``{"nvidia.com/gpu": "1"}``. A part has at most
    ``groups_per_job`` groups; ``parallel`` pods run at once; a part may cost ``attempts`` pods.
    """

    image: str
    claim: str
    plan_path: str = "plan.json"
    resources: Mapping[str, str] = field(default_factory=dict)
    groups_per_job: int = 10
    parallel: int = 1
    attempts: int = 2


def kubernetes_job(plan: Plan, device: str, options: KubernetesOptions) -> dict[str, Any]:
    """The indexed Job of the groups of ``plan`` on ``device``, one index for each part.

    Raises :class:`UsageError` where the plan has none, or more than a Job can name.
    """
    groups = [group for group in plan.groups if str(group.device) == device]
    if not groups:
        raise UsageError(f"the plan has no group on {device!r}", hint="torchgauge plan --device names them")
    size = max(1, options.groups_per_job)
    parts = [groups[first : first + size] for first in range(0, len(groups), size)]
    longest = math.ceil(max(longest_s(plan, part) for part in parts))
    rounds = math.ceil(len(parts) / max(1, options.parallel)) * max(1, options.attempts)
    name = _name(plan.run_id, device, len(parts))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "torchgauge"}},
        "spec": {
            "completionMode": "Indexed",
            "completions": len(parts),
            "parallelism": min(max(1, options.parallel), len(parts)),
            "backoffLimitPerIndex": max(1, options.attempts) - 1,
            "maxFailedIndexes": len(parts),
            "activeDeadlineSeconds": longest * rounds + QUEUE_S,
            "podFailurePolicy": {
                "rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [USAGE]}},
                ]
            },
            "template": {"spec": _pod(plan_script(device, parts, options), longest, options)},
        },
    }


def _name(run_id: str, device: str, parts: int) -> str:
    """A name that no other Job has; with the number of a pod behind it, it is still that pod's host name."""
    whole = re.sub("[^a-z0-9-]", "-", f"torchgauge-{run_id}-{device}".lower()).rstrip("-")
    most = LABEL - len(f"-{parts - 1}")
    if len(whole) <= most:
        return whole
    told = hashlib.sha256(f"{run_id} {device}".encode()).hexdigest()[:8]
    return f"{whole[: most - len(told) - 1].rstrip('-')}-{told}"


def plan_script(device: str, parts: Sequence[Sequence[Group]], options: KubernetesOptions) -> str:
    """What a pod runs: the groups of its index, into a folder of the claim that has its number."""
    choices = "\n".join(
        f"{number}) set -- {' '.join(group.id for group in part)};;" for number, part in enumerate(parts)
    )
    script = SCRIPT.format(
        choices=choices,
        folder=f"{VOLUME}/parts",
        device=device,
        plan=shlex.quote(f"{VOLUME}/{options.plan_path}"),
    )
    if len(script) > MOST_SCRIPT:
        raise UsageError(
            f"{counted(sum(map(len, parts)), 'group')} on {device!r} are more than one Job can name",
            hint="torchgauge plan --shard 1/4 and so on make plans of parts",
        )
    return script


def _pod(script: str, longest: int, options: KubernetesOptions) -> dict[str, Any]:
    """A pod that holds no token, is nobody special, and has one place to write beside the claim."""
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": longest,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "worker",
                "image": options.image,
                "command": ["/bin/sh", "-c", script],
                "env": [
                    {"name": "HOME", "value": SCRATCH},
                    {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                ],
                "resources": {"limits": dict(options.resources)},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                },
                "volumeMounts": [
                    {"name": "parts", "mountPath": VOLUME},
                    {"name": "scratch", "mountPath": SCRATCH},
                    {"name": "shared-memory", "mountPath": SHARED_MEMORY},
                ],
            }
        ],
        "volumes": [
            {"name": "parts", "persistentVolumeClaim": {"claimName": options.claim}},
            {"name": "scratch", "emptyDir": {}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        ],
    }
