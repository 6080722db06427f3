"""What a site says of itself: ``manifest.json`` for its pages, and ``state/`` for the next build.

``manifest.json`` marks a folder as a site of ours, which may therefore be replaced. It names what numbers and
letters in the other files mean, and the hashes of the files under ``state/``, which name all others.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from torchgauge import __version__
from torchgauge.dashboard import state_files
from torchgauge.dashboard.names import device_id, model_id
from torchgauge.dashboard.plotly_bundle import NO_CHARTS, Charts
from torchgauge.dashboard.shards import CORE
from torchgauge.dashboard.site_data import SiteData
from torchgauge.dashboard.site_folder import SiteWriter
from torchgauge.dashboard.snapshots import EPOCH_LENGTH, by_epoch
from torchgauge.dashboard.statuses import LOOKS, MARKS, NOTHING_PLANNED
from torchgauge.records import GRAVEST, METRICS, UNCOUNTED, doubt
from torchgauge.results.origin import PROVENANCE
from torchgauge.results.store import Store

MANIFEST = "manifest.json"
SCHEMA = 1
"""Version of the layout of a site's files."""

GENERATOR = f"torchgauge {__version__}"

_AT_ONCE = 1 << 18
"""Bytes of a file that are read at once: more than nearly all files have."""

_FINGERPRINTED = ("results", "summaries", "environments", "calibrations")


def is_site(folder: Path) -> bool:
    """Whether ``folder`` is a site of ours, by its manifest or the marker of older versions."""
    if (folder / "site.json").is_file():
        return True
    try:
        with (folder / MANIFEST).open("rb") as file:
            return b'"generator":"torchgauge' in file.read(200)
    except OSError:
        return False


def fingerprints(store: Store) -> dict[str, str]:
    """A hash of what the store holds of every published run: its tables, its counts and its origin."""
    found = {}
    for run_id in store.published():
        digest = hashlib.sha256()
        paths = [f"{store.path}/tables/{name}/{run_id}.parquet" for name in _FINGERPRINTED]
        for path in [*paths, *(f"{store.path}/runs/{run_id}/{name}" for name in ("run.json", PROVENANCE))]:
            data = _content(path)
            digest.update(len(data).to_bytes(8, "little") + data)
        found[run_id] = digest.hexdigest()[:32]
    return found


def _content(path: str) -> bytes:
    """What is in a file, empty where there is none; thousands are read, hence without a file object."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        parts = []
        while part := os.read(descriptor, _AT_ONCE):
            parts.append(part)
        return b"".join(parts) if len(parts) > 1 else parts[0] if parts else b""
    finally:
        os.close(descriptor)


def files(
    data: SiteData, prints: dict[str, str], writer: SiteWriter, charts: Charts = NO_CHARTS
) -> Iterator[tuple[str, bytes]]:
    """The files under ``state/``, then ``manifest.json``; after all others, which they name."""
    site_digest = digest(writer)
    states = {}
    for name, content in state_files.files(data, prints, writer):
        states[name] = hashlib.sha256(content).hexdigest()
        yield name, content
    yield MANIFEST, encode(_manifest(data, site_digest, states, charts)) + b"\n"


def digest(writer: SiteWriter) -> str:
    """A hash over all files of the site but the manifest and the state."""
    return writer.digest_without(("state/", MANIFEST))


def encode(value: Any) -> bytes:
    """Strict JSON: what is not a number becomes null."""
    return msgspec.json.encode(value)


def _manifest(data: SiteData, site_digest: str, states: dict[str, str], charts: Charts) -> dict[str, Any]:
    devices = {case.device for case in data.book}
    groups = {case.workload.group for case in data.book}
    columns = {(case.column.configuration, case.column.compiled) for case in data.book}
    return {
        "generator": GENERATOR,
        "schema": SCHEMA,
        "generated_at": data.now,
        "digest": site_digest,
        "epoch_length": EPOCH_LENGTH,
        "snapshots": [
            {
                "id": snapshot.id,
                "date": snapshot.date,
                "torch_version": snapshot.build.version,
                "commit": snapshot.build.commit,
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
                "name": metric.name,
                "unit": metric.unit,
                "better": metric.better,
                "core": metric.name in CORE,
                "doubts": [each.value for each in GRAVEST if doubt(metric.name, [each])],
            }
            for metric in sorted(data.metrics.values(), key=lambda metric: _metric_order(metric.name))
        ],
        "statuses": [
            {"status": status.value, "letter": look.letter, "code": look.code, "meaning": look.meaning}
            for status, look in LOOKS.items()
        ],
        "nothing_planned": NOTHING_PLANNED,
        "plotly": charts.bundle.record if charts.bundle else None,
        "marks": MARKS,
        "uncounted": [each.value for each in GRAVEST if each in UNCOUNTED],
        "state": states,
    }


def _metric_order(name: str) -> tuple[int, str]:
    known = list(METRICS)
    return (known.index(name) if name in known else len(known)), name
