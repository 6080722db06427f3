"""Any model of timm, transformers and torchvision by its name, whether a suite lists it or not.

``timm:convnext_tiny``, ``hf:LlamaForCausalLM`` (or ``hf:FOLDER/config.json``) and ``torchvision:resnet50``
are cases of suites timm, huggingface and torchvision.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from torchgauge.errors import UsageError
from torchgauge.suites.catalog import DATA, YamlSuite
from torchgauge.suites.huggingface.suite import SUITE as HUGGINGFACE
from torchgauge.suites.suite import ModelEntry
from torchgauge.suites.timm.suite import SUITE as TIMM

TORCHVISION = YamlSuite(
    name="torchvision",
    doc="Image models of the torchvision library with random weights.",
    data=DATA / "torchvision.yaml",
    builder="torchgauge.suites.own.torchvision_models:build",
    install_hint="pip install torchvision",
)
SUITES = {"timm": TIMM, "hf": HUGGINGFACE, "torchvision": TORCHVISION}
_WORD = re.compile(rf"({'|'.join(SUITES)}):(.+)")
_INPUTS = {
    "ForMaskedLM": "masked_lm",
    "ForCausalLM": "causal_lm",
    "LMHeadModel": "causal_lm",
    "ForConditionalGeneration": "seq2seq",
    "ForQuestionAnswering": "question_answering",
    "ForSequenceClassification": "sequence_classification",
    "ForImageClassification": "image_classification",
    "ForCTC": "speech_ctc",
}
"""Which inputs a class of transformers takes, by the end of its name."""


def is_library(word: str) -> bool:
    """Return whether ``word`` is ``timm:NAME``, ``hf:CLASS`` or ``torchvision:NAME``."""
    return bool(_WORD.fullmatch(word))


def word_of_case(suite: str, model: str) -> str:
    """Return the word that loads ``model`` of ``suite``: the name of the suite where that lists the model."""
    for prefix, library in SUITES.items():
        if library.name == suite and all(entry.name != model for entry in library.models()):
            return f"{prefix}:{model}"
    return suite


def library_suite(word: str) -> tuple[YamlSuite, str]:
    """Return the suite of ``word`` with its model, and the name of that.

    Raises :class:`UsageError` for a class of transformers whose inputs are unknown, and for a file that does
    not name its class.
    """
    prefix, name = _WORD.fullmatch(word).groups()  # type: ignore[union-attr]  # is_library
    suite = SUITES[prefix]
    if any(entry.name == name for entry in suite.models()):
        return suite, name
    recipe: dict[str, object] = {"word": word}
    if prefix == "hf":
        name, recipe = _of_transformers(word, name)
    if ":" in name or "/" in name:
        raise UsageError(
            f"{word}: a model of {suite.name} has no {name}", hint=f"torchgauge suites show {suite.name}"
        )
    entry = ModelEntry(
        name=name,
        tiers=("smoke", "standard", "full"),
        batch={"inference": 2, "training": 2},
        sizes=("small", "full"),
        accuracy_class="network",
        recipe=recipe,
    )
    return replace(suite, more=(entry,)), name


def _of_transformers(word: str, name: str) -> tuple[str, dict[str, object]]:
    """Return name and recipe of a class of transformers, or of the class that a ``config.json`` names."""
    recipe: dict[str, object] = {"word": word, "config_class": "", "config": {}}
    if name.endswith(".json") or Path(name).is_dir():
        file = Path(name, "config.json") if Path(name).is_dir() else Path(name)
        try:
            fields = json.loads(file.read_text(encoding="utf-8"))
            kind = str(fields["architectures"][0])
        except (OSError, ValueError, LookupError, TypeError) as error:
            hint = 'a config.json with "architectures": ["LlamaForCausalLM"]'
            raise UsageError(
                f"{word}: {file} names no class of transformers: {error!r}", hint=hint
            ) from error
        file = file.resolve()
        name, recipe["config"], recipe["word"] = f"{file.parent.name}.{kind}", fields, f"hf:{file}"
    else:
        kind = name
    inputs = next((inputs for end, inputs in _INPUTS.items() if kind.endswith(end)), None)
    if inputs is None:
        raise UsageError(
            f"{word}: inputs of {kind} are unknown; those of *{', *'.join(_INPUTS)} are known",
            hint="a file with def model(): return module, {'input': tensor}",
        )
    return name, {**recipe, "model_class": kind, "inputs": inputs}
