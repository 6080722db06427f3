"""The TorchBench suite: models of pytorch/benchmark, from a checkout that a person provides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from torchgauge.records import digest
from torchgauge.suites.catalog import DATA, YamlSuite
from torchgauge.suites.model_code import CHECKOUT, MODEL_CODE, code_digest
from torchgauge.suites.suite import ModelEntry, Unavailable
from torchgauge.suites.torchbench import checkout as torchbench_checkout

STEPS = "torchgauge.suites.torchbench.steps"
"""What steps its models as upstream does, in the place of the scenarios' own modules."""
Synthetic = Literal[
    "",
    "background_matting",
    "celeba",
    "coco",
    "coco128",
    "coco_checkpoint",
    "drq",
    "horse2zebra",
    "omniglot",
    "segment_anything",
    "super_slomo",
    "utterances",
]
"""What may stand for data that was not fetched."""
ConfigValue = str | int | float | bool | list[int] | None


class TorchBenchRecipe(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How ``models.build`` builds a model.

    ``canary``: it lives in the folder of canaries. ``libraries``: whose downloads are replaced by random
    weights. ``configs``: hub name to ``model_type`` and the fields that differ from its defaults.
    ``beyond``: the work of upstream's ``eval()`` beyond one call of the module. ``eval_step: invoke``
    includes that work in a step; otherwise the step omits it, and ``left_out`` is the share of the time.
    ``compiled`` is ``step`` if compiled code of the module would never run. ``requirements``: what pip must
    install for it. ``data``: the data that its own ``install.py`` fetches. ``synthetic`` names the data set
    that replaces missing ``data``. ``places``: paths in the checkout of data without a synthetic replacement,
    with ``{model}`` for the model's name. ``variable``: an environment variable that the model requires.
    """

    canary: bool = False
    libraries: tuple[Literal["torchvision", "timm", "transformers", "fastNLP"], ...] = ()
    configs: dict[str, dict[str, ConfigValue]] = {}
    eval_step: Literal["module", "invoke"] = "module"
    beyond: str = ""
    left_out: float | None = None
    compiled: Literal["module", "step"] = "module"
    requirements: tuple[str, ...] = ()
    data: str = ""
    synthetic: Synthetic = ""
    places: tuple[str, ...] = ()
    variable: str = ""

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where something is said to stand for no data."""
        if self.synthetic and not self.data:
            raise ValueError("`synthetic` requires `data`")


@dataclass(frozen=True)
class TorchBenchSuite:
    """The models of one data file, which need a checkout that is part of what is measured."""

    name: str
    doc: str
    data: Path
    builder: str
    preload: tuple[str, ...]
    install_hint: str
    recipe_type: type[msgspec.Struct] = TorchBenchRecipe
    scenarios: dict[str, str] = field(default_factory=lambda: dict.fromkeys(("inference", "training"), STEPS))

    @cached_property
    def _listed(self) -> YamlSuite:
        return YamlSuite(self.name, self.doc, self.data, self.builder, recipe_type=self.recipe_type)

    def models(self) -> tuple[ModelEntry, ...]:
        """Return the models of the data file in order, then the models found only in the checkout.

        Raises :class:`DataFileError`.
        """
        models = {entry.name: entry for entry in self._listed.models()}
        path = torchbench_checkout.checkout()
        for folder in torchbench_checkout.model_folders(path) if path is not None else ():
            code = partial(_code, folder / "__init__.py", path or folder)
            if folder.name not in models and re.search(r"\bModel\b", code(r"\*", set())):
                models[folder.name] = _unlisted(folder, code("", set()))
        return tuple(models.values())

    @property
    def digest(self) -> str:
        """Sixteen hex digits over the data file and the checkout's commit."""
        path = torchbench_checkout.checkout()
        commit = torchbench_checkout.commit_of(path) if path else ""
        return digest([self._listed.digest, commit])

    def code(self, model: str, recipe: Mapping[str, Any], builder: str) -> dict[str, str]:
        """Return the checkout's commit, and a digest over the model's code and ``builder``."""
        path = torchbench_checkout.checkout()
        if path is None:
            return {}
        package = path / "torchbenchmark"
        folders = ("canary_models",) if recipe.get("canary") else ("models", "models/fb")
        own = (package / folder / model for folder in folders)
        shared = (package / "__init__.py", package / "util", path / "utils")
        commit = torchbench_checkout.revision(path)
        return {CHECKOUT: commit, MODEL_CODE: code_digest([*shared, *own], builder)}

    @property
    def unavailable(self) -> Unavailable | None:
        """Why nothing can be built: no checkout is named, or the path is none."""
        return torchbench_checkout.unavailable()

    @property
    def environment(self) -> dict[str, str]:
        """The checkout, for workers; read when asked for, because the command line may still name it."""
        path = torchbench_checkout.checkout()
        return {} if path is None else {torchbench_checkout.VARIABLE: str(path)}

    def fetch(self, into: Path | None = None, url: str | None = None) -> tuple[Path, bool]:
        """The folder with the pinned commit, and whether it had to be fetched."""
        return torchbench_checkout.fetch(into, url or torchbench_checkout.URL)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should hear before a run: the checkout is not the one that our data describes."""
        path = torchbench_checkout.checkout()
        if path is None or self.unavailable is not None:
            return ()
        said = torchbench_checkout.note(path)
        return (said,) if said else ()


def _code(file: Path, checkout: Path, names: str, seen: set[Path]) -> str:
    """Return the text of ``file``, and of the checkout's files from which it imports ``names``, a pattern."""
    if file in seen or not file.is_file():
        return ""
    seen.add(file)
    text = file.read_text(encoding="utf-8", errors="replace")
    for dots, name in re.findall(rf"^\s*from\s+(\.*)([\w.]*)\s+import\s+{names}", text, re.MULTILINE):
        base = file.parents[len(dots) - 1] if dots else checkout
        target = base.joinpath(*filter(None, name.split(".")))
        for each in (target.with_name(f"{target.name}.py"), target / "__init__.py"):
            text += _code(each, checkout, names, seen)
    return text


def _unlisted(folder: Path, text: str) -> ModelEntry:
    """Return the entry of a model that only the checkout has, from the ``text`` of its code."""
    canary = folder.parent.name == "canary_models"
    upstream = {
        mode: int(size[1])
        for mode, test in (("inference", "EVAL"), ("training", "TRAIN"))
        if (size := re.search(rf"DEFAULT_{test}_BSIZE\s*=(?:\s*\w+\s*=)*\s*([1-9][0-9]*)", text))
    }
    fixed = re.search(r"ALLOW_CUSTOMIZE_BSIZE\s*=\s*False", text)
    return ModelEntry(
        name=folder.name,
        tiers=("canary" if canary else "full",),
        batch={"inference": 1, "training": 1, **(upstream if fixed else {})},
        sizes=("small", "full"),
        packages=("torch",),
        recipe={
            "canary": canary,
            "unlisted": True,
            "libraries": [name for name in ("torchvision", "timm") if name in text.lower()],
        },
        upstream_batch=upstream,
    )


SUITE = TorchBenchSuite(
    name="torchbench",
    doc="Models of pytorch/benchmark from a checkout, with random weights.",
    data=DATA / "torchbench.yaml",
    builder="torchgauge.suites.torchbench.models:build",
    preload=("torchgauge.suites.torchbench.libraries",),
    install_hint=f"{torchbench_checkout.FETCH}, then for each model the pip command in its result",
)
