"""What scenario ``generate`` needs of a model, for the causal language models of transformers.

The cache is a static one: as many places as the whole sequence has, written in place, so that every step has
the same shapes and one compiled graph serves all. Layers that look back through a window have a cache of the
whole sequence too, and a mask: transformers' own for them counts in Python, and is compiled again for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from torchgauge.errors import MissingPackageError
from torchgauge.suites.llm.text import byte_ids
from torchgauge.suites.stored_bytes import stored_bytes

PAD = 0
"""What stands after the end of a sequence that ended before the others."""
LEAST_FORCED, MOST_LOGITS = 8, 1 << 24
"""Places of a text that are compared even where their logits are many, and how many of those are few."""
NEWER = "pip install 'transformers>=4.56'"
STRIDE = 97
"""Bytes between the beginnings of two sequences of the shipped text."""


@dataclass
class Decoder:
    """A model with its cache, on one device: ``ends`` says how many tokens each sequence of a batch gets.

    ``length`` is the number of places in the cache.
    """

    module: Any
    ends: tuple[int, ...]
    length: int
    cache: Any = field(init=False)

    def __post_init__(self) -> None:
        self.cache = static_cache(self.module.config, self.length)

    def reset(self) -> None:
        """Forget all sequences; the cache stays where it is."""
        self.cache.reset()

    def prefill(self, ids: Any) -> Any:
        """Logits (batch, vocabulary) after the prompt ``ids`` (batch, places), run by the model as it is."""
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        return self._last(self.module, ids, places)

    def decode(self, call: Callable[..., Any], token: Any, place: Any) -> Any:
        """Logits after one more ``token`` (batch, 1) at ``place`` (1, 1), run by ``call``."""
        return self._last(call, token, place)

    def _last(self, call: Callable[..., Any], ids: Any, places: Any) -> Any:
        output = call(
            input_ids=ids,
            past_key_values=self.cache,
            use_cache=True,
            position_ids=places,
            logits_to_keep=1,
        )
        return output.logits[:, -1]

    def exportable(self) -> tuple[Any, list[dict[str, Any]]]:
        """The model as a step of one token that keeps its cache, and calls of it: the shipped text, in turn.

        Each call has ``input_ids`` (batch, 1) and ``cache_position`` (1,). Raises
        :class:`MissingPackageError` without transformers' module for it.
        """
        ids = self.text(1, self.length - 1)
        places = torch.arange(ids.shape[1], device=ids.device)
        calls = [
            {"input_ids": ids[:, i : i + 1].contiguous(), "cache_position": places[i : i + 1]}
            for i in range(ids.shape[1])
        ]
        return _keeping_its_cache(self.module, len(self.ends), self.length), calls

    def by_program(self, call: Callable[..., Any]) -> ProgramDecoder:
        """The same by ``call``, made of :meth:`exportable`."""
        return ProgramDecoder(self.module, self.ends, self.length, call)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the keys and values of all layers; 0 before the first prompt."""
        filled = [each for each in self.cache.layers if each.is_initialized]
        return sum(each.nbytes for layer in filled for each in (layer.keys, layer.values))

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights that a step reads at least: no embedding, and the experts of one token.

        An embedding that is the output layer as well is read by that one.
        """
        experts = _experts(self.module.config)
        seen: dict[int, float] = {}
        for path, part in self.module.named_modules():
            if isinstance(part, torch.nn.Embedding):
                continue
            share = experts if experts and path.endswith(".experts") else 1.0
            for each in part.parameters(recurse=False):
                seen[id(each)] = stored_bytes([each]) * share
        return int(sum(seen.values()))

    def text(self, start: int, most: int) -> Any:
        """Token ids of the shipped text: ``start`` and up to ``most`` more, each row from another place."""
        logits = len(self.ends) * self.module.config.vocab_size
        count = start + min(most, max(LEAST_FORCED, MOST_LOGITS // logits))
        rows = [byte_ids(count, start=STRIDE * i) for i in range(len(self.ends))]
        return torch.tensor(rows, device=next(self.module.parameters()).device)

    def peer_ids(self, prompt: Any) -> Any:
        """What transformers' own ``generate`` makes of ``prompt``: greedy, with a growing cache."""
        longest = max(self.ends)
        with _plain_experts(self.module.config):
            made = self.module.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=longest,
                do_sample=False,
                num_beams=1,
                use_cache=True,
                eos_token_id=None,
                pad_token_id=PAD,
                stopping_criteria=_stops(self.ends, prompt.shape[1]),
            )
        found = made[:, prompt.shape[1] :]
        return torch.nn.functional.pad(found, (0, longest - found.shape[1]), value=PAD)

    def peer_logits(self, text: Any, first: int) -> Any:
        """Logits (batch, places, vocabulary) from place ``first`` on: the ``text`` at once, no cache."""
        with _plain_experts(self.module.config):
            return self.module(input_ids=text, use_cache=False).logits[:, first:]


