"""What a launcher such as torchrun says in its variables: which of how many processes this one is."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass

from torchgauge.errors import UsageError

_FOR_EACH = ("RANK", "LOCAL_RANK", "MASTER_PORT")
_SET_BY_TORCHRUN = {"OMP_NUM_THREADS": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
"""What torchrun sets by itself, where it starts several processes, with the value that it sets.

A worker has threads of its own, and its environment is to be that of a worker which was not launched.
"""


@dataclass(frozen=True)
class Launch:
    """Process ``rank`` of ``count``; they meet at ``port`` of ``address``, which is the machine of rank 0.

    ``local_rank`` counts those of one machine. Torchrun's agent may have a store at that port already
    (``agent_store``). ``attempt`` tells apart what one store is used for.
    """

    rank: int
    count: int
    local_rank: int
    address: str
    port: int
    agent_store: bool = False
    attempt: str = ""


def taken_from(environ: MutableMapping[str, str]) -> Launch | None:
    """The launch that ``environ`` describes, None for none; variables that no worker is to see leave it.

    Raises :class:`UsageError` where a variable is missing, or is no number, and for a port that cannot be.
    """
    count = environ.get("WORLD_SIZE", "")
    if not count or "MASTER_ADDR" not in environ:
        return None
    if _is_number(count) and int(count) < 2:
        return None
    said = {name: environ.get(name, "") for name in ("WORLD_SIZE", *_FOR_EACH)}
    wrong = [name for name, value in said.items() if not _is_number(value)]
    numbers = {name: int(value) for name, value in said.items() if name not in wrong}
    if not 0 < numbers.get("MASTER_PORT", 1) < 1 << 16:
        wrong.append("MASTER_PORT")
    said["MASTER_ADDR"] = environ["MASTER_ADDR"].strip()
    if wrong or not said["MASTER_ADDR"]:
        name = wrong[0] if wrong else "MASTER_ADDR"
        raise UsageError(
            f"launched with WORLD_SIZE={count}, and {name} is {said[name] or 'not set'}",
            hint=f"a launcher sets WORLD_SIZE, MASTER_ADDR, {', '.join(_FOR_EACH)}, as torchrun does",
        )
    run, again = environ.get("TORCHELASTIC_RUN_ID", ""), environ.get("TORCHELASTIC_RESTART_COUNT", "")
    launch = Launch(
        rank=numbers["RANK"],
        count=numbers["WORLD_SIZE"],
        local_rank=numbers["LOCAL_RANK"],
        address=said["MASTER_ADDR"],
        port=numbers["MASTER_PORT"],
        agent_store=environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        attempt=f"{run}/{again}",
    )
    if launch.rank >= launch.count:
        raise UsageError(f"launched as process {launch.rank} of {count}", hint="they are counted from 0")
    for name in [each for each in environ if each.startswith("TORCHELASTIC_")]:
        del environ[name]
    for name, value in _SET_BY_TORCHRUN.items() if run else ():
        if environ.get(name) == value:
            del environ[name]
    return launch


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
