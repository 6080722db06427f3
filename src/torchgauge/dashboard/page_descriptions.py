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
    "device": "What works on this device, what fails and why, and what it was measured with.",
    "model": "How one model does on every device and configuration, why it fails, and how to run it.",
    "regressions": "Changes of level in nightly history, new failures, and what was measured again.",
    "matrices": "Versions of torch and its libraries, measured in turns on one machine.",
    "checks": "What devices can do, by the checks of their backend.",
    "features": "How models are executed: what works on which device, what it buys and what it costs.",
    "feature": "One way to execute models: what was asked, what ran, and what it bought.",
    "scorecards": "Devices held against PyTorch's proposed quality levels: points and levels.",
    "scorecard": "The points of one device, what each rests on, and what would measure the rest.",
    "operators": "Which operators of PyTorch each device has, by dtype, and which models they block.",
    "operator_details": "Operators of one letter on every device, dtype by dtype, with reasons.",
    "pictures": "Pictures of the results: devices, compilers and torch versions against each other.",
    "runs": "Every run that the numbers are from, and with what it was made.",
    "runs_month": "The runs of one month.",
    "about": "The data as files, what the words mean, and how to cite it.",
    "not_found": "There is no such page.",
}
"""By the name of the template."""
