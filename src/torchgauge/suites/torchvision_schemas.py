"""Let ``import torchvision`` succeed where its compiled operators do not load.

Why: a torchvision wheel built for another torch cannot load its extension, and its import then stops at
``operator torchvision::nms does not exist``, because it describes two operators that nobody defined.
timm and transformers import torchvision, though none of their classifiers or language models calls an
operator of it. Defining the two schemas, without kernels, is enough; calling one still fails.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_NOTE = "torchvision: compiled operators do not load here, only their schemas are defined"

_library: Any = None  # a torch.library.Library takes its definitions away when it is collected


def define_missing_schemas() -> tuple[str, ...]:
    """Define what torchvision needs to be imported; returns notes, empty where nothing was missing.

    Call it before anything imports torchvision. Calling it again changes nothing and returns the same.
    """
    global _library  # noqa: PLW0603  # one per process, as operators are
    if _library is not None:
        return (_NOTE,)
    if "torchvision" in sys.modules or not _installed() or _extension_loads():
        return ()
    import torch

    # Drop the submodules that an earlier, failed import of torchvision left behind.
    for name in [name for name in sys.modules if name.startswith("torchvision.")]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in _SCHEMAS:
        if not _defined(schema.partition("(")[0]):
            library.define(schema)
    _library = library
    return (_NOTE,)


def _installed() -> bool:
    return importlib.util.find_spec("torchvision") is not None


def _extension_loads() -> bool:
    """Whether the shared library that torchvision itself would load can be loaded (it stays loaded)."""
    import torch

    spec = importlib.util.find_spec("torchvision")
    folders = [Path(item) for item in (spec.submodule_search_locations or ())] if spec else []
    files = [
        file for folder in folders for file in sorted(folder.glob("_C*")) if file.suffix in {".so", ".pyd"}
    ]
    for file in files:
        try:
            torch.ops.load_library(str(file))
        except (OSError, RuntimeError):
            continue
        return True
    return False


def _defined(operator: str) -> bool:
    import torch

    return hasattr(torch.ops.torchvision, operator)
