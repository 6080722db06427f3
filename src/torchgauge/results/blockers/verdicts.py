"""What the evidence says of each operator that a model needs: runs, missing, fails, inaccurate, unjudged.

The matrix judges entries of PyTorch's operator database, and an entry dispatches several aten operators. The
rule, strongest first:

1. A failure that names an operator (``Could not run 'aten::x'``) is about that operator, whatever else the
   entry dispatches: missing. Overloads of one base name are one operator here. A pass in a newer run, or of
   the entry that is named after the operator, overrules it.
2. An entry that passes clears all operators that it dispatches. They run, and are inaccurate only where the
   entry that is named after them fails accuracy.
3. An entry that fails without a name is charged to those of its operators that no passing entry clears; if
   one of them gave the entry its name, to that one alone (the elimination of spectrum-based fault
   localisation, Jones and Harrold 2005).
4. Where no entry speaks: a passing model that has the operator clears it; else the static census decides;
   else the operator is unjudged.

Rows of the asked dtype are preferred; rows of other dtypes stand in where there are none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from torchgauge.records import Status
from torchgauge.results.blockers.evidence import Evidence, ModelRow, OperatorRow
from torchgauge.suites.census.record import base_name
from torchgauge.suites.ops.census_static import MISSING as STATIC_MISSING
from torchgauge.suites.ops.upstream import BACKWARD

BROKEN = frozenset({Status.ERROR, Status.CRASH, Status.TIMEOUT, Status.OOM})


class OperatorState(str, Enum):
    """What is known of an operator on a device."""

    RUNS = "runs"
    MISSING = "missing"
    FAILS = "fails"
    INACCURATE = "inaccurate"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class OperatorVerdict:
    """What is known of one operator in one dtype, why, and how old the oldest evidence is in seconds.

    ``blocker`` is the base name of what has to be implemented or corrected: the operator, or a part of it.
    ``errors`` are those of the failures that speak against it. ``by_dispatcher`` says that only the static
    census speaks.
    """

    operator: str
    dtype: str
    state: OperatorState
    because: str
    blocker: str = ""
    errors: frozenset[str] = frozenset()
    statuses: frozenset[Status] = frozenset()
    age_s: float = 0.0
    by_dispatcher: bool = False

    @property
    def blocks(self) -> bool:
        """Whether a model that needs the operator cannot run."""
        return self.state in (OperatorState.MISSING, OperatorState.FAILS)


@dataclass(frozen=True)
class _Named:
    """A failure that named an operator: in which entry or model, when, and with what error."""

    source: str
    model: str
    at: float
    age_s: float
    error: str


@dataclass
class Judge:
    """Verdicts on operators from one device's evidence.

    ``opinfo`` maps an aten overload to the entries that dispatch it; ``needs`` gives the pairs of operator
    and dtype of a model that passed, which clears them.
    """

    evidence: Evidence
    opinfo: Mapping[str, frozenset[str]]
    cleared_by_models: Mapping[str, tuple[ModelRow, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rows: dict[str, dict[str, list[OperatorRow]]] = defaultdict(lambda: defaultdict(list))
        for row in self.evidence.operators:
            self._rows[row.entry][row.dtype].append(row)
        self._dispatched: dict[str, set[str]] = defaultdict(set)
        by_base: dict[str, set[str]] = defaultdict(set)
        for operator, entries in self.opinfo.items():
            by_base[base_name(operator)] |= entries
            for entry in entries:
                self._dispatched[entry].add(operator)
        self._of_base = {base: frozenset(entries) for base, entries in by_base.items()}
        self._named: dict[str, list[_Named]] = defaultdict(list)
        for row in self.evidence.operators:
            if row.missing:
                source = f"{row.entry} ({row.variant}, {row.dtype})"
                self._named[row.missing].append(_Named(source, "", row.at, row.age_s, row.error))
        for model in self.evidence.models:
            if model.missing:
                name = f"{model.suite}/{model.model}"
                self._named[model.missing].append(_Named(name, name, model.at, model.age_s, model.error))
        self._told = {(each.model, base) for base, found in self._named.items() for each in found}
        self._told |= {(_name(row), op) for op, rows in self.cleared_by_models.items() for row in rows}
        self._kept: dict[tuple[str, str, str], OperatorVerdict] = {}
        self._rows_kept: dict[tuple[str, str], list[OperatorRow]] = {}
        self._entry_kept: dict[tuple[str, str], OperatorVerdict | None] = {}

    def of(self, operator: str, dtype: str, without: str = "") -> OperatorVerdict:
        """The verdict on an aten overload in ``dtype``, ``without`` the rows of one (suite/model)."""
        # without it unless rows of the model take part in the verdict at all
        takes_part = (without, base_name(operator)) in self._told or (without, operator) in self._told
        key = (operator, dtype, without if takes_part else "")
        if key not in self._kept:
            self._kept[key] = self._judged(*key)
        return self._kept[key]

    def _judged(self, operator: str, dtype: str, without: str) -> OperatorVerdict:
        base = base_name(operator)
        named = self._still_named(operator, dtype, without)
        if named:
            first = min(named, key=lambda each: (each.model, each.source))
            more = f" and {len(named) - 1} more" if len(named) > 1 else ""
            return OperatorVerdict(
                operator,
                dtype,
                OperatorState.MISSING,
                f"named in the error of {first.source}{more}",
                base,
                frozenset(each.error for each in named),
                frozenset({Status.ERROR}),
                min(each.age_s for each in named),
            )
        key = (operator, dtype)
        if key not in self._entry_kept:
            self._entry_kept[key] = self._asked_of_entries(operator, dtype)
        by_entries = self._entry_kept[key]
        if by_entries is not None:
            return by_entries
        models = [row for row in self.cleared_by_models.get(operator, ()) if _name(row) != without]
        if models:
            return OperatorVerdict(operator, dtype, OperatorState.RUNS, f"{_name(models[0])} passes with it")
        kinds = self.evidence.static
        kind = None if kinds is None else kinds.get(operator, kinds.get(f"{operator}.default"))
        if kind == STATIC_MISSING:
            why = "the dispatcher has no kernel"
            return OperatorVerdict(operator, dtype, OperatorState.MISSING, why, base, by_dispatcher=True)
        if kind is not None:
            why = f"not judged; the dispatcher reports {kind}"
            return OperatorVerdict(operator, dtype, OperatorState.RUNS, why, by_dispatcher=True)
        why = "the operator matrix has no row of this operator"
        why += (
            ", and no static census was recorded" if kinds is None else ", and neither has the static census"
        )
        return OperatorVerdict(operator, dtype, OperatorState.UNJUDGED, why)

    def _still_named(self, operator: str, dtype: str, without: str) -> list[_Named]:
        """Failures that name the operator and that nothing overrules."""
        base = base_name(operator)
        named = [each for each in self._named.get(base, ()) if not each.model or each.model != without]
        if not named:
            return []
        newest = max(each.at for each in named)
        passes = [row for row in self._speaking(operator, dtype) if row.status is Status.PASS]
        models = [row for row in self.cleared_by_models.get(operator, ()) if _name(row) != without]
        if any(row.at > newest for row in passes) or any(row.at > newest for row in models):
            return []
        own = any(_gave_name(row.entry, base) and row.variant != BACKWARD for row in passes)
        return [] if own else named

    def _asked_of_entries(self, operator: str, dtype: str) -> OperatorVerdict | None:
        rows, base = self._speaking(operator, dtype), base_name(operator)
        if not rows:
            return None
        wrong = [row for row in rows if row.status is Status.FAIL_ACCURACY]
        if any(row.status is Status.PASS for row in rows):
            own = [row for row in wrong if _gave_name(row.entry, base)]
            if own:
                return self._against(operator, dtype, OperatorState.INACCURATE, own)
            passed = [row for row in rows if row.status is Status.PASS]
            age = min(row.age_s for row in passed)
            return OperatorVerdict(
                operator, dtype, OperatorState.RUNS, f"{passed[0].entry} passes", "", age_s=age
            )
        hidden = [
            row
            for row in rows
            if row.missing and row.missing not in {base_name(each) for each in self._dispatched[row.entry]}
        ]
        for row in hidden:
            if self._charged(operator, row):
                verdict = self._against(operator, dtype, OperatorState.MISSING, [row])
                return replace(verdict, because=f"{row.entry} needs {row.missing}", blocker=row.missing)
        for state, found in (
            (OperatorState.FAILS, [row for row in rows if row.status in BROKEN and not row.missing]),
            (OperatorState.FAILS, [row for row in rows if row.status is Status.UNSUPPORTED]),
            (OperatorState.INACCURATE, wrong),
        ):
            charged = [row for row in found if self._charged(operator, row)]
            if charged:
                return self._against(operator, dtype, state, charged)
        return None

    def _against(
        self, operator: str, dtype: str, state: OperatorState, rows: list[OperatorRow]
    ) -> OperatorVerdict:
        first = rows[0]
        return OperatorVerdict(
            operator,
            dtype,
            state,
            f"{first.entry} ({first.variant}, {first.dtype}): {first.status.value}",
            base_name(operator),
            frozenset(row.error for row in rows if row.error),
            frozenset(row.status for row in rows),
            min(row.age_s for row in rows),
        )

    def _speaking(self, operator: str, dtype: str) -> list[OperatorRow]:
        """Rows of entries that dispatch the operator and say something, of ``dtype`` where there are any."""
        key = (operator, dtype)
        if key not in self._rows_kept:
            entries = self.opinfo.get(operator) or self._of_base.get(base_name(operator), frozenset())
            backward = "backward" in operator
            rows = [
                row
                for entry in sorted(entries)
                for of_dtype in self._rows.get(entry, {}).values()
                for row in of_dtype
                if _says_something(row) and (row.variant == BACKWARD or not backward)
            ]
            self._rows_kept[key] = [row for row in rows if row.dtype == dtype] or rows
        return self._rows_kept[key]

    def _charged(self, operator: str, row: OperatorRow) -> bool:
        """Whether the failure of ``row`` is charged to ``operator``: see the module's third rule."""
        suspects = {each for each in self._dispatched[row.entry] if not self._is_cleared(each, row.dtype)}
        names = {each for each in suspects if _gave_name(row.entry, base_name(each))}
        return operator in (names or suspects) or (
            operator not in self._dispatched[row.entry]
            and base_name(operator) in {base_name(each) for each in (names or suspects)}
        )

    def _is_cleared(self, operator: str, dtype: str) -> bool:
        return any(row.status is Status.PASS for row in self._speaking(operator, dtype))


def judge_of(
    evidence: Evidence,
    opinfo: Mapping[str, frozenset[str]],
    passed: Iterable[tuple[ModelRow, Collection[tuple[str, str]]]] = (),
) -> Judge:
    """A judge; ``passed`` are rows of models that passed with the pairs that they needed."""
    cleared: dict[str, list[ModelRow]] = defaultdict(list)
    for row, pairs in passed:
        for operator, _ in pairs:
            cleared[operator].append(row)
    return Judge(evidence, opinfo, {name: tuple(rows) for name, rows in cleared.items()})


def _name(row: ModelRow) -> str:
    return f"{row.suite}/{row.model}"


def _says_something(row: OperatorRow) -> bool:
    """A skip says nothing of the device; nor does a dtype that PyTorch itself does not list."""
    if row.status is Status.UNSUPPORTED:
        return bool(row.error)
    return row.status in BROKEN or row.status in (Status.PASS, Status.FAIL_ACCURACY)


def _gave_name(entry: str, base: str) -> bool:
    """Whether an entry such as ``nn.functional.gelu`` or ``linalg.norm`` is the one for the operator."""
    parts, name = entry.partition("#")[0].split("."), base.rpartition("::")[2]
    return name in parts or name == "_".join(parts[:2])
