"""A published run as exporters want it: one record per case, with its numbers and its eager partner."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.errors import NothingSelectedError
from torchgauge.records import doubt
from torchgauge.results.dataset import read_table
from torchgauge.results.environments import environments_of
from torchgauge.results.store import Store

EAGER = "eager"
_SAME_PROCESS = ("configuration_env", "configuration_pinning", "threads")


@dataclass(frozen=True)
class ExportedCase:
    """A row of ``results`` with the medians and the samples of its metrics, in base units."""

    row: Mapping[str, Any]
    facts: Mapping[str, Any]
    medians: Mapping[str, float]
    samples: Mapping[str, tuple[float, ...]]
    units: Mapping[str, str]

    @property
    def process(self) -> tuple[Any, ...]:
        """Return what all cases of a process share: variables, CPUs, threads and the layout of tensors."""
        layout = json.loads(self.row["configuration_compile"] or "{}").get("memory_format")
        return (*(self.row[name] for name in _SAME_PROCESS), layout)

    @property
    def compiled(self) -> bool:
        """Whether torch.compile took part."""
        return bool(self.row["backend"] != EAGER)

    def doubt(self, metric: str) -> str:
        """The modifier that keeps its number of ``metric`` out of what is compared; empty where none does."""
        return doubt(metric, self.row["modifiers"] or ())

    def why(self, modifier: str) -> str:
        """What the fact of a modifier's name says."""
        return str(self.facts.get(modifier) or "the row has no reason")

    @property
    def device(self) -> str:
        """The device as a case names it."""
        index = self.row["device_index"]
        return str(self.row["device"]) if index == 0 else f"{self.row['device']}.{index}"


@dataclass(frozen=True)
class ExportedRun:
    """All cases of one run and the identity of each environment."""

    run_id: str
    cases: tuple[ExportedCase, ...]
    environments: Mapping[str, Mapping[str, Any]]

    def eager_of(self, case: ExportedCase) -> ExportedCase | None:
        """The eager case of the same workload on the same device, in the same place if there is one."""
        same = [
            other
            for other in self.cases
            if not other.compiled
            and other.row["declared_hash"] == case.row["declared_hash"]
            and other.device == case.device
        ]
        here = [each for each in same if each.process == case.process]
        return next(iter(here or same), None)


@dataclass(frozen=True)
class Written:
    """What an export wrote, and the cases for which the format has no row, each with the reason."""

    files: tuple[Path, ...]
    left_out: tuple[tuple[str, str], ...]


def read_run(store: Store, run_id: str) -> ExportedRun:
    """The published run ``run_id``; raises :class:`UnknownNameError` and :class:`NothingSelectedError`."""
    rows = read_table(store, "results", run_id).to_pylist()
    if not rows:
        raise NothingSelectedError(f"run {run_id} has no case", hint="torchgauge results list shows the runs")
    medians: dict[str, dict[str, float]] = defaultdict(dict)
    units: dict[str, dict[str, str]] = defaultdict(dict)
    for row in read_table(store, "summaries", run_id).to_pylist():
        units[row["case_key"]][row["metric"]] = row["unit"]
        if row["median"] is not None:
            medians[row["case_key"]][row["metric"]] = row["median"]
    samples: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read_table(store, "samples", run_id).to_pylist():
        samples[row["case_key"]][row["metric"]].append(row["value"])
    cases = tuple(
        ExportedCase(
            row,
            json.loads(row["facts"]) if row["facts"] else {},
            medians[row["case_key"]],
            {name: tuple(values) for name, values in samples[row["case_key"]].items()},
            units[row["case_key"]],
        )
        for row in rows
    )
    environments = {key: dict(each.identity) for key, each in environments_of(store, run_id).items()}
    return ExportedRun(run_id, cases, environments)
