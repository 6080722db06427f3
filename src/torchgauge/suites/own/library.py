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
from torchgauge.suites.own.suite import RESERVED
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

    Raises :class:`UsageError` for a word that cannot be a name, and for a file that does not name its class.
    """
    prefix, name = _WORD.fullmatch(word).groups()  # type: ignore[union-attr]  # is_library
    suite = SUITES[prefix]
    if any(entry.name == name for entry in suite.models()):
        return suite, name
    recipe: dict[str, object] = {"word": word}
    if prefix == "hf":
        name, recipe = _of_transformers(word, name)
    if RESERVED.search(name):
        hint = "use a class, such as hf:LlamaForCausalLM, or hf:FOLDER with a config.json of the hub"
        hint = hint if prefix == "hf" else f"torchgauge suites show {suite.name}"
        raise UsageError(f"{word}: {name} is not the name of a model of {suite.name}", hint=hint)
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
    """Return name and recipe of a class of transformers, or of the class that a ``config.json`` names.

    Such a file is FOLDER, FOLDER/config.json or FOLDER.CLASS, as its cases are named.
    """
    recipe: dict[str, object] = {"word": word, "config_class": "", "config": {}, "inputs": ""}
    if not (name.endswith(".json") or "." in name or Path(name).is_dir()):
        return name, {**recipe, "model_class": name}
    folder = name if Path(name).is_dir() else name.rpartition(".")[0]
    file = Path(name) if name.endswith(".json") else Path(folder, "config.json")
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
        kind = str(fields["architectures"][0])
    except (OSError, ValueError) as error:
        hint = "hf:FOLDER with a config.json of transformers"
        raise UsageError(f"{word}: {file} cannot be read: {error}", hint=hint) from error
    except (LookupError, TypeError) as error:
        hint = 'write "architectures": ["LlamaForCausalLM"] in the file'
        raise UsageError(f"{word}: {file} does not name the class of its model", hint=hint) from error
    file = file.resolve()
    recipe |= {"config": fields, "word": f"hf:{file}", "model_class": kind}
    folder = RESERVED.sub("_", file.parent.name)
    return f"{folder}.{kind}", recipe
