"""Logs of gpt-fast and of what is written like it (torchao's ``generate.py``, litgpt), read.

``Time for inference 1: 2.03 sec total, 98.5 tokens/sec``, one line for each sample, with
``Bandwidth achieved: 200.1 GB/s`` and, at the end, ``Memory used: 13.9 GB``. The time is that of a whole
generation, prompt included, and the rate that of one sequence, of which all of a batch are alike. A log does
not name its model: the name of the file does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchgauge.counted import counted
from torchgauge.errors import DataFileError
from torchgauge.results.interchange.imported_run import ImportedCase, Known, decoded, read_bytes, source_of
from torchgauge.results.interchange.peer_case import (
    BYTES,
    GENERATE,
    SECONDS,
    PeerCase,
    factor,
    positive,
    whole,
)
from torchgauge.results.interchange.upstream_names import Context

FORM = "gpt-fast-log"
TIME, RATE = "Time for inference", {"tokens/sec": 1.0, "tokens/s": 1.0}
RATES: Mapping[str, float] = {f"{unit}/s": size for unit, size in BYTES.items()}
_NUMBER = r"([-+.\d]+(?:e[-+]?\d+)?)"
_TIME = re.compile(rf"{TIME}(?: \d+)?:.*?{_NUMBER} (\S+) total,? +{_NUMBER} ([^\s.]+)\.?")
_VALUE = re.compile(r"([-+.\d]\S*?|nan|inf)\s*([A-Za-z]+(?:/s)?)[ .]*")
_SIZES = {"Batch Size": "batch", "Prompt Length": "prompt", "Generated tokens": "output"}
_NO_COUNTER = "the log's counter is CUDA's, and it read 0"
_LINES = (
    ("Bandwidth achieved", "decode_bandwidth", RATES, "model bytes x tokens by second, prompt included"),
    ("Memory used", "peak_memory", BYTES, "memory that the allocator had reserved"),
    ("Compilation time", "compile_cold", SECONDS, "first generation; the cache may have been filled"),
    ("Time to first token", "first_token_time", SECONDS, "time to first token"),
)


def read_gpt_fast_log(paths: Sequence[Path], given: Context, known: Known) -> list[ImportedCase]:
    """The case of each log; raises :class:`DataFileError` with the file and the line."""
    return [_read(path, given, known) for path in paths]


def _read(path: Path, given: Context, known: Known) -> ImportedCase:
    data = read_bytes(path)
    found: dict[str, list[float]] = {}
    said: dict[str, str] = {}
    sizes: dict[str, int] = {}
    no_counter = False
    for number, raw in enumerate(decoded(path, data).splitlines(), 1):
        line, place = raw.strip().lstrip("# "), f"line {number}"
        name, _, text = (part.strip() for part in line.partition(":"))
        if line.startswith(TIME):
            seconds, rate = _times(path, number, line)
            found.setdefault("latency", []).append(seconds)
            found.setdefault("throughput", []).append(rate)
        if name in _SIZES:
            sizes[_SIZES[name]] = whole(path, place, _number(text, int))
        for start, metric, units, words in _LINES:
            if name == start:
                value, scale = _value(path, place, text, units)
                if metric == "peak_memory" and value == 0:
                    no_counter = True
                    continue
                found.setdefault(metric, []).append(positive(path, place, value, scale))
                said[metric] = f"{start}: {words}"
    if "latency" not in found:
        raise DataFileError(
            str(path),
            f"no line says {TIME!r}",
            hint="is it the log of a run that came to its end? --format says which format a file has",
        )
    batch = sizes.pop("batch", None)
    case = PeerCase(
        path,
        f"{counted(len(found['latency']), 'sample')}",
        path.stem,
        Context("gpt-fast", GENERATE, "", "", "inductor" if "compile_cold" in found else ""),
        batch,
        tuple(sorted(sizes.items())),
    )
    if batch is not None:
        found["throughput"] = [batch * each for each in found["throughput"]]
        said["throughput"] = f"tokens/sec of one sequence, times {batch}; prompt included in the time"
    for metric, values in found.items():
        case.take(metric, values, said.get(metric, f"{TIME}: a whole generation"))
    if no_counter:
        case.leave_out("peak_memory", _NO_COUNTER)
    return case.made(source_of(path, FORM, data), given, known)


def _times(path: Path, number: int, line: str) -> tuple[float, float]:
    match = _TIME.match(line)
    if match is None:
        raise DataFileError(
            str(path), f"{line[:80]!r} has no time and rate", line=number,
            hint=f"{TIME} 1: 2.03 sec total, 98.5 tokens/sec",
        )  # fmt: skip
    place = f"line {number}"
    seconds = positive(path, place, _number(match[1]), factor(path, place, match[2], SECONDS))
    return seconds, positive(path, place, _number(match[3]), factor(path, place, match[4], RATE))


def _value(path: Path, place: str, text: str, units: Mapping[str, float]) -> tuple[object, float]:
    match = _VALUE.fullmatch(text)
    if match is None:
        raise DataFileError(
            str(path), f"{text[:40]!r} is not a number with a unit", field=place,
            hint=f"one of: {', '.join(units)}",
        )  # fmt: skip
    return _number(match[1]), factor(path, place, match[2], units)


def _number(text: str, kind: type[int | float] = float) -> object:
    try:
        return kind(text)
    except ValueError:
        return text
