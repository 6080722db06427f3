"""What the words of a gate are to GitHub and to people."""

from __future__ import annotations

from torchgauge.results.comparing.gate_verdict import GateVerdict

CONCLUSIONS = {
    GateVerdict.PASS: "success",
    GateVerdict.REGRESSION: "failure",
    GateVerdict.UNDECIDED: "neutral",
    GateVerdict.INCOMPLETE: "action_required",
}
"""The conclusion of a check run; source: docs.github.com, "Create a check run"."""

TITLES = {
    GateVerdict.PASS: "Pass",
    GateVerdict.REGRESSION: "Regression",
    GateVerdict.UNDECIDED: "Undecided",
    GateVerdict.INCOMPLETE: "Incomplete: this is not a pass",
}
