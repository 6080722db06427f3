"""The environments of a stored run."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from torchgauge.records import Environment
from torchgauge.results.dataset import read_table
from torchgauge.results.store import Store


def environments_of(store: Store, run_id: str) -> dict[str, Environment]:
    """The environments of a run by id, with their identities alone."""
    return environments_in(read_table(store, "environments", run_id))


def environments_in(table: Any) -> dict[str, Environment]:
    """The same from the rows of a run in ``environments``."""
    identities: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for row in table.to_pylist():
        if row["kind"] == "identity":
            identities[row["environment_id"], row["device"]][row["key"]] = json.loads(row["value"])
    return {
        environment_id: Environment(device, tuple(sorted(identity.items())))
        for (environment_id, device), identity in identities.items()
    }
