"""What a file of expectations should say, given what runs saw: new entries, entries to remove or to look at.

The rule:

- A case counts where its newest rows, as many as are asked for, agree and none is flaky. Rows with ``infra``,
  ``not_run`` and ``skipped`` are passed over. Any other case changes nothing.
- A case that counts, failed, and is not expected to fail so, by this cause, gets an entry of its own: as
  narrow as the file's words allow, before the entry that selected it until now.
- An entry stands as long as any case that it selects ends as it says, or does not count. An entry of which no
  case has a row, or that declares a skip, stands too.
- An entry without a cause gets the cause of the rows with its status, if they have exactly one and a case
  counts. If a case had an earlier cause, the entry refers to the earlier cause.
- Else, an entry that names one case exactly is removed. One with patterns or fewer fields may be about cases
  that nobody ran, so it is marked with a comment, and removed only when asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.records import ATTEMPTED, RANDOM_WEIGHTS, Case, Expectation, Status, Workload
from torchgauge.results.hostile_text import first_line
from torchgauge.results.triage.case_evidence import CaseEvidence
from torchgauge.results.triage.clusters import key_of, title_of
from torchgauge.suites.document import parse_document
from torchgauge.suites.expectation_file import Edits, ExpectationFile, NewEntry
from torchgauge.suites.expectations import (
    SELECTORS,
    ExpectationFields,
    ExpectationTable,
    bundled_file,
    expectation_for,
    expectations_of,
)
from torchgauge.suites.pattern import matches

FIELDS = ("suite", "model", "mode", "dtype", "configuration")
"""Selectors that together name a case, whatever its batch and device index."""

_WILD = re.compile(r"[*?]")
_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLACEHOLDER = "https://link.is.missing"
_REASON_LIMIT = 200


@dataclass(frozen=True)
class Ask:
    """What the person said: a link for all or by cluster, today's date, and whether to remove patterns."""

    date: str
    link: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    prune: bool = False


