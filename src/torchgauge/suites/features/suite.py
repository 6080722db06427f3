"""The suite of features: each question is a family of models with the configurations that answer it."""

from __future__ import annotations

from torchgauge.suites.catalog import DATA, YamlSuite
from torchgauge.suites.features.family import NAME

SUITE = YamlSuite(
    name=NAME,
    doc="Ways to execute a model: compiled by region, other attention kernels, inductor's options, ...",
    data=DATA / "features.yaml",
    builder="torchgauge.suites.features.networks:build",
    checker="torchgauge.suites.features.networks:check",
    preload=("torch",),
    install_hint="install the torch build of your device",
)
