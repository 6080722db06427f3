"""Networks of ``attention.sdpa``: a call by the kind of its mask, which decides who can serve it."""

from __future__ import annotations

from torchgauge.records import Workload
from torchgauge.suites.features import attention
from torchgauge.suites.suite import BuiltWorkload

KINDS = {"none": "noop", "causal": "causal", "bool": "prefix", "float": "alibi"}
"""How a mask is told -> one that is told so: by a flag, as a dense tensor of truth values, as a bias."""


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # noqa: ARG001  sizes are the shape
    """A call with a mask of the kind that the shape of ``workload`` says."""
    return attention.build(workload, KINDS[str(dict(workload.shape)["mask"])])
