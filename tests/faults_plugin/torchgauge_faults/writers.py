"""A suite of one language model whose loop goes wrong in the ways in which such loops do."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.suites.catalog import YamlSuite

if TYPE_CHECKING:
    from torchgauge.records import Workload
    from torchgauge.suites.suite import BuiltWorkload

SUITE = YamlSuite(
    name="writers",
    doc="Language models with a wrong loop; for tests only.",
    data=Path(__file__).parent / "writers.yaml",
    builder="torchgauge_faults.writers:build",
)


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """The tiniest Llama, with the fault of the workload's name."""
    from torchgauge.suites.llm import models

    built = models.build(workload, {"architecture": "llama", "tiny": True, "unequal": True})
    right = built.abilities["generate"]
    fault = FAULTS.get(workload.model)

    @lru_cache(maxsize=1)
    def generate(module: Any) -> Any:
        decoder = right(module)
        if fault is not None:
            fault(decoder)
        return decoder

    built.abilities["generate"] = generate
    if workload.model == "stays_eager":
        import torch

        inner = built.module.model
        inner.forward = torch.compiler.disable(inner.forward)
    return built


def one_place_off(decoder: Any) -> None:
    """Every token stands one place further than it should."""
    right = decoder.decode
    decoder.decode = lambda call, token, place: right(call, token, place + 1)


def never_forgets(decoder: Any) -> None:
    """A sequence begins after the one before; the cache has room for many."""
    from torchgauge.suites.llm.decoder import static_cache

    decoder.cache = static_cache(decoder.module.config, 1024)
    decoder.reset = lambda: None


def sees_what_is_empty(decoder: Any) -> None:
    """No mask: a step looks at places of the cache that nothing was written to."""
    import torch

    def decode(call: Any, token: Any, place: Any) -> Any:
        everything = torch.zeros(token.shape[0], 1, 1, decoder.length, device=token.device)
        output = call(
            input_ids=token,
            attention_mask=everything,
            past_key_values=decoder.cache,
            use_cache=True,
            position_ids=place,
        )
        return output.logits[:, -1]

    decoder.decode = decode


def slow(decoder: Any) -> None:
    """Right, and every further token waits for ``WRITERS_DELAY_MS`` before it is made."""
    right, delay = decoder.decode, float(os.environ.get("WRITERS_DELAY_MS", "0")) * 1e-3

    def decode(call: Any, token: Any, place: Any) -> Any:
        until = time.thread_time() + delay
        while time.thread_time() < until:
            pass
        return right(call, token, place)

    decoder.decode = decode


FAULTS = {each.__name__: each for each in (one_place_off, never_forgets, sees_what_is_empty, slow)}
