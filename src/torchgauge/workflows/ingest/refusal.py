"""Why a result set was refused: a closed list of reasons, so that no page needs a text of the set."""

from __future__ import annotations

from enum import Enum

from torchgauge.workflows.plain_text import plain

DETAIL_LIMIT = 200
"""Characters of detail that are kept beside a reason."""


class Reason(str, Enum):
    """What was wrong with a result set; the value is what records and pages say."""

    UNREADABLE = "unreadable"
    NOT_A_SET = "not_a_set"
    EMPTY = "empty"
    TOO_MANY_FILES = "too_many_files"
    FILE_NAME = "file_name"
    EXTRA_FILE = "extra_file"
    MISSING_FILE = "missing_file"
    DUPLICATE_NAME = "duplicate_name"
    NOT_A_FILE = "not_a_file"
    TOO_LARGE = "too_large"
    RATIO = "ratio"
    HASH = "hash"
    JSON = "json"
    NUMBER = "number"
    TEXT = "text"
    DEPTH = "depth"
    SCHEMA = "schema"
    DAMAGED_JOURNAL = "damaged_journal"
    JOURNAL_ORDER = "journal_order"
    FOREIGN_SHA = "foreign_sha"
    FOREIGN_CAMPAIGN = "foreign_campaign"
    FOREIGN_SHARD = "foreign_shard"
    FOREIGN_IDENTITY = "foreign_identity"
    RUN_ID = "run_id"
    ATTEMPT = "attempt"
    ARTIFACT_NAME = "artifact_name"
    PLAN_DIGEST = "plan_digest"
    CONFIGURATION = "configuration"
    TOLERANCE = "tolerance"
    FOREIGN_CASE = "foreign_case"
    CASE_TWICE = "case_twice"
    MISSING_CASE = "missing_case"
    DEVICE = "device"
    ENVIRONMENT = "environment"
    TIME = "time"
    ROW = "row"
    RUN_EXISTS = "run_exists"
    SUPERSEDED = "superseded"
    COUNTED = "counted"
    REMOVED = "removed"
    AMBIGUOUS = "ambiguous"
    UNPUBLISHABLE = "unpublishable"


class RefusedSetError(Exception):
    """A result set that is not taken; ``detail`` is our own words and quotes no text of the set's own."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason = reason
        shown = " ".join(plain(detail[: 2 * DETAIL_LIMIT]).split())
        self.detail = shown if len(shown) <= DETAIL_LIMIT else shown[: DETAIL_LIMIT - 1] + "…"
        super().__init__(f"{reason.value}: {self.detail}")
