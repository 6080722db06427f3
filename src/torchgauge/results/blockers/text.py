"""Rankings for terminals, CSV, JSON and Markdown. Names and errors of a store are nobody's: none may act."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from torchgauge.results import units
from torchgauge.results.blockers.prediction import Accuracy, Forecast, Share
from torchgauge.results.blockers.ranking import Blockers, ModelLine, RankedStep
from torchgauge.results.blockers.verdicts import Standing
from torchgauge.results.hostile_text import csv_cell
from torchgauge.results.reports.markdown_text import code, one_line, table

SHOWN = 8
SHOWN_AGE_S = 3600.0
"""What is younger belongs to one sitting; machine forms have every age."""
CSV_HEADER = (
    "device",
    "dtype",
    "path",
    "kind",
    "rank",
    "subject",
    "count",
    "status",
    "forecast",
    "models",
    "reason",
    "age_s",
)


def lines_of(found: Blockers) -> list[str]:
    """The ranking as a person reads it on a terminal."""
    lines = [f"{_plain(found.device)} in {_plain(found.dtype)}, {found.path}:", *_evidence_lines(found)]
    if not found.steps:
        lines.append("  no operator stands between a model and the device, as far as is known")
    for number, step in enumerate(found.steps, 1):
        lines.append(f"  {number}. {_sentence(step, found.dtype, _standings(found))}")
    alone = [line for line in found.operators if line.in_all or line.perhaps]
    if alone:
        lines.append("  operators by the models that they block (alone / in all):")
        for operator in alone:
            age = _age(operator.age_s)
            lines.append(
                f"    {len(operator.alone):>4} / {len(operator.in_all):<4} {_plain(operator.operator)}: "
                f"{operator.standing.value}, {_plain(operator.because)}{age}"
            )
    if found.clusters:
        total = sum(len(cluster.models) for cluster in found.clusters)
        lines.append(f"  {total} failures that no operator explains, by what they have in common:")
        for cluster in found.clusters:
            also = f"; lacks {', '.join(cluster.also_lacks)} besides" if cluster.also_lacks else ""
            lines.append(
                f"    {len(cluster.models):>4} x {cluster.status} {_plain(cluster.fingerprint)}: "
                f"{_plain(cluster.reason)}{_plain(also)}  [{_listed(cluster.models)}]"
            )
    lines += _never_lines(found)
    lines.append(f"  {accuracy_sentence(found.accuracy)}")
    lines += [f"  note: {_plain(remark)}" for remark in found.remarks]
    return lines


def accuracy_sentence(accuracy: Accuracy) -> str:
    """How good the predictions are on models that were run, each predicted without its own rows."""
    if not accuracy.n:
        return "predictions: not measured, no model of this kind was run on the device"
    return (
        f"predictions on {accuracy.n} that were run: precision {_share(accuracy.precision)}, "
        f"recall {_share(accuracy.recall)} of `blocked`; {_share(accuracy.base_rate)} did not run; "
        f"{accuracy.unknown} unknown"
    )


def as_plain(found: Blockers) -> dict[str, Any]:
    """The whole ranking as JSON values, nothing left out."""
    shares = ("precision", "recall", "base_rate")
    accuracy = {
        **asdict(found.accuracy),
        "n": found.accuracy.n,
        **{name: _share_plain(getattr(found.accuracy, name)) for name in shares},
    }
    return {**_values(asdict(found)), "accuracy": accuracy}


def csv_of(rankings: Iterable[Blockers]) -> str:
    """One line per step, operator, cluster and model; ``kind`` says which."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for found in rankings:
        where = (found.device, found.dtype, found.path)
        for row in _csv_rows(found):
            writer.writerow([csv_cell(cell) for cell in (*where, *row)])
    return text.getvalue()


def markdown_of(rankings: Sequence[Blockers]) -> str:
    """All rankings as one Markdown document."""
    return "\n".join(line for found in rankings for line in (*_markdown(found), ""))