@dataclass
class ProgramDecoder(Decoder):
    """The same by ``run``, which keeps its cache and takes one token a call, those of a prompt too.

    It needs no reset: a place is written before it is read, and what comes after it is masked.
    """

    run: Callable[..., Any]

    def reset(self) -> None:
        """Nothing is to be forgotten."""

    def prefill(self, ids: Any) -> Any:
        """Logits (batch, vocabulary) after the prompt ``ids`` (batch, places), run token by token."""
        places = torch.arange(ids.shape[1], device=ids.device)[:, None]
        for i, place in enumerate(places):
            logits = self.run(input_ids=ids[:, i : i + 1].contiguous(), cache_position=place)
        return logits[:, -1]

    def decode(self, call: Callable[..., Any], token: Any, place: Any) -> Any:
        """Logits after one more ``token`` (batch, 1) at ``place`` (1, 1), run by ``call``."""
        return call(input_ids=token, cache_position=place[0])[:, -1]

    @property
    def cache_bytes(self) -> int:
        """Bytes of the keys and values of all layers."""
        width = next(self.module.parameters()).element_size()
        return cache_bytes(self.module.config, len(self.ends), self.length, width)


def _keeping_its_cache(module: Any, batch: int, length: int) -> Any:
    """``module`` with a cache in buffers of its own, as transformers makes it for programs.

    It reads settings of the model that ours has not: they are as they were when it is made.
    """
    try:
        from transformers.integrations.executorch import TorchExportableModuleForDecoderOnlyLM
    except ImportError as error:
        if not str(error.name).startswith("transformers."):
            raise
        raise MissingPackageError(f"transformers cannot export a decoder here: {error}", hint=NEWER) from None
    settings = (
        (module.config, "use_cache", True),
        (module.generation_config, "use_cache", True),
        (module.generation_config, "cache_implementation", "static"),
    )
    before = [getattr(of, name) for of, name, _ in settings]
    try:
        for of, name, value in settings:
            setattr(of, name, value)
        return TorchExportableModuleForDecoderOnlyLM(module, batch, length, module.device).model
    finally:
        for (of, name, _), value in zip(settings, before, strict=True):
            setattr(of, name, value)


def static_cache(config: Any, length: int) -> Any:
    """A cache of ``length`` places for each layer; raises :class:`MissingPackageError` without the class."""
    import transformers

    try:
        from transformers.cache_utils import Cache, StaticLayer
    except ImportError as error:
        if error.name != "transformers.cache_utils":
            raise
        raise MissingPackageError(
            f"transformers {transformers.__version__} has no StaticLayer",
            hint=NEWER,
        ) from None
    return Cache(layers=[StaticLayer(max_cache_len=length) for _ in range(config.num_hidden_layers)])


def cache_bytes(config: Any, batch: int, length: int, width: int) -> int:
    """Bytes of a cache for ``batch`` sequences of ``length`` places with ``width`` bytes a number."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(2 * config.num_hidden_layers * batch * heads * length * size * width)


@contextmanager
def _plain_experts(config: Any) -> Iterator[None]:
    """Run experts one after the other, as they are written: their grouped kernels take no float64."""
    used = getattr(config, "_experts_implementation", None)
    if used is None:
        yield
        return
    config._experts_implementation = "eager"  # each call reads it
    try:
        yield
    finally:
        config._experts_implementation = used


def _experts(config: Any) -> float:
    """The share of its experts that one token is sent to; 0 for a model without experts."""
    count = getattr(config, "num_local_experts", 0) or getattr(config, "num_experts", 0)
    return config.num_experts_per_tok / count if count else 0.0


def _stops(ends: tuple[int, ...], start: int) -> Any:
    """What tells ``generate`` which sequences have ended."""
    from transformers import StoppingCriteria, StoppingCriteriaList

    class Ends(StoppingCriteria):  # type: ignore[misc]  # of an untyped library
        """A sequence has ended with its last token."""

        eos_token_id = None  # without one, generate goes on with sequences that have ended

        def __call__(self, input_ids: Any, _scores: Any, **_: Any) -> Any:
            """Whether each sequence has."""
            return input_ids.shape[1] - start >= torch.tensor(ends, device=input_ids.device)

    return StoppingCriteriaList([Ends()])
