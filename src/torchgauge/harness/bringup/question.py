"""The questions that a bringup answers, the most important first, and which evidence answers each."""

from __future__ import annotations

from dataclasses import dataclass

from torchgauge.harness.bringup.part import Part
from torchgauge.suites.conformance.catalogue import catalogue

HERE, IMPORT, CLOCKS, COPIES, OPERATORS = "here", "import", "clocks", "copies", "operators"
INFERENCE, TRAINING, FALLBACKS, MEMORY = "inference", "training", "fallbacks", "memory"
COMPILE, DEVICES = "compile", "devices"


@dataclass(frozen=True)
class Question:
    """``parts`` answer it together; ``checks`` are groups and names of checks that are evidence.

    ``needed`` are checks whose `unsupported` says no, beside those of tier smoke.
    """

    key: str
    text: str
    parts: tuple[Part, ...]
    checks: tuple[str, ...]
    needed: tuple[str, ...] = ()


QUESTIONS = (
    Question(HERE, "Is the device found, and does it respond?",
             (Part.IDENTITY, Part.DOCTOR, Part.CHECK), ("device",)),
    Question(IMPORT, "Does import torch work with its package?",
             (Part.IMPORT, Part.CHECK), ("autoload",)),
    Question(CLOCKS, "Are its timers correct?",
             (Part.DOCTOR, Part.CHECK, Part.MODELS),
             ("device.clocks", "device.synchronize", "stream", "event")),
    Question(COPIES, "Do copies and tensors keep their values?",
             (Part.CHECK,), ("tensor", "storage", "serialization")),
    Question(OPERATORS, "Do operators match the CPU's results?",
             (Part.OPS, Part.CHECK), ("operators", "numerics", "generator", "errors")),
    Question(INFERENCE, "Is inference of models correct?",
             (Part.MODELS, Part.CHECK), ("nn",)),
    Question(TRAINING, "Is training of models correct?",
             (Part.MODELS, Part.CHECK), ("autograd", "optim", "amp", "nn.parameters_stay")),
    Question(FALLBACKS, "Do all operators run on the device itself?",
             (Part.MODELS, Part.CHECK), ("operators.fallback", "operators.fallback_families")),
    Question(MEMORY, "Is memory counted, and is out-of-memory recognised?",
             (Part.CHECK,), ("allocator", "errors.out_of_memory"),
             ("allocator.peak", "errors.out_of_memory")),
    Question(COMPILE, "Does torch.compile work on the device?",
             (Part.CHECK,), ("compiler", "export"), ("compiler.capture", "compiler.inductor")),
)  # fmt: skip
"""The ten that come first."""
SEVERAL = Question(
    DEVICES, "Do several devices work together?", (Part.COLLECTIVES, Part.CHECK), ("distributed",),
    ("distributed.collectives",),
)  # fmt: skip
"""Asked as well where there are two devices."""


def question_of(check: str) -> str:
    """The key of the question that ``check`` is evidence for; empty where none asks for it."""
    every = (*QUESTIONS, SEVERAL)
    named = next((each.key for each in every if check in each.checks), "")
    return named or next((each.key for each in every if check.partition(".")[0] in each.checks), "")


def decides(check: str) -> bool:
    """Whether a device that says it has not what ``check`` asks for gets a no."""
    entry = catalogue().get(check)
    return (entry is not None and entry.tier == "smoke") or any(
        check in each.needed for each in (*QUESTIONS, SEVERAL)
    )
