"""The samples that a case tries: PyTorch's own, in the form that its variant asks for. Worker side."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchgauge.suites.ops import samples, variants
from torchgauge.suites.ops.altered import emptied, expanded, has_empty, large_samples
from torchgauge.suites.ops.closeness import Tolerances, difference
from torchgauge.suites.ops.host_tensors import host_tensors
from torchgauge.suites.ops.upstream import BACKWARD, EMPTY, EXPANDED, LARGE
from torchgauge.suites.suite import HOST


@dataclass(frozen=True)
class Tried:
    """A sample on the host made of PyTorch's number ``index``.

    Tensors ``on_host``, counted in the order of input, arguments and keywords, stay there on every device.
    ``form`` says how a large one was made: way and elements.
    """

    index: int
    sample: Any
    on_host: frozenset[int] = frozenset()
    form: tuple[str, int] | None = None


def tried_samples(op: Any, dtype: Any, variant: str, limit: int) -> Iterator[Tried]:
    """What ``variant`` tries of the first ``limit`` samples (0: of all); raises what upstream raises."""
    made = enumerate(samples.host_samples(op, dtype, limit, requires_grad=variant == BACKWARD))
    if variant == LARGE:
        for large in large_samples(lambda sample: variants.plain(op, sample), made):
            on_host = host_tensors(op, dtype, large.sample, large.index)
            yield Tried(large.index, large.sample, on_host, (large.way, large.elements))
        return
    for index, sample in made:
        if variant == EMPTY:
            form = sample if has_empty(sample) else emptied(sample)
        else:
            form = expanded(sample) if variant == EXPANDED else sample
        if form is not None:
            yield Tried(index, form, host_tensors(op, dtype, sample, index))


def depends_on_seed(op: Any, sample: Any) -> bool:
    """Whether the host's results for ``sample`` differ between two seeds; one that raises has none."""
    results = []
    for seeds in (contextlib.nullcontext(), samples.other_seeds()):
        copy = samples.carried(sample, HOST)
        try:
            with samples.outside_tests(), seeds:
                samples.seed(samples.SEED)
                results.append(variants.plain(op, copy))
        except Exception:  # noqa: BLE001  what raises is no sign of randomness
            return False
    return bool(difference(results[0], results[1], Tolerances()))
