"""Every record and enumeration that crosses a process or a file: one vocabulary for all rooms.

The parent, the worker in a foreign interpreter, the journal and the store agree on these to the letter.
The package uses the standard library only and runs on Python 3.10 and later; building a record does
nothing else. Units are base units (seconds, bytes); ``docs/glossary.md`` defines the words.
"""

from torchgauge.records.case import (
    AUTOCAST,
    PRETRAINED,
    RANDOM_WEIGHTS,
    Case,
    Configuration,
    DeviceTarget,
    Workload,
    key_of_plain,
)
from torchgauge.records.codec import (
    SCHEMA_VERSION,
    RecordError,
    Scalar,
    digest,
    from_plain,
    prepare,
    to_json,
    to_plain,
)
from torchgauge.records.environment import Calibration, Environment
from torchgauge.records.measurement import Better, Measurement, Metric, Summary
from torchgauge.records.plan import (
    Deadlines,
    Expectation,
    Group,
    Plan,
    PlannedCase,
    Provenance,
    Refusal,
    RunSettings,
    Tolerance,
)
from torchgauge.records.result import Accuracy, Failure, Outcome, Realised, Result
from torchgauge.records.schedule import Schedule
from torchgauge.records.status import (
    ATTEMPTED,
    CAUSES_OF,
    INCOMPLETE,
    UNCOUNTED,
    UNTIMED,
    Cause,
    Modifier,
    Phase,
    Status,
    counts_as_pass,
    times_count,
)

__all__ = [
    "ATTEMPTED",
    "AUTOCAST",
    "CAUSES_OF",
    "INCOMPLETE",
    "PRETRAINED",
    "RANDOM_WEIGHTS",
    "SCHEMA_VERSION",
    "UNCOUNTED",
    "UNTIMED",
    "Accuracy",
    "Better",
    "Calibration",
    "Case",
    "Cause",
    "Configuration",
    "Deadlines",
    "DeviceTarget",
    "Environment",
    "Expectation",
    "Failure",
    "Group",
    "Measurement",
    "Metric",
    "Modifier",
    "Outcome",
    "Phase",
    "Plan",
    "PlannedCase",
    "Provenance",
    "Realised",
    "RecordError",
    "Refusal",
    "Result",
    "RunSettings",
    "Scalar",
    "Schedule",
    "Status",
    "Summary",
    "Tolerance",
    "Workload",
    "counts_as_pass",
    "digest",
    "from_plain",
    "key_of_plain",
    "prepare",
    "times_count",
    "to_json",
    "to_plain",
]
