"""One run has one torchgauge, and one torch for each device; where versions may be mixed, rows say theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from torchgauge import __version__
from torchgauge.errors import UsageError
from torchgauge.records import Environment, Plan, Result
from torchgauge.results.rows import torch_version

MIXED = "--mixed-versions"
ALLOW = f"{MIXED} allows different versions; each row then records its versions"


@dataclass
class Versions:
    """The versions of torch of one run, by environment; the first one of each device counts.

    ``torchgauge`` measures rows that do not say theirs.
    """

    mixed: bool = False
    torchgauge: str = __version__
    by_device: dict[str, str] = field(default_factory=dict)
    by_environment: dict[str, str] = field(default_factory=dict)

    def differ(self, environment: Environment) -> str:
        """Add ``environment``; return how its torch differs from the run's, empty where it may differ."""
        if not (version := torch_version(environment)):
            return ""
        self.by_environment[environment.id] = version
        first = self.by_device.setdefault(environment.device, version)
        if self.mixed or version == first:
            return ""
        return f"torch {version} instead of {first} for device {environment.device}"

    def marked(self, results: Sequence[Result]) -> list[Result]:
        """Return ``results``, each with the versions that measured it if versions may be mixed."""
        return [self._marked(each) if self.mixed and each.environment_id else each for each in results]

    def _marked(self, result: Result) -> Result:
        own = {"torchgauge": self.torchgauge}
        if torch := self.by_environment.get(result.environment_id):
            own["torch"] = torch
        return replace(result, facts=tuple(sorted({**own, **dict(result.facts)}.items())))


def refuse_other_torchgauge(plan: Plan, mixed: bool) -> None:
    """Raise :class:`UsageError` where another torchgauge made ``plan``, unless versions may be ``mixed``."""
    if plan.torchgauge not in ("", __version__) and not mixed:
        raise UsageError(
            f"{plan.run_id} was planned by torchgauge {plan.torchgauge}, but this is "
            f"torchgauge {__version__}",
            hint=f"use one version everywhere; {ALLOW}",
        )
