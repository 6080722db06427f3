"""Write data of torch and numpy twice from one seed, once from another: prints what upstream would read."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import torch

from torchgauge.suites.torchbench.data_files import Files
from torchgauge.suites.torchbench.synthetic_data import DATA_SETS


def read(folder: Path, kind: str, seed: str) -> list[np.ndarray]:
    """The arrays that ``kind`` writes below ``folder``."""
    DATA_SETS[kind].write(Files(folder, "m", 1, seed))
    if kind == "drq":
        return [pickle.loads((folder / "torchbenchmark/models/drq/obs.pkl").read_bytes())]
    return list(torch.load(folder / "torchbenchmark/models/maml_omniglot/batch.pt", weights_only=False))


found = {}
for kind in ("drq", "omniglot"):
    one, two, three = (read(Path(sys.argv[1]) / kind / str(n), kind, seed) for n, seed in enumerate("aab"))
    found[kind] = {
        "shapes": [[str(array.dtype), *array.shape] for array in one],
        "equal": all(np.array_equal(*pair) for pair in zip(one, two)),  # noqa: B905  the same code wrote both
        "seeded": not np.array_equal(one[0], three[0]),
        "classes": sorted({int(n) for array in one for n in np.unique(array)})[:6]
        if kind == "omniglot"
        else [],
    }
print(json.dumps(found))
