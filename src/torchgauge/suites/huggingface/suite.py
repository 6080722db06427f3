"""The Hugging Face suite: transformers models from their configuration, built with random weights."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from torchgauge.suites.catalog import DATA, YamlSuite

ConfigValue = str | int | float | bool | list[Any] | dict[str, Any] | None
"""A value of a configuration field; a mapping overrides fields of a nested configuration."""

InputKind = Literal[
    "masked_lm",
    "causal_lm",
    "seq2seq",
    "question_answering",
    "sequence_classification",
    "image_classification",
    "speech_seq2seq",
    "image_text",
    "speech_ctc",
]


class HuggingFaceRecipe(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How ``models.build`` builds a model.

    ``config`` overrides fields of the configuration class at every size; ``small`` overrides them
    again at size ``small``. ``checkpoint`` is the name on the hub, or the folder, of pretrained weights;
    nothing is read from it unless a run asks for them.
    """

    model_class: str
    config_class: str
    inputs: InputKind
    checkpoint: str = ""
    config: dict[str, ConfigValue] = {}
    small: dict[str, ConfigValue] = {}


SUITE = YamlSuite(
    name="huggingface",
    doc="Models of the transformers library from their configuration, with random weights.",
    data=DATA / "huggingface.yaml",
    builder="torchgauge.suites.huggingface.models:build",
    preload=("torchgauge.suites.huggingface.models", "transformers.modeling_utils"),
    install_hint="pip install transformers",
    recipe_type=HuggingFaceRecipe,
)