@dataclass(frozen=True)
class Unlinked:
    """A cluster whose new entries have no link yet."""

    cluster: str
    title: str
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Proposal:
    """The file as it is and as it should be, and what a person should know of the difference.

    ``recorded`` counts entries that get a cause. ``notes`` are sentences on cases that count for nothing, on
    those that no entry can name, and on causes that changed or differ.
    """

    file: ExpectationFile
    text: str
    added: int
    removed: int
    marked: int
    recorded: int = 0
    unlinked: tuple[Unlinked, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the text differs."""
        return self.text != self.file.text


@dataclass
class _Seen:
    """What the cases are that one entry selects first."""

    standing: list[CaseEvidence] = field(default_factory=list)
    passing: list[CaseEvidence] = field(default_factory=list)
    otherwise: list[CaseEvidence] = field(default_factory=list)
    undecided: list[CaseEvidence] = field(default_factory=list)


def proposal(file: ExpectationFile, cases: Sequence[CaseEvidence], ask: Ask) -> Proposal:
    """What ``file`` should say of its device after ``cases``.

    Raises :class:`UsageError` where the text that comes out would not say what it should.
    """
    cases = [each for each in cases if each.case.device.name == file.table.device]
    seen: dict[int, _Seen] = {}
    failing: list[tuple[int | None, CaseEvidence]] = []
    for each in cases:
        place = file.table.place_of(each.case)
        if place is not None:
            if file.table.entries[place].status is Status.SKIPPED:
                continue  # it never runs: older rows are no reason to expect anything else
            _sort(seen.setdefault(place, _Seen()), file.table.entries[place], each)
        if each.status is not None and not each.skipped and _needs_entry(file, place, each):
            failing.append((place, each))
    edits, unlinked, unnamed = _new_entries(file, cases, failing, ask)
    removed, marks = _old_entries(file.table, seen, ask)
    causes, mixed_notes = _missing_causes(file.table, seen)
    edits = Edits(removed, marks, causes, edits.before, edits.appended, frozenset(seen))
    change = removed or marks or causes or edits.new or _has_marks(file, edits)
    text = file.edited(edits) if change else file.text
    _check(file, text, cases, {each.case.id for each in unnamed})
    cause_notes = [_cause_note(file.table.entries[at], each) for at, each in failing if at is not None]
    notes = (*_notes(cases, unnamed), *filter(None, cause_notes), *mixed_notes)
    return Proposal(file, text, len(edits.new), len(removed), len(marks), len(causes), unlinked, notes)


def with_placeholders(text: str) -> str:
    """``text`` with a link where one is still missing, so that the strict reader can judge the rest."""
    return re.sub(r"(?m)^( *link: )MISSING(?=\r?$)", rf"\g<1>{_PLACEHOLDER}", text)


def exact(entry: ExpectationFields) -> bool:
    """Whether ``entry`` names one case, up to its batch and the device's index."""
    named = [getattr(entry, name) for name in SELECTORS]
    if any(value is not None and _WILD.search(value) for value in named):
        return False
    return entry.case is not None or all(getattr(entry, name) is not None for name in FIELDS)


def _sort(seen: _Seen, entry: ExpectationFields, each: CaseEvidence) -> None:
    if each.status is None or each.skipped:
        seen.undecided.append(each)
    elif _is_said(each, entry.status, entry.cause):
        seen.standing.append(each)
    elif each.status is Status.PASS:
        seen.passing.append(each)
    else:
        seen.otherwise.append(each)


def _needs_entry(file: ExpectationFile, place: int | None, each: CaseEvidence) -> bool:
    """Whether the case fails, or does not run, against what is said of it now."""
    assert each.status is not None
    if each.status is Status.PASS:
        return False
    if place is not None:
        entry = file.table.entries[place]
        return not _is_said(each, entry.status, entry.cause)
    if file.path != bundled_file(file.table.device):
        known = expectation_for(each.case)
        if known is not None and _is_said(each, known.status, known.cause):
            return False  # another file says so already
    return each.status in ATTEMPTED


def _is_said(each: CaseEvidence, status: Status, cause: str | None) -> bool:
    """Return whether the case ends with ``status`` and ``cause``.

    An empty ``cause`` matches unless the newest cause is new.
    """
    if each.status is not status or not each.causes:
        return each.status is status
    new = each.causes[-1]
    return matches(cause, new) if cause else each.causes.count(new) > 1 or len(each.causes) < 2


def _missing_causes(table: ExpectationTable, seen: Mapping[int, _Seen]) -> tuple[dict[int, str], list[str]]:
    """Return causes for entries without a cause, and notes on entries whose rows have several causes."""
    causes: dict[int, str] = {}
    notes: list[str] = []
    for place, found in seen.items():
        entry = table.entries[place]
        alike = (*found.standing, *found.undecided)
        rows = [each for each in alike if each.row["status"] == entry.status.value]
        names = dict.fromkeys(cause for each in rows for cause in each.causes)
        if entry.cause is None and len(names) > 1:
            problem = (
                f"no cause is given, and the rows have {counted(len(names), 'cause')}: {'; '.join(names)}"
            )
            hint = "try: split the entry by `case`, or write `cause` by hand"
            chosen = [f"{name} {value}" for name in SELECTORS if (value := getattr(entry, name)) is not None]
            notes.append(f"{first_line(', '.join(chosen))}: {problem}; {hint}")
        elif entry.cause is None and names and found.standing:
            causes[place] = _in_yaml(*names)
    return causes, notes


def _cause_note(entry: ExpectationFields, each: CaseEvidence) -> str:
    """Return a note on the changed cause of a case of ``entry``; empty where its status changed too."""
    if each.status is not entry.status:
        return ""
    old = entry.cause or each.causes[-2]
    dropped = f"the new entry has neither the old reason nor the old link ({entry.link})"
    return f"{first_line(each.case.id)}: the cause changed from {old} to {each.causes[-1]}: {dropped}"


def _new_entries(
    file: ExpectationFile,
    cases: Sequence[CaseEvidence],
    failing: Sequence[tuple[int | None, CaseEvidence]],
    ask: Ask,
) -> tuple[Edits, tuple[Unlinked, ...], list[CaseEvidence]]:
    """Entries for ``failing``, those that lack a link, and cases that no entry can name."""
    before: dict[int, list[NewEntry]] = {}
    appended: list[NewEntry] = []
    unlinked: dict[str, Unlinked] = {}
    unnamed: list[CaseEvidence] = []
    written: set[tuple[tuple[str, str], ...]] = set()
    for place, each in failing:
        selectors = _selectors(file.table, place, each, cases)
        if selectors is None:
            unnamed.append(each)
            continue
        if selectors in written:
            continue
        written.add(selectors)
        assert each.status is not None
        cluster = key_of(each.row)
        link = ask.links.get(cluster.id, ask.link)
        if not link:
            known = unlinked.get(cluster.id, Unlinked(cluster.id, title_of(each.row, cluster), ()))
            unlinked[cluster.id] = Unlinked(known.cluster, known.title, (*known.cases, each.case.id))
        entry = NewEntry(each.status, selectors, reason_of(each), link, ask.date, _in_yaml(each.causes[-1]))
        (appended if place is None else before.setdefault(place, [])).append(entry)
    return Edits(before=before, appended=appended), tuple(unlinked.values()), unnamed


def reason_of(each: CaseEvidence) -> str:
    """Why the case ends so: the first line of what its newest row says, in one line of visible text."""
    row = each.row
    said = first_line(row["error_message"] or row["reason"] or row["accuracy_detail"] or "", _REASON_LIMIT)
    kind = row["error_type"] or ""
    if kind and kind != "crash":
        said = f"{first_line(kind)}: {said}"
    return _in_yaml(f"{said} (phase {row['phase']}, {counted(each.runs, 'run')} agreed)")


def _in_yaml(text: str) -> str:
    return " ".join(_NOT_YAML.sub("?", text).split())


def _selectors(
    table: ExpectationTable, place: int | None, each: CaseEvidence, cases: Sequence[CaseEvidence]
) -> tuple[tuple[str, str], ...] | None:
    """The fields of the case where they select no case that ends otherwise, else its id; None: no way."""
    case = each.case
    values = tuple(zip(FIELDS, _values(case), strict=True))
    if any(_WILD.search(value) or _NOT_YAML.search(value) for value in (case.id, *_values(case))):
        return None
    alike = [other for other in cases if _values(other.case) == _values(case)]
    end = each.status, each.causes[-1:], place
    same = all((other.status, other.causes[-1:], table.place_of(other.case)) == end for other in alike)
    return values if same and _ordinary(case.workload) else (("case", case.id),)


def _values(case: Case) -> tuple[str, ...]:
    workload = case.workload
    return workload.suite, workload.model, workload.mode, workload.dtype, case.configuration.name


def _ordinary(workload: Workload) -> bool:
    """Whether the fields of an entry say all that is special about the workload."""
    return (workload.size, workload.seed, workload.weights) == ("small", Workload.seed, RANDOM_WEIGHTS)


def _old_entries(
    table: ExpectationTable, seen: Mapping[int, _Seen], ask: Ask
) -> tuple[frozenset[int], dict[int, str]]:
    """Which entries go, and what is said of those that a person should look at."""
    removed: set[int] = set()
    marks: dict[int, str] = {}
    for place, found in seen.items():
        gone = [*found.passing, *found.otherwise]
        stands = len(found.standing) + len(found.undecided)
        if not gone:
            continue
        if not stands and (ask.prune or exact(table.entries[place])):
            removed.add(place)
        elif found.passing:
            passing, whole = len(found.passing), len(gone) + stands
            names = ", ".join(each.case.id for each in found.passing[:3])
            more = f" and {passing - 3} more" if passing > 3 else ""
            rest = "narrow this entry" if stands else "narrow or remove this entry"
            marks[place] = f"{ask.date}: {passing} of {whole} measured cases pass ({names}{more}): {rest}"
    return frozenset(removed), marks


def _has_marks(file: ExpectationFile, edits: Edits) -> bool:
    """Whether marks of an earlier update have to go."""
    return bool(edits.looked_at) and file.edited(edits) != file.text


def _check(file: ExpectationFile, text: str, cases: Sequence[CaseEvidence], unnamed: set[str]) -> None:
    """Raise where ``text`` does not say of each case what it should: of cases that do not count, the same."""
    table = expectations_of(parse_document(with_placeholders(text), str(file.path)))
    for each in cases:
        old, new = (which.expectation_for(each.case) for which in (file.table, table))
        wrong = each.status is None and _without_cause(old) != _without_cause(new)
        if each.status is not None and each.status is not Status.PASS and new is not None:
            kept = each.case.id in unnamed or each.skipped or new.status is Status.SKIPPED
            wrong = not _is_said(each, new.status, new.cause) and not kept
        if wrong:
            raise UsageError(
                f"{file.path} cannot be rewritten: it would contradict the measured status of {each.case.id}",
                hint="edit the entries that select this case by hand; torchgauge validate checks the file",
            )


def _without_cause(expectation: Expectation | None) -> Expectation | None:
    return expectation and replace(expectation, cause="")


def _notes(cases: Sequence[CaseEvidence], unnamed: Sequence[CaseEvidence]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for each in cases:
        if each.undecided and each.row["status"] != Status.PASS.value:
            counts[each.undecided] = counts.get(each.undecided, 0) + 1
    notes = [
        f"{counted(number, 'case')} left as {'it is' if number == 1 else 'they are'}: {why}"
        for why, number in sorted(counts.items())
    ]
    notes += [f"{first_line(each.case.id)}: the case id contains a glob character" for each in unnamed]
    return tuple(notes)