def _markdown(found: Blockers) -> list[str]:
    lines = [f"## What to implement next on {code(found.device)} in {code(found.dtype)}, {found.path}", ""]
    lines += [f"{line.strip()}." for line in _evidence_lines(found)]
    lines += [f"{accuracy_sentence(found.accuracy).capitalize()}.", ""]
    steps = [
        [
            str(number),
            ", ".join(map(code, step.operators)),
            str(_models(step.unblocks)),
            str(_models(step.fixes)),
            str(_models(step.perhaps)),
            ", ".join(map(code, _titles((*step.unblocks, *step.fixes, *step.perhaps)))),
        ]
        for number, step in enumerate(found.steps, 1)
    ]
    if steps:
        lines += [*table(["step", "operators", "unblocks", "fixes", "perhaps", "models"], steps), ""]
    else:
        lines += ["No operator stands between a model and the device, as far as is known.", ""]
    operators = [
        [
            code(each.operator),
            each.standing.value,
            str(len(each.alone)),
            str(len(each.in_all)),
            str(len(each.fixes)),
            str(len(each.perhaps)),
            code(each.because),
            _age(each.age_s).strip(" ()"),
        ]
        for each in found.operators
    ]
    if operators:
        header = [
            "operator",
            "standing",
            "blocks alone",
            "blocks in all",
            "fixes",
            "perhaps",
            "because",
            "age",
        ]
        lines += ["### Operators", "", *table(header, operators), ""]
    clusters = [
        [str(len(c.models)), c.status, code(c.fingerprint), code(c.reason), ", ".join(map(code, c.models))]
        for c in found.clusters
    ]
    if clusters:
        lines += ["### Failures that no operator explains", ""]
        lines += [*table(["count", "status", "fingerprint", "reason", "models"], clusters), ""]
    never = [
        [code(line.name), line.forecast.value, code(line.forecast_reason)]
        for line in found.never_run
        if line.forecast is not Forecast.RUNS
    ]
    good = [line.name for line in found.never_run if line.forecast is Forecast.RUNS]
    if never or good:
        lines += [
            "### Never run here",
            "",
            f"{len(good)} will run: {', '.join(map(code, good)) or 'none'}.",
            "",
        ]
    if never:
        lines += [*table(["model", "forecast", "reason"], never), ""]
    lines += [f"- {code(remark, 400)}" for remark in found.remarks]
    return lines


def _csv_rows(found: Blockers) -> Iterable[tuple[object, ...]]:
    for number, step in enumerate(found.steps, 1):
        models = (*step.unblocks, *step.fixes, *step.perhaps)
        names = " ".join(step.operators)
        counts = {"unblocks": step.unblocks, "fixes": step.fixes, "perhaps": step.perhaps}
        kinds = ", ".join(f"{kind} {len(found)}" for kind, found in counts.items() if found)
        yield ("step", number, names, len(models), "", "", " ".join(models), kinds, None)
    for number, each in enumerate(found.operators, 1):
        models = (*each.in_all, *each.fixes, *each.perhaps)
        status = each.standing.value
        yield (
            "operator",
            number,
            each.operator,
            len(models),
            status,
            "",
            " ".join(models),
            each.because,
            each.age_s,
        )
    for number, cluster in enumerate(found.clusters, 1):
        count, models = len(cluster.models), cluster.models
        yield (
            "cluster",
            number,
            cluster.fingerprint,
            count,
            cluster.status,
            "",
            " ".join(models),
            cluster.reason,
            None,
        )
    for line in found.models:
        reason = line.reason if line.status else line.forecast_reason
        yield (
            "model",
            None,
            line.name,
            len(line.lacks),
            line.status,
            line.forecast.value,
            " ".join(line.lacks),
            reason,
            line.age_s,
        )


