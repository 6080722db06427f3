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
from torchgauge.results.interchange.peer_case import GENERATE, PeerCase, positive
from torchgauge.results.interchange.upstream_names import Context

FORM = "inferencex-json"
NEEDED = ("hw", "tp", "conc", "model", "framework", "precision")
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
        raise DataFileError(str(path), "is no object", field=place, hint="a file of process_result.py")
    if missing := [name for name in NEEDED if point.get(name) in (None, "")]:
        raw = any(str(name).endswith("_ms") for name in point)
        hint = "a file of the serving benchmark itself has milliseconds and no device: import agg_*.json"
        raise DataFileError(
            str(path), f"does not say {', '.join(missing)}", field=place,
            hint=hint if raw else "a file of process_result.py says all of them",
        )  # fmt: skip
    workers, batch = (_whole(path, f"{place}: {name}", point[name]) for name in ("tp", "conc"))
    lengths = [("output", point.get("osl")), ("prompt", point.get("isl"))]
    words = [str(point["framework"]), f"tp{workers}"]
    words += [f"ep{point['ep']}"] if point.get("ep") not in (None, 0, 1) else []
    words += ["dp-attention"] if str(point.get("dp_attention")).lower() == "true" else []
    words += (
        ["mtp"] if str(point.get("mtp") or point.get("spec_decoding") or "off") not in ("off", "none") else []
    )
    case = PeerCase(
        path,
        place,
        str(point["model"]),
        Context(FORM.partition("-")[0], GENERATE, str(point["precision"]), str(point["hw"]), "-".join(words)),
        batch,
        tuple((name, value) for name, value in lengths if isinstance(value, int)),
    )
    for name, metric in _TIMES.items():
        if name in point:
            said = f"{name} of InferenceX, {batch} requests at once"
            case.take(metric, [positive(path, f"{place}: {name}", point[name])], said)
    if "output_tput_per_gpu" in point:
        rate = positive(path, f"{place}: output_tput_per_gpu", point["output_tput_per_gpu"]) * workers
        case.take("throughput", [rate], f"output_tput_per_gpu of InferenceX, times {workers}")
    kept = (name for name in point if name not in (*NEEDED, *_TIMES, "output_tput_per_gpu", "isl", "osl"))
    case.facts.update({f"inferencex_{name}": point[name] for name in kept if _is_scalar(point[name])})
    return case


def _whole(path: Path, place: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise DataFileError(
        str(path), f"{value!r} is no whole number above 0", field=place, hint="as upstream writes"
    )


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool))
