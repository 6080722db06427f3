"""At which step a device hangs, asked of a child that ends itself.

Why beside the probe: that asks so much that its deadline cannot say which answer did not come. This asks for
four things, each with a deadline of its own. Parent side; the child needs torch alone.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from torchgauge.devices.declared_variables import declared_variables
from torchgauge.processes.kept_process import run
from torchgauge.processes.known_secrets import known_secrets
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.python_command import OFF_THE_PATH

STEP_S = 10.0
"""Seconds that one step may take; each needs milliseconds."""
_CHILD = """
import faulthandler, sys
name, deadline = sys.argv[1], float(sys.argv[2])
def step(text):
    print("step", text, flush=True)
    faulthandler.dump_traceback_later(deadline, exit=True)
print("step import torch", flush=True)
import torch
step("torch.ones(8, 8, device=%r)" % name)
block = torch.ones(8, 8, device=name)
step("torch.mm on the device")
block = torch.mm(block, block)
step("torch.%s.synchronize()" % name)
torch.get_device_module(name).synchronize()
step("copy to the host")
block.cpu()
faulthandler.cancel_dump_traceback_later()
print("step done", flush=True)
"""


@dataclass(frozen=True)
class Hang:
    """What a device was asked when it did not return, and the innermost Python function then."""

    step: str
    frame: str = ""


def find_hang(
    python: str,
    torch_type: str,
    *,
    import_s: float,
    step_s: float = STEP_S,
    environment: Mapping[str, str] | None = None,
) -> Hang | None:
    """Where ``torch_type`` hangs in ``python``; None where it does not, or where it raises instead.

    ``import_s`` is how long the import of torch may take. ``environment`` is put on top of ours.
    """
    command = [python, "-c", OFF_THE_PATH + _CHILD, torch_type, str(step_s)]
    try:
        variables = {**passed(declared=declared_variables()), **(environment or {})}
        done = run(command, variables, timeout=import_s + 5 * step_s)
        output, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        output, errors = _text(late.stdout), _text(late.stderr)
    except OSError:
        return None
    output, errors = known_secrets().hide(output), known_secrets().hide(errors)
    steps = [line.removeprefix("step ") for line in output.splitlines() if line.startswith("step ")]
    if not steps or steps[-1] == "done":
        return None
    if "Timeout (" in errors:  # what faulthandler writes before it ends the process
        return Hang(steps[-1], _innermost(errors))
    return Hang(steps[-1]) if steps[-1] == "import torch" and not errors else None


def _innermost(errors: str) -> str:
    """The first frame under ``Thread ... (most recent call first)``: ``synchronize (module.py, line 5)``."""
    for line in errors.splitlines():
        text = line.strip()
        if text.startswith('File "') and " in " in text:
            path, _, rest = text.removeprefix('File "').partition('"')
            place, _, function = rest.removeprefix(", ").partition(" in ")
            return f"{function} ({os.path.basename(path)}, {place})"  # noqa: PTH119  of another system, too
    return ""


def _text(output: object) -> str:
    return output.decode("utf-8", "replace") if isinstance(output, bytes) else str(output or "")
