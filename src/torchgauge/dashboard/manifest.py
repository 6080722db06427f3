"""What a site says of itself in ``manifest.json``: what numbers and letters in its other files mean.

It marks a folder as a site of ours, which may therefore be replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from torchgauge import __version__
from torchgauge.dashboard.names import device_id, model_id
from torchgauge.dashboard.plotly_bundle import plotly_bundle
from torchgauge.dashboard.shards import CORE
from torchgauge.dashboard.site_data import SiteData
from torchgauge.dashboard.snapshots import EPOCH_LENGTH, by_epoch
from torchgauge.dashboard.statuses import LOOKS, MARKS, NOTHING_PLANNED
from torchgauge.records import GRAVEST, METRICS, UNCOUNTED, doubt
from torchgauge.results.gain import gain_names

MANIFEST = "manifest.json"
SCHEMA = 1
"""Version of the layout of a site's files."""

SHOWN = 10
"""Digits of a commit, as ids of snapshots have them: forty were a third of what pages load of this file."""

GENERATOR = f"torchgauge {__version__}"


def is_site(folder: Path) -> bool:
    """Return whether ``folder`` is a site of ours, by its manifest."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            return b'"generator":"torchgauge' in file.read(200)
    except OSError:
        return False


def content(data: SiteData, digest: str) -> bytes:
    """The file; ``digest`` is the hash over all others."""
    return msgspec.json.encode(_manifest(data, digest)) + b"\n"


def _manifest(data: SiteData, digest: str) -> dict[str, Any]:
    devices = {case.device for case in data.case_index}
    groups = {case.workload.group for case in data.case_index}
    columns = {(case.column.configuration, case.column.compiled) for case in data.case_index}
    return {
        "generator": GENERATOR,
        "schema": SCHEMA,
        "generated_at": data.now,
        "digest": digest,
        "epoch_length": EPOCH_LENGTH,
        "snapshots": [
            {
                "id": snapshot.id,
                "date": snapshot.date,
                "torch_version": snapshot.build.version,
                "commit": snapshot.build.commit[:SHOWN],
                "epoch": snapshot.epoch,
            }
            for snapshot in data.snapshots
        ],
        "epochs": [
            {"epoch": epoch, "first": members[0].id, "last": members[-1].id, "snapshots": len(members)}
            for epoch, members in by_epoch(data.snapshots).items()
        ],
        "devices": [{"id": device_id(device), "name": device} for device in sorted(devices)],
        "models": [{"id": model_id(group), "suite": group[0], "model": group[1]} for group in sorted(groups)],
        "configurations": [
            {"name": name, "compiled": compiled}
            for name, compiled in sorted(columns, key=lambda column: (column[1], column[0]))
        ],
        "metrics": [
            {
                "name": name,
                **data.metrics[name],
                "core": name in CORE,
                "gain": gain_names([name]),
                "doubts": [each.value for each in GRAVEST if doubt(name, [each])],
            }
            for name in sorted(data.metrics, key=_metric_order)
        ],
        "statuses": [
            {"status": status.value, "letter": look.letter, "code": look.code, "meaning": look.meaning}
            for status, look in LOOKS.items()
        ],
        "nothing_planned": NOTHING_PLANNED,
        "plotly": plotly_bundle().record,
        "marks": MARKS,
        "uncounted": [each.value for each in GRAVEST if each in UNCOUNTED],
    }


def _metric_order(name: str) -> tuple[int, str]:
    known = list(METRICS)
    return (known.index(name) if name in known else len(known)), name
