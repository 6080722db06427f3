"""The suite of language models: published architectures from their configuration, with random weights."""

from __future__ import annotations

from typing import Literal

import msgspec

from torchgauge.suites.catalog import DATA, YamlSuite

Architecture = Literal["llama", "qwen", "gemma", "mixtral", "gpt2"]


class LanguageModelRecipe(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How ``models.build`` builds a model.

    A ``tiny`` one is for tests and for the first tier; others have the sizes of the run. Where ends are
    ``unequal``, each sequence of the batch ends at another length.
    """

    architecture: Architecture
    tiny: bool = False
    unequal: bool = False


SUITE = YamlSuite(
    name="llm",
    doc="Language models that generate text, from their configuration, with random weights.",
    data=DATA / "llm.yaml",
    builder="torchgauge.suites.llm.models:build",
    preload=("torchgauge.suites.llm.models", "transformers.modeling_utils"),
    install_hint="pip install transformers",
    recipe_type=LanguageModelRecipe,
)