def _sentence(step: RankedStep, dtype: str, standings: dict[str, Standing]) -> str:
    wrong = all(standings.get(name) is Standing.INACCURATE for name in step.operators)
    parts = []
    if step.unblocks:
        predicted = _models(step.unblocks) - _models(step.observed)
        seen = f", {predicted} of them predicted" if predicted else ""
        parts.append(f"unblocks {_counted(_models(step.unblocks), 'model')}{seen} ({_listed(step.unblocks)})")
    if step.fixes:
        parts.append(f"fixes {_counted(_models(step.fixes), 'accuracy failure')} ({_listed(step.fixes)})")
    if step.perhaps:
        found = f"{_counted(_models(step.perhaps), 'model')} that failed otherwise ({_listed(step.perhaps)})"
        parts.append(f"perhaps helps {found}")
    verb = "correcting" if wrong else "implementing"
    return f"{verb} {_plain(' and '.join(step.operators))} for {_plain(dtype)} {', '.join(parts)}"


def _standings(found: Blockers) -> dict[str, Standing]:
    return {each.operator: each.standing for each in found.operators}


def _evidence_lines(found: Blockers) -> list[str]:
    run = [line for line in found.models if line.status]
    failing = sum(line.status != "pass" for line in run)
    old = sum(line.age_s > 0 for line in run)
    aged = f", {old} rows older than the newest run" if old else ""
    rows = f"{found.judged_rows} rows of the operator matrix{_age(found.judged_age_s)}"
    models = f"{len(run)} models were run, of which {failing} did not pass{aged}"
    return [f"  {rows}; {models}; {len(found.never_run)} were never run"]


def _never_lines(found: Blockers) -> list[str]:
    never = found.never_run
    if not never:
        return []
    lines = [f"  {len(never)} never run here:"]
    for forecast in Forecast:
        members = [line for line in never if line.forecast is forecast]
        if members:
            lines.append(f"    {len(members):>4} {forecast.value}: {_listed([m.name for m in members])}")
        if forecast is not Forecast.RUNS:
            lines += [f"         {_plain(m.name)}: {_plain(_why(m))}" for m in members[:SHOWN]]
            if len(members) > SHOWN:
                lines.append(f"         ... and {len(members) - SHOWN} more (--json has them all)")
    return lines


def _why(line: ModelLine) -> str:
    if line.forecast is Forecast.BLOCKED:
        return f"blocked by {', '.join(line.lacks)}"
    return line.forecast_reason


def _titles(names: Iterable[str]) -> list[str]:
    """``suite/model (inference, training)`` for names with modes."""
    modes: dict[str, list[str]] = {}
    for name in names:
        title, _, mode = name.rpartition(":")
        modes.setdefault(title, []).append(mode)
    return [f"{title} ({', '.join(sorted(set(found)))})" for title, found in sorted(modes.items())]


def _models(names: Iterable[str]) -> int:
    """Number of models, whatever the mode."""
    return len({name.rpartition(":")[0] for name in names})


def _listed(names: Iterable[str]) -> str:
    titles = [_plain(title) for title in _titles(names)]
    more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
    return ", ".join(titles[:SHOWN]) + more


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _age(seconds: float) -> str:
    return f" ({units.age(seconds)} older than the newest run)" if seconds >= SHOWN_AGE_S else ""


def _share(share: Share) -> str:
    if share.interval is None or share.value is None:
        return "none (0 of 0)"
    low, high = share.interval
    return f"{share.value:.3f} [{low:.3f}, {high:.3f}] ({share.hits} of {share.n})"


def _share_plain(share: Share) -> dict[str, Any]:
    low, high = share.interval or (None, None)
    return {"value": share.value, "low": low, "high": high, "hits": share.hits, "n": share.n}


def _plain(text: str) -> str:
    return one_line(text, 240)


def _values(value: Any) -> Any:
    """``value`` with enums as their values, for JSON."""
    if isinstance(value, dict):
        return {key: _values(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_values(each) for each in value]
    return value.value if hasattr(value, "value") else value
