"""What each kind of page is, in a sentence: for search engines and for those who are sent a link."""

from __future__ import annotations

from collections.abc import Mapping

DESCRIPTIONS: Mapping[str, str] = {
    "overview": "Which models work, how fast, and what changed, on every device that torchgauge measures.",
    "compatibility": "Which models work on which device and configuration: one cell per planned case.",
    "performance": "How fast models run on each device and configuration, with 95 % intervals.",
    "trends": "Whether models get faster over the nights, by device and configuration.",
    "compare": "Two torch builds, devices or configurations, case by case.",
    "devices": "The devices that are measured, and how healthy each is.",
    "device": "Passes and failures of this device, with reasons and environment.",
    "model": "One model on every device and configuration: results, failures, and how to run it.",
    "regressions": "Performance regressions, new failures and A/B results.",
    "matrices": "Versions of torch and its libraries, measured in turns on one machine.",
    "checks": "Device capabilities, by the checks of their backend.",
    "features": "Ways to execute models: support by device, speed-up and cost.",
    "feature": "One way to execute models: the request, the executed path, and the speed-up.",
    "scorecards": "Devices judged by PyTorch's proposed quality levels: points and levels.",
    "scorecard": "The points of one device, their evidence, and commands for missing points.",
    "operators": "Which PyTorch operators each device supports, by dtype, and models that need missing ones.",
    "operator_details": "Operators of one letter on every device, dtype by dtype, with reasons.",
    "pictures": "Pictures of the results: devices, compilers and torch versions against each other.",
    "runs": "Every run behind the numbers, with its environment.",
    "runs_month": "The runs of one month.",
    "about": "The data as files, definitions, and how to cite the data.",
    "not_found": "This page was not found.",
}
"""By the name of the template."""
