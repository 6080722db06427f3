"""Which instructions of the processor compute in a low-precision dtype: without any, it is emulated and slow.

Why a fact of the row and no refusal: the dtype works, and its times are true. They say nothing of a processor
that has the instructions, and who reads them must know.
"""

from __future__ import annotations

from pathlib import Path

from torchgauge.records import AUTOCAST

CPUINFO = Path("/proc/cpuinfo")
FACT = "native_isa"
_MARKS = {"flags": "x86", "Features": "arm"}
"""How the line of instruction sets begins in Linux's ``/proc/cpuinfo``, by family of processors."""
_SETS = {
    ("x86", "bfloat16"): ("avx512_bf16", "amx_bf16"),
    ("x86", "float16"): ("avx512_fp16", "amx_fp16"),
    ("arm", "bfloat16"): ("bf16", "svebf16"),
    ("arm", "float16"): ("asimdhp",),
}
"""Linux's names of the instruction sets that multiply in a dtype (its cpufeatures.h, its elf_hwcaps)."""


def native_isa(dtype: str, cpuinfo: Path = CPUINFO) -> str:
    """``avx512_bf16, no amx_bf16``; empty for a dtype that needs none, and where nobody says it."""
    family, has = instruction_sets(cpuinfo)
    low = dtype.removeprefix(AUTOCAST)
    return ", ".join(each if each in has else f"no {each}" for each in _SETS.get((family, low), ()))


def instruction_sets(cpuinfo: Path = CPUINFO) -> tuple[str, list[str]]:
    """The family of the processor, and its instruction sets as Linux names them; ("", []) where unknown."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "", []
    for line in lines:
        mark, _, sets = line.partition(":")
        if mark.strip() in _MARKS:
            return _MARKS[mark.strip()], sets.split()
    return "", []
