"""Build the language models of suite ``llm`` in the worker, where they fit into memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from torchgauge.counted import counted
from torchgauge.errors import TooLargeError
from torchgauge.processes.host_memory import available_memory
from torchgauge.records import PRETRAINED, Workload
from torchgauge.suites.huggingface.models import model_class, pretrained, settled
from torchgauge.suites.llm.architectures import ARCHITECTURES
from torchgauge.suites.suite import BuiltWorkload
from torchgauge.suites.torchvision_schemas import define_missing_schemas

COPIES = 2
"""The model and the one that the reference is made with, both in float32."""
GIB = 1 << 30


def build(workload: Workload, recipe: dict[str, Any]) -> BuiltWorkload:
    """The model that ``recipe`` describes (see ``LanguageModelRecipe``), with prompts from its seed.

    Raises ``ImportError`` without transformers, :class:`MissingPackageError` where it lacks a class, and
    :class:`TooLargeError` before anything of a model is made that does not fit. Where published weights are
    asked for: :class:`NoNetworkError` and :class:`MissingDataError`.
    """
    notes = define_missing_schemas()
    import torch

    from torchgauge.suites.dropout import silence_modules
    from torchgauge.suites.huggingface.inputs import make_inputs
    from torchgauge.suites.llm.decoder import Decoder
    from torchgauge.suites.llm.text import FIRST_ID, IDS

    sizes = workload.sizes
    length = sizes["prompt"] + sizes["output"]
    module, made = _made(workload, recipe, length)
    notes += made + silence_modules(module)
    if module.config.vocab_size < FIRST_ID + IDS:
        raise NotImplementedError(f"a vocabulary of {module.config.vocab_size} tokens cannot encode bytes")
    ends = ends_of(workload.batch, sizes["output"], unequal=recipe.get("unequal", False))
    seeded = Workload("llm", workload.model, batch=workload.batch, shape=(("seq", sizes["prompt"]),))
    inputs = make_inputs("causal_lm", module.config, seeded, labels=False)

    @lru_cache(maxsize=1)  # compiled code knows its cache; references, which come first, must not stay
    def generate(placed: torch.nn.Module) -> Decoder:
        return Decoder(placed, ends, length)

    return BuiltWorkload(
        module=module.eval(),
        kwargs=inputs,
        items_per_step=sum(ends),
        item="token",
        notes=notes,
        abilities={"generate": generate},
    )


def ends_of(batch: int, output: int, *, unequal: bool) -> tuple[int, ...]:
    """How many tokens each sequence of a batch gets: all ``output``, or from a part of it up to all."""
    if not unequal:
        return (output,) * batch
    return tuple(max(2, output * (i + 1) // batch) for i in range(batch))


def _made(workload: Workload, recipe: dict[str, Any], length: int) -> tuple[Any, tuple[str, ...]]:
    import torch

    known, published = ARCHITECTURES[recipe["architecture"]], workload.weights == PRETRAINED
    scale = "full" if published else "tiny" if recipe.get("tiny") else workload.size
    ids = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}  # those may lie outside
    config = model_class(known.config_class)(**known.fields(scale), **ids)
    notes = settled(config)
    refuse_too_large(known.model_class, config, workload.batch, length)  # before anything is fetched
    if published:
        return pretrained(known.model_class, known.config_class, known.checkpoint)
    torch.manual_seed(workload.seed)
    return model_class(known.model_class)(config), notes


def refuse_too_large(name: str, config: Any, batch: int, length: int) -> None:
    """Raise :class:`TooLargeError` where this machine's memory is too small for ``config``."""
    import torch

    from torchgauge.suites.llm.decoder import cache_bytes

    with torch.device("meta"):
        outline = model_class(name)(config)
    count = sum(each.numel() for each in outline.parameters())
    kept = cache_bytes(config, batch, length, 4)
    needed, free = 4 * count * COPIES + kept, available_memory()
    if free is not None and needed > free:
        raise TooLargeError(
            f"the model does not fit: {needed:,} bytes are needed "
            f"({counted(count, 'parameter')} in float32, "
            f"in the model and in its reference; {kept:,} bytes of cache), but {free:,} bytes are free",
            hint="use a smaller --size or --batch, or a machine with more memory",
        )
