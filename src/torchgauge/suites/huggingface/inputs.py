"""Random inputs for transformers' models, by kind of task; only the worker imports this file.

Token ids start at 10: the smaller ones are padding, separators and the like in most vocabularies, and a
padding token without a mask changes the mathematics of some models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchgauge.records import Workload

_FIRST_TOKEN = 10


class _Draw:
    """The random numbers of one workload, in a fixed order."""

    def __init__(self, config: Any, workload: Workload) -> None:
        self.config, self.batch, self.shape = config, workload.batch, workload.sizes
        self.generator = torch.Generator().manual_seed(workload.seed)

    def tokens(self, config: Any = None) -> Any:
        """Token ids (batch, seq)."""
        config = config or self.config
        size = (self.batch, self.shape.get("seq", 64))
        return torch.randint(_FIRST_TOKEN, config.vocab_size, size, generator=self.generator)

    def below(self, limit: int) -> Any:
        """One number in [0, limit) per item of the batch."""
        return torch.randint(limit, (self.batch,), generator=self.generator)

    def normal(self, *size: int) -> Any:
        """Normal numbers (batch, *size)."""
        return torch.randn((self.batch, *size), generator=self.generator)


def make_inputs(kind: str, config: Any, workload: Workload, *, labels: bool) -> dict[str, Any]:
    """Keyword arguments for a model of ``config``, with labels where the mode needs a loss."""
    return _KINDS[kind](_Draw(config, workload), labels)


def _language(draw: _Draw, labels: bool) -> dict[str, Any]:
    inputs = {"input_ids": draw.tokens()}
    if labels:
        inputs["labels"] = draw.tokens()
    return inputs


def _seq2seq(draw: _Draw, labels: bool) -> dict[str, Any]:
    inputs = {"input_ids": draw.tokens(), "decoder_input_ids": draw.tokens()}
    if labels:
        inputs["labels"] = draw.tokens()
    return inputs


def _question_answering(draw: _Draw, labels: bool) -> dict[str, Any]:
    inputs = {"input_ids": draw.tokens()}
    if labels:
        length = inputs["input_ids"].shape[1]
        inputs["start_positions"], inputs["end_positions"] = draw.below(length), draw.below(length)
    return inputs


def _sequence_classification(draw: _Draw, labels: bool) -> dict[str, Any]:
    inputs = {"input_ids": draw.tokens()}
    if labels:
        inputs["labels"] = draw.below(draw.config.num_labels)
    return inputs


def _image_classification(draw: _Draw, labels: bool) -> dict[str, Any]:
    config = draw.config
    side = getattr(config, "image_size", 224)  # networks of convolutions take any
    inputs = {"pixel_values": draw.normal(config.num_channels, side, side)}
    if labels:
        inputs["labels"] = draw.below(config.num_labels)
    return inputs


def _speech_seq2seq(draw: _Draw, labels: bool) -> dict[str, Any]:
    config = draw.config
    frames = 2 * config.max_source_positions  # the encoder's convolution halves the frames
    inputs = {"input_features": draw.normal(config.num_mel_bins, frames), "decoder_input_ids": draw.tokens()}
    if labels:
        inputs["labels"] = draw.tokens()
    return inputs


def _image_text(draw: _Draw, labels: bool) -> dict[str, Any]:
    text, vision = draw.config.text_config, draw.config.vision_config
    inputs = {
        "input_ids": draw.tokens(text),
        "pixel_values": draw.normal(vision.num_channels, vision.image_size, vision.image_size),
    }
    return {**inputs, "return_loss": True} if labels else inputs


def _speech_ctc(draw: _Draw, labels: bool) -> dict[str, Any]:
    inputs = {"input_values": draw.normal(draw.shape.get("samples", 16000))}
    if labels:
        size = (draw.batch, 16)
        inputs["labels"] = torch.randint(1, draw.config.vocab_size, size, generator=draw.generator)
    return inputs


_KINDS: dict[str, Callable[[_Draw, bool], dict[str, Any]]] = {
    "masked_lm": _language,
    "causal_lm": _language,
    "seq2seq": _seq2seq,
    "question_answering": _question_answering,
    "sequence_classification": _sequence_classification,
    "image_classification": _image_classification,
    "speech_seq2seq": _speech_seq2seq,
    "image_text": _image_text,
    "speech_ctc": _speech_ctc,
}
