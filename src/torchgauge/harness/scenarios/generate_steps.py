"""The worker side of scenario ``generate``: the loop, what of it is compared, and what its tokens took.

Why a loop of our own: ``generate`` of transformers compiles on some types of device and runs eager on all
others without a word, and its streamers copy every token to the host. Here the prompt is run by the model as
it is, each further token by what the configuration's backend made of it, over a cache that is written in
place; the boundary between the two is exact. What keeps its cache itself reads the prompt too, by tokens.

Greedy: the next token is the one with the largest logit, so that a result can be compared with another.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from torchgauge.devices.session import DeviceSession
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.scenarios.token_times import Times, streamed, timed
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.roofline import copy_bandwidth
from torchgauge.harness.worker.series import Series
from torchgauge.records import Measurement, absent
from torchgauge.suites.capabilities import GENERATE
from torchgauge.suites.outputs import observe as to_host

REFERENCE = "the model's own generate and forward on the host"
"""What says what is right: it shares neither loop nor cache with ours."""
GLANCE = 16
"""Tokens that are profiled: a profile of thousands takes gigabytes."""
FORCED = 64
"""Tokens of a text over which logits are compared, at most."""
_QUALITY = ("top1_agreement", "kl_divergence", "perplexity", "perplexity_ratio")
"""How near the logits over a given text are to the reference's, in terms that people compare models by."""


class Decoder(Protocol):
    """What a model has under the capability ``generate``: a function of the placed module makes one."""

    ends: tuple[int, ...]
    """How many tokens each sequence of the batch gets."""

    def reset(self) -> None:
        """Forget all sequences."""

    def prefill(self, ids: Any) -> Any:
        """Logits (batch, vocabulary) after the prompt ``ids``."""

    def decode(self, call: Callable[..., Any], token: Any, place: Any) -> Any:
        """Logits after one more ``token`` (batch, 1) at ``place`` (1, 1), run by ``call``."""

    def exportable(self) -> tuple[Any, list[dict[str, Any]]]:
        """A module of one token a call that keeps its cache, and the arguments of calls of it, in turn."""

    def by_program(self, call: Callable[..., Any]) -> Decoder:
        """The same by ``call``, which was made of :meth:`exportable`."""

    def text(self, start: int, most: int) -> Any:
        """Token ids (batch, places): ``start`` of a text, and up to ``most`` more to compare logits over."""

    def peer_ids(self, prompt: Any) -> Any:
        """What another implementation generates; 0 after a sequence's end."""

    def peer_logits(self, text: Any, first: int) -> Any:
        """Logits of another implementation for ``text``, from place ``first`` on."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of keys and values."""

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights that one step reads at least."""


@dataclass
class Generation:
    """A step: one generation, whose times it keeps, in seconds.

    ``blocks`` has the two parts of each generation of a timed block, by its round, ``times`` those of calls
    since then, ``arrivals`` the moments at which tokens of streamed ones were on the host.
    """

    subject: Subject
    decoder: Decoder
    times: list[Times] = field(default_factory=list)
    blocks: dict[int, list[Times]] = field(default_factory=dict)
    arrivals: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.prompt = self.subject.kwargs["input_ids"]
        ends, device = torch.tensor(self.decoder.ends), self.prompt.device
        longest = int(ends.max())
        self.ids = torch.zeros(len(ends), longest, dtype=torch.int64, device=device)
        self.place = torch.empty(1, 1, dtype=torch.int64, device=device)
        ended = torch.arange(longest)[:, None] >= ends
        self.ended = [each[:, None].to(device) if bool(each.any()) else None for each in ended]
        self.region: Callable[[], AbstractContextManager[Any]] = self.subject.autocast or nullcontext

    def __call__(self) -> Any:
        """Generate: the ids, on the device; all of them have been on the host."""
        with self.region():
            self.times.append(self._generate(self.ids.shape[1]))
        return self.ids

    def sampled(self, number: int, steps: int) -> None:
        """The last ``steps`` generations were the block of round ``number``."""
        self.blocks[number] = self.times[-steps:]
        self.times.clear()

    def glance(self) -> None:
        """Generate a few tokens, for a profiler: every further one runs what the second did."""
        with self.region():
            self._generate(min(GLANCE, self.ids.shape[1]))

    def stream(self) -> None:
        """Generate with each token on the host before the next one, as for a reader who waits for it."""
        with self.region():
            self._generate(self.ids.shape[1], self.arrivals)

    def _generate(self, tokens: int, arrivals: list[float] | None = None) -> Times:
        decoder, call, ids, place = self.decoder, self.subject.call, self.ids, self.place
        decode = decoder.decode
        decoder.reset()
        began = time.perf_counter()
        token = decoder.prefill(self.prompt).argmax(-1, keepdim=True)
        ids[:, :1] = token
        token.cpu()  # waits for the device
        first = time.perf_counter()
        place.fill_(self.prompt.shape[1])
        for i in range(1, tokens):
            token = decode(call, token, place).argmax(-1, keepdim=True)
            ended = self.ended[i]
            if ended is not None:
                token = token.masked_fill(ended, 0)
            ids[:, i : i + 1] = token
            place += 1
            if arrivals is not None:
                token.cpu()
                arrivals.append(time.perf_counter())
        ids.cpu()
        return Times(first - began, time.perf_counter() - first)


def enter() -> None:
    """Switch gradients off for the whole process."""
    torch.set_grad_enabled(False)


def step(subject: Subject) -> Generation:
    """A function that generates once."""
    return Generation(subject, _decoder(subject))


def observe(subject: Subject) -> dict[str, Any]:
    """The generated ids, where rounding does not choose them, and the logits over a text that is given."""
    subject.session.seed(subject.seed)
    decoder, seen = _decoder(subject), {}
    if _exact(subject):
        seen["ids"] = Generation(subject, decoder)()
    with (subject.autocast or nullcontext)():
        seen["logits"] = forced_logits(subject, decoder)
    return to_host(seen)


def reference(subject: Subject) -> dict[str, Any]:
    """The same by the model's own means, which know nothing of the loop; kept for :func:`details`."""
    decoder, prompt, seen = _decoder(subject), subject.kwargs["input_ids"], {}
    with (subject.autocast or nullcontext)():
        if _exact(subject):
            seen["ids"] = decoder.peer_ids(prompt)
        text = _text(decoder, prompt)
        seen["logits"] = decoder.peer_logits(text, prompt.shape[1] - 1)
    found = to_host(seen)
    if bool(found["out.logits"].isfinite().all()):
        subject.built.abilities[GENERATE].truth = found["out.logits"]  # the widest comes last
    return found


