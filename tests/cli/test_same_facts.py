"""``ab``, ``gate`` and ``ci gate`` end alike after the same facts, cell by cell of the table in the docs.

The processes that would measure are replaced by launches that are written down; plan, journal, judge, store,
report, set and all three commands are real.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

from stored_runs import launch

from torchgauge.cli.main import cli
from torchgauge.errors import TorchgaugeError
from torchgauge.harness.ab import comparison
from torchgauge.harness.ab.launch_hosts import LaunchHosts
from torchgauge.harness.ab.run_comparison import LaunchSeries
from torchgauge.records import Cause, Modifier, Status
from torchgauge.records.comparison import Launch, Pair
from torchgauge.results.comparing.gate_verdict import EXIT_CODES, GATE_VERDICTS, Headline

DOCS = Path(__file__).parents[2] / "docs" / "comparison.md"
MODELS = ("noop", "sum", "mlp", "convnet", "rnn")
FIRST = "noop"
CRASH = (Status.CRASH, Cause.SIGNAL)
ERROR = (Status.ERROR, None)
INFRA = (Status.INFRA, Cause.KILLED)
SKIPPED = (Status.SKIPPED, Cause.MISSING_DATA)
UNSUPPORTED = (Status.UNSUPPORTED, None)
PASS = (Status.PASS, None)
DEGRADED = (Status.PASS, Modifier.DEGRADED)


@dataclass(frozen=True)
class At:
    """Where a launch stands: the model, its number within the pair, whether it confirms and is A/A."""

    model: str
    number: int
    confirms: bool
    control: bool

    @property
    def first(self) -> bool:
        return self.model == FIRST


Said = float | tuple[tuple[Status, Cause | Modifier | None], tuple[Status, Cause | Modifier | None]]
"""What a launch found: a log ratio, or how base and head ended."""


def fine(at: At) -> Said:
    return 0.0005 * (at.number % 3 - 1)


def of_first(said: Callable[[At], Said]) -> Callable[[At], Said]:
    """The first model as ``said``, all others unchanged."""
    return lambda at: said(at) if at.first else fine(at)


def of_others(said: Callable[[At], Said]) -> Callable[[At], Said]:
    """The first model unchanged, all others as ``said``."""
    return lambda at: fine(at) if at.first else said(at)


def noisy(at: At) -> Said:
    return 0.4 * (-1) ** at.number


def slower(at: At) -> Said:
    return 0.02 + 0.0005 * (at.number % 3 - 1)  # of five: too little for the suite as a whole


def faster(at: At) -> Said:
    return -slower(at)


def of_head(
    ended: tuple[Status, Cause | Modifier | None], which: Callable[[At], bool] = lambda at: True
) -> Any:
    """The head ends so in the launches of ``which``."""
    return lambda at: (PASS, ended) if which(at) else fine(at)


REPORT = "defaults: {action: report, reason: a trial}\n"
STATUS_GATES = "defaults: {{action: {}, reason: a trial, metrics: {{status: {{action: gate}}}}}}\n"
FIRST_REPORTED = "patterns: {'*noop*': {action: report, reason: known}}\n"

FACTS: dict[str, tuple[Callable[[At], Said], Headline, tuple[str, ...], str]] = {
    "nothing changed": (fine, Headline.UNCHANGED, (), ""),
    "one is slower": (of_first(slower), Headline.REGRESSION, (), ""),
    "one is faster": (of_first(faster), Headline.IMPROVEMENT, (), ""),
    "one is undecided": (of_first(noisy), Headline.UNDECIDED, (), ""),
    "all but one are undecided": (of_others(noisy), Headline.UNDECIDED, (), ""),
    "one is undecided and another faster": (
        lambda at: noisy(at) if at.first else faster(at),
        Headline.UNDECIDED,
        (),
        "",
    ),
    "one crashes in one launch of several": (
        of_first(of_head(CRASH, lambda at: at.number == 2)),
        Headline.UNDECIDED,
        (),
        "",
    ),
    "one crashes in every launch": (of_first(of_head(CRASH)), Headline.REGRESSION, (), ""),
    "one crashes on both sides": (of_first(lambda at: (CRASH, CRASH)), Headline.UNDECIDED, (), ""),
    "one is unsupported on both sides": (
        of_first(lambda at: (UNSUPPORTED, UNSUPPORTED)),
        Headline.UNCHANGED,
        (),
        "",
    ),
    "one is fixed": (of_first(lambda at: (ERROR, PASS)), Headline.IMPROVEMENT, (), ""),
    "one is degraded": (of_first(of_head(DEGRADED)), Headline.REGRESSION, (), ""),
    "one is degraded in one launch of several": (
        of_first(of_head(DEGRADED, lambda at: at.number == 2)),
        Headline.UNDECIDED,
        (),
        "",
    ),
    "one is degraded no more": (of_first(lambda at: (DEGRADED, PASS)), Headline.IMPROVEMENT, (), ""),
    "one is skipped by the head": (of_first(of_head(SKIPPED)), Headline.REGRESSION, (), ""),
    "one is skipped by the base": (of_first(lambda at: (SKIPPED, PASS)), Headline.UNDECIDED, (), ""),
    "all are skipped": (lambda at: (SKIPPED, SKIPPED), Headline.NOTHING_COMPARED, (), ""),
    "a confirmation ends in infra": (
        of_first(lambda at: (PASS, INFRA) if at.confirms else slower(at)),
        Headline.UNDECIDED,
        (),
        "",
    ),
    "a confirmation does not agree": (
        of_first(lambda at: fine(at) if at.confirms else slower(at)),
        Headline.UNDECIDED,
        (),
        "",
    ),
    "the time ends": (fine, Headline.INCOMPLETE, ("0.001s",), ""),
    "the time ends after a head that broke": (of_first(of_head(CRASH)), Headline.REGRESSION, ("0.001s",), ""),
    "head against head is called changed": (
        lambda at: faster(at) if at.control else fine(at),
        Headline.IN_DOUBT,
        (),
        "",
    ),
    "the policy only reports": (fine, Headline.NOTHING_GATES, (), REPORT),
    "only the status gates": (slower, Headline.REPORTED, (), STATUS_GATES.format("report")),
    "only the status gates, and times are ignored": (
        fine,
        Headline.NOTHING_COMPARED,
        (),
        STATUS_GATES.format("ignore"),
    ),
    "what is worse is only reported": (of_first(slower), Headline.REPORTED, (), FIRST_REPORTED),
    "what is undecided is only reported": (of_first(noisy), Headline.REPORTED, (), FIRST_REPORTED),
    "all is ignored": (slower, Headline.NOTHING_COMPARED, (), REPORT.replace("report", "ignore")),
}


@pytest.fixture
def measured(monkeypatch) -> Callable[[Callable[[At], Said]], None]:
    """Replace what is measured from now on."""

    def install(said: Callable[[At], Said]) -> None:
        counts: Counter[tuple[str, str]] = Counter()

        def measure(series: Any, number: int, hosts: Any, pair: Pair, wanted: Any, *cpus: Any) -> Launch:
            place = series.folder.run_id, pair.key
            counts[place] += 1
            found = said(At(pair.head.workload.model, counts[place], wanted.confirms, pair.control))
            made = launch(pair, number, found if isinstance(found, float) else None, confirms=wanted.confirms)
            if isinstance(found, float):
                return made
            base, head = (
                replace(side, status=status, modifiers=(why,))
                if isinstance(why, Modifier)
                else replace(side, status=status, cause=why)
                for side, (status, why) in zip((made.base, made.head), found, strict=True)
            )
            return replace(made, base=base, head=head)

        monkeypatch.setattr(LaunchSeries, "_measure", measure)

    monkeypatch.setattr(LaunchHosts, "open", lambda hosts, pairs: None)
    monkeypatch.setattr(LaunchSeries, "_describe", lambda series, hosts: [])
    monkeypatch.setattr(comparison, "_check_difference", lambda base, head, control: None)
    return install


def code_of(*words: str) -> int:
    """The exit code of a command: its own, or that of the error by which the entry point ends it."""
    done = CliRunner().invoke(cli, list(words))
    if isinstance(done.exception, TorchgaugeError):
        return done.exception.exit_code
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.exit_code


def endings(
    folder: Path, *, time: tuple[str, ...] = (), policy: str = "", controls: bool = False
) -> dict[str, int]:
    """The exit codes of the three commands."""
    rules: tuple[str, ...] = ()
    if policy:
        (folder / "policy.yml").write_text(policy)
        rules = ("--policy", str(folder / "policy.yml"))
    toys = ("toy", "--models", ",".join(MODELS), "--device", "fake", "--seed", "1", *rules)
    toys += () if controls else ("--no-control",)
    first, second = (("--store", str(folder / name)) for name in ("first", "second"))
    found = {
        "ab": code_of("ab", *toys, "--config", "eager", *first, *(("--max-time", *time) if time else ())),
        "gate": code_of("gate", "latest", *first, *rules),
    }
    told = CliRunner().invoke(cli, ["gate", "latest", *first, *rules, "--json"])
    assert bool(json.loads(told.stdout)["reasons"]) == (found["gate"] != 0), "a code without a reason"
    pool = ("--pool", "cpu", "--exit-verdict", "--out", str(folder / "set"), "--work", str(folder / "work"))
    sides = ("--base-python", sys.executable, "--head-python", sys.executable)
    budget = ("--budget", *time) if time else ()
    return found | {
        "ci gate": code_of("ci", "gate", *toys, "--configs", "eager", *second, *pool, *sides, *budget)
    }


@pytest.mark.parametrize("name", FACTS)
def test_three_commands_end_alike(name, measured, tmp_path, monkeypatch) -> None:
    """With the code that the table has for what holds."""
    monkeypatch.chdir(tmp_path)
    said, headline, time, policy = FACTS[name]
    measured(said)
    code = EXIT_CODES[GATE_VERDICTS[headline]]
    controls = headline is Headline.IN_DOUBT
    found = endings(tmp_path, time=time, policy=policy, controls=controls)
    assert found == {"ab": code, "gate": code, "ci gate": code}


def test_every_row_of_the_table_is_among_the_facts() -> None:
    """A new row needs facts that lead to it."""
    assert {headline for _, headline, *_ in FACTS.values()} == set(Headline)


def test_the_docs_have_the_table() -> None:
    """The rows of the page are those of the code, in the order in which they hold."""
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (\d) \|$", DOCS.read_text(), re.MULTILINE)
    assert rows == [(each.value, str(EXIT_CODES[GATE_VERDICTS[each]])) for each in Headline]


def test_a_mistake_and_an_empty_selection_end_alike(measured, tmp_path, monkeypatch) -> None:
    """2 and 5, also where a set is submitted that says so."""
    monkeypatch.chdir(tmp_path)
    measured(fine)
    words = ("--device", "fake", "--no-control")
    pool = (
        "--pool",
        "cpu",
        "--exit-verdict",
        "--base-python",
        sys.executable,
        "--head-python",
        sys.executable,
    )
    for suite, code in ((("nosuch",), 2), (("toy", "--models", "noop", "--dtype", "bfloat16"), 5)):
        assert code_of("ab", *suite, *words, "--config", "eager") == code
        assert (
            code_of("ci", "gate", *suite, *words, "--configs", "eager", *pool, "--out", f"set{code}") == code
        )


def test_ctrl_c_ends_alike_and_what_it_left_is_incomplete(measured, tmp_path, monkeypatch) -> None:
    """130 for the command that was interrupted, whatever was found; a gate over the rest says 3."""
    monkeypatch.chdir(tmp_path)
    measured(fine)

    def interrupt(series: Any, *launch: Any) -> None:
        series.stop.set()

    monkeypatch.setattr(LaunchSeries, "_measure", interrupt)
    assert endings(tmp_path) == {"ab": 130, "gate": 3, "ci gate": 130}
