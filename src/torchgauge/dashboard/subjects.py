"""What a case asks about: a model, a property of the device, or an operator. They are counted apart."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from torchgauge.dashboard.board import Board, Workload
from torchgauge.records.case import CHECK_MODE, CHECK_SUITES, OPERATOR_SUITES


class Subject(StrEnum):
    """What a case asks about."""

    MODELS = "models"
    CHECKS = "checks"
    OPERATORS = "operators"


def subject_of(workload: Workload) -> Subject:
    """What ``workload`` asks about."""
    if workload.suite in OPERATOR_SUITES:
        return Subject.OPERATORS
    if workload.suite in CHECK_SUITES or workload.mode == CHECK_MODE:
        return Subject.CHECKS
    return Subject.MODELS


def models_of(board: Board) -> Board:
    """``board`` without checks and operators; the same object where it has none."""
    kept = {key: entry for key, entry in board.entries.items() if subject_of(key[0]) is Subject.MODELS}
    if len(kept) == len(board.entries):
        return board
    return replace(board, entries=kept, planned=len(kept) + board.superseded)
