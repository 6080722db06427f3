"""The delegates of ExecuTorch: which ones the runtime has, and what lowers a program for them.

Nothing is listed here. The runtime's registry names delegates, and a delegate called ``XnnpackBackend`` has a
class ``XnnpackPartitioner`` somewhere below ``executorch.backends``. It is found in the sources, because
importing all of them to look would load the tools of every vendor.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torchgauge.errors import NotOfferedError
from torchgauge.harness.worker.verdicts import first_line

SUFFIX = "Backend"
BACKENDS = "executorch.backends"
TESTS = {"test", "tests"}


def registered() -> list[str]:
    """The delegates in the runtime's registry."""
    from executorch.runtime import Runtime

    names: list[str] = Runtime.get().backend_registry.registered_backend_names
    return sorted(names)


def partitioner(delegate: str) -> Any:
    """What gives ``delegate`` its part of a program.

    Raises :class:`NotOfferedError` where the runtime has not this delegate or says that it is not available,
    or where nothing lowers for it here.
    """
    from executorch.runtime import Runtime

    if delegate not in registered():
        raise NotOfferedError(
            f"the runtime has no delegate {delegate}: it has {', '.join(registered()) or 'none'}"
        )
    if not Runtime.get().backend_registry.is_available(delegate):
        raise NotOfferedError(f"the runtime reports that delegate {delegate} is not available here")
    return made(class_named(f"{delegate.removesuffix(SUFFIX)}Partitioner", delegate))


def class_named(name: str, delegate: str) -> Any:
    """The class ``name``, in whatever capitals, that the package has for ``delegate``."""
    spec = find_spec(BACKENDS)
    pattern = re.compile(rf"^class ({re.escape(name)})\b", re.MULTILINE | re.IGNORECASE)
    for root in map(Path, (spec and spec.submodule_search_locations) or ()):
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if not TESTS.intersection(parts) and (found := pattern.search(path.read_text("utf-8"))):
                try:
                    return getattr(import_module(".".join((BACKENDS, *parts))), found[1])
                except Exception as error:  # whatever a vendor's tools raise that are not there
                    raise NotOfferedError(f"{found[1]} cannot be imported: {first_line(error)}") from error
    raise NotOfferedError(f"delegate {delegate} is unavailable: {name} is not installed")


def made(found: Any) -> Any:
    """An object of the class ``found``, as it is made without arguments."""
    try:
        return found()
    except Exception as error:
        said = f"{found.__name__} cannot be constructed without arguments"
        raise NotOfferedError(f"{said}: {first_line(error)}") from error


def set_threads() -> int:
    """Give the runtime as many threads as torch has, and say how many it has; 0 where it does not say.

    Must come before a program is loaded: the pool is made anew, and programs keep the one that they know.
    """
    import torch

    library: Any = import_module("executorch.extension.pybindings.portable_lib")
    count, reset = (
        getattr(library, each, None) for each in ("_threadpool_get_thread_count", "_unsafe_reset_threadpool")
    )
    wanted = torch.get_num_threads()
    if count is not None and reset is not None and count() != wanted:
        reset(wanted)
    return int(count()) if count is not None else 0
