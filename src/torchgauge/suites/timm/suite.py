"""The timm suite: image models of the timm library, built with random weights."""

from __future__ import annotations

import msgspec

from torchgauge.suites.catalog import DATA, YamlSuite


class TimmRecipe(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How ``models.build`` builds a model: ``model`` is timm's name where it differs from ours."""

    model: str = ""
    arguments: dict[str, str | int | float | bool | None] = {}


SUITE = YamlSuite(
    name="timm",
    doc="Image models of the timm library with random weights.",
    data=DATA / "timm.yaml",
    builder="torchgauge.suites.timm.models:build",
    preload=("timm",),
    install_hint="pip install timm",
    recipe_type=TimmRecipe,
)