def details(series: Series, session: DeviceSession) -> list[Measurement]:
    """What the tokens of a series took, and how near its logits are to the reference's."""
    generation: Any = series.step
    subject, decoder = series.subject, _decoder(series.subject)
    with series.running():
        gaps = streamed(generation)
        with (subject.autocast or nullcontext)():
            logits = forced_logits(subject, decoder)
        text = _text(decoder, subject.kwargs["input_ids"])
    read = decoder.weight_bytes
    return [
        *timed(series, generation.blocks, decoder.ends, subject.kwargs["input_ids"].shape[1], read),
        *gaps,
        copy_bandwidth(session, read),
        single("cache_size", float(decoder.cache_bytes), "keys and values of all layers"),
        *_quality(logits, getattr(subject.built.abilities[GENERATE], "truth", None), text),
    ]


def forced_logits(subject: Subject, decoder: Decoder) -> Any:
    """Logits (batch, places, vocabulary) of the loop where the text, and not its own choice, comes next."""
    prompt = subject.kwargs["input_ids"]
    text, start = _text(decoder, prompt), prompt.shape[1]
    decoder.reset()
    found = [decoder.prefill(text[:, :start])]
    place = torch.full((1, 1), start, device=prompt.device)
    for i in range(start, text.shape[1]):
        token = text[:, i : i + 1].contiguous()  # other strides would be other code
        found.append(decoder.decode(subject.call, token, place).clone())
        place += 1
    return torch.stack(found, dim=1)


def _text(decoder: Decoder, prompt: Any) -> Any:
    return decoder.text(prompt.shape[1], min(FORCED, max(decoder.ends) - 1))


def _decoder(subject: Subject) -> Decoder:
    made: Decoder = subject.built.abilities[GENERATE](subject.module)
    return made.by_program(subject.call) if subject.keeps_cache else made


def _exact(subject: Subject) -> bool:
    """Whether greedy ids are the mathematics and not the rounding: two right runs in bfloat16 part soon."""
    dtype = next(subject.module.parameters()).dtype
    return subject.autocast is None and dtype == torch.float32


def _quality(logits: Any, truth: Any, text: Any) -> list[Measurement]:
    """Agreement of ``logits`` (batch, places, vocabulary) with ``truth``, over the ``text``.

    The last place foretells nothing that is in the text: it has no perplexity.
    """
    if truth is None:
        return [absent(name, "results were not checked: the reference is missing") for name in _QUALITY]
    found, right = (torch.log_softmax(each.cpu().double(), -1) for each in (logits, truth))
    agreed = (found.argmax(-1) == right.argmax(-1)).double().mean()
    divergence = (right.exp() * (right - found)).sum(-1).mean().clamp(min=0.0)
    places = logits.shape[1] - 1
    follows = text[:, text.shape[1] - places :, None].cpu()
    mine, theirs = (-each[:, :-1].gather(-1, follows).mean() for each in (found, right))
    told = f"{right.shape[0] * right.shape[1]} tokens of the built-in text, against {truth.dtype} on the host"
    values = (agreed, divergence, mine.exp(), (mine - theirs).exp())
    return [single(name, float(value), told) for name, value in zip(_QUALITY, values, strict=True)]
