"""The fields of ``torchgauge.yml`` as they are written; ``config.py`` says what may stand in them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

MAX_SHARDS = 256
"""Jobs that one matrix of GitHub Actions may have."""

Trust = Literal["anyone", "collaborators"]
_Names = Annotated[list[str], msgspec.Meta(min_length=1)]
Duration = str | int | float


class _Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """Fields are written with hyphens, and an unknown one is a mistake."""


class CampaignFields(_Strict):
    """Which cases are measured: the selectors of ``torchgauge run``."""

    suites: _Names
    tier: str = "smoke"
    modes: _Names = msgspec.field(default_factory=list)
    configs: _Names = msgspec.field(default_factory=list)
    dtypes: _Names = msgspec.field(default_factory=list)
    models: list[str] = []
    size: str = "small"
    config_file: str = ""
    budget: Duration = "30m"


class PoolFields(_Strict):
    """One pool: machines that are alike enough for their numbers to be one series."""

    name: str
    device: str
    runs_on: str | list[str] = []
    container: str = ""
    install: str = ""
    base: str = ""
    head: str = ""
    shards: Annotated[int, msgspec.Meta(ge=1, le=MAX_SHARDS)] = 1
    budget: Duration | None = None
    trust: Trust = "collaborators"
    found_by_probe: bool = False


class GateFields(_Strict):
    """What turns verdicts into red or green."""

    policy: str = ""
    undecided: Literal["neutral", "failure", "success"] = "failure"


class StoreFields(_Strict):
    """Where history is kept: a branch of the repository."""

    branch: str = "results"


class DashboardFields(_Strict):
    """Where the dashboard is served."""

    base_url: str = ""


class NightlyFields(_Strict):
    """When the nightly campaign starts, and when its results must be there; both UTC."""

    at: str = "01:17"
    expect_by: str = "06:00"


class ConfigFields(_Strict):
    """The whole file."""

    version: int
    campaign: CampaignFields
    pools: Annotated[list[PoolFields], msgspec.Meta(min_length=1)]
    torchgauge: str = ""
    labels: list[str] = []
    gate: GateFields = msgspec.field(default_factory=GateFields)
    store: StoreFields = msgspec.field(default_factory=StoreFields)
    dashboard: DashboardFields = msgspec.field(default_factory=DashboardFields)
    nightly: NightlyFields = msgspec.field(default_factory=NightlyFields)
