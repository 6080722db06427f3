"""Results of InferenceX (InferenceMAX before), read: an object, or a list of them, for each point of a sweep.

Those are the files that its ``process_result.py`` writes: ``hw``, ``tp``, ``conc``, ``model``, ``framework``,
``precision``, and times in seconds (``median_ttft``, ``p99_itl``, ...). A server answers many requests at
once there: its times hold waiting, ours do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchgauge.errors import DataFileError
from torchgauge.results.interchange.imported_run import ImportedCase, Known, decoded, read_bytes, source_of
from torchgauge.results.interchange.json_text import read_values
from torchgauge.results.interchange.peer_case import GENERATE, PeerCase, positive, whole
from torchgauge.results.interchange.upstream_names import Context

FORM = "inferencex-json"
NEEDED = ("hw", "tp", "conc", "model", "framework", "precision")
POOLS = ("num_prefill_gpu", "num_decode_gpu")
RATE = "output_tput_per_gpu"
_TIMES: Mapping[str, str] = {
    "median_ttft": "first_token_time",
    "median_tpot": "output_token_time",
    "median_itl": "inter_token_p50",
    "p90_itl": "inter_token_p90",
    "p99_itl": "inter_token_p99",
    "median_e2el": "latency",
}


def read_inferencex_json(paths: Sequence[Path], given: Context, known: Known) -> list[ImportedCase]:
    """The cases of all files; raises :class:`DataFileError` with the file, the line and the key."""
    return [case for path in paths for case in _read(path, given, known)]


def _read(path: Path, given: Context, known: Known) -> list[ImportedCase]:
    data = read_bytes(path)
    source = source_of(path, FORM, data)
    points: list[tuple[str, Any]] = []
    for line, value in read_values(path, decoded(path, data)):
        several = value if isinstance(value, list) else [value]
        points += [(f"line {line}, point {number}", each) for number, each in enumerate(several, 1)]
    return [_case(path, place, each).made(source, given, known) for place, each in points]


def _case(path: Path, place: str, point: Any) -> PeerCase:
    if not isinstance(point, dict):
        raise DataFileError(str(path), "is not an object", field=place, hint="a file of process_result.py")
    apart = _is_apart(point)
    if missing := [name for name in NEEDED if point.get(name) in (None, "") and not (apart and name == "tp")]:
        raw = any(str(name).endswith("_ms") for name in point)
        hint = "a file of the serving benchmark itself has milliseconds and no device: import agg_*.json"
        raise DataFileError(
            str(path), f"does not say {', '.join(missing)}", field=place,
            hint=hint if raw else "a file of process_result.py says all of them",
        )  # fmt: skip
    names = ("tp", "conc", "ep", "isl", "osl", *POOLS)
    sizes = {
        name: whole(path, f"{place}: {name}", point[name])
        for name in names
        if point.get(name) is not None and (name, point[name]) != ("ep", 0)
    }
    batch, workers = sizes["conc"], sizes.get("tp", 1)
    words = [str(point["framework"])]
    words += [f"tp{workers}"] if "tp" in sizes else []
    words += [f"ep{sizes['ep']}"] if sizes.get("ep", 1) > 1 else []
    words += ["dp-attention"] if _is_true(point.get("dp_attention")) else []
    words += (
        ["mtp"] if str(point.get("mtp") or point.get("spec_decoding") or "off") not in ("off", "none") else []
    )
    words += [
        name
        for name, key in (("disagg", "disagg"), ("multinode", "is_multinode"))
        if _is_true(point.get(key))
    ]
    words += [f"{name.split('_')[1]}{sizes[name]}" for name in POOLS if name in sizes]
    case = PeerCase(
        path,
        place,
        str(point["model"]),
        Context(FORM.partition("-")[0], GENERATE, str(point["precision"]), str(point["hw"]), "-".join(words)),
        batch,
        tuple((name, sizes[key]) for name, key in (("output", "osl"), ("prompt", "isl")) if key in sizes),
    )
    for name, metric in _TIMES.items():
        if name in point:
            said = f"{name} of InferenceX, {batch} requests at once"
            case.take(metric, [positive(path, f"{place}: {name}", point[name])], said)
    if RATE in point:
        rate = positive(path, f"{place}: {RATE}", point[RATE], 1.0 if apart else workers)
        if apart:
            case.facts[f"inferencex_{RATE}"] = rate
            case.leave_out("throughput", f"{RATE} is of one device, and tp is not how many there were")
        else:
            case.take("throughput", [rate], f"{RATE} of InferenceX, times {workers}")
    kept = (name for name in point if name not in (*NEEDED, *_TIMES, RATE, "isl", "osl"))
    case.facts.update({f"inferencex_{name}": point[name] for name in kept if _is_scalar(point[name])})
    return case


def _is_apart(point: Mapping[str, Any]) -> bool:
    """Whether prompts and outputs, or several machines, have devices of their own: ``tp`` is not all."""
    return any(_is_true(point.get(name)) for name in ("disagg", "is_multinode")) or any(
        point.get(name) is not None for name in POOLS
    )


def _is_true(value: Any) -> bool:
    return str(value).lower() in ("true", "1")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool))
