"""Real hosts and workers under a judge that asks for a fixed number of launches."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import torchgauge
from torchgauge import registry
from torchgauge.harness.ab.comparison import Request, new_comparison
from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.ab.run_comparison import ComparisonEnding, run_comparison
from torchgauge.harness.planning.selection import Selection
from torchgauge.records import Environment, RunSettings
from torchgauge.records.comparison import Launch, MetricVerdict, Pair, SideSpec
from torchgauge.results.comparing.comparison_store import ComparisonFolder
from torchgauge.results.comparing.judgement import Wanted

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
PLUGIN = Path(__file__).parent / "racers_plugin"
SETTINGS = RunSettings(threads=1, warmup_budget_s=0.2)
FAKE = Selection(("racers",), ("fake",), configurations=("eager",))


@dataclass
class Script:
    """A judge that wants ``launches`` launches of every pair, of ``abba_blocks`` each, and knows nothing."""

    pairs: Sequence[Pair]
    launches: int = 1
    abba_blocks: int = 2
    heard: list[Launch] = field(default_factory=list)
    environments: list[Environment] = field(default_factory=list)
    on_add: Callable[[Launch], None] = lambda launch: None

    def add(self, launch: Launch) -> None:
        self.heard.append(launch)
        self.on_add(launch)

    def wanted(self) -> tuple[Wanted, ...]:
        counts = {pair.key: sum(each.pair_key == pair.key for each in self.heard) for pair in self.pairs}
        return tuple(Wanted(key, False, self.abba_blocks) for key, n in counts.items() if n < self.launches)

    def nothing_to_compare(self) -> str:
        return ""

    def interim(self, pair_key: str) -> MetricVerdict | None:
        return None

    def verdicts(self) -> list[MetricVerdict]:
        return []


@dataclass
class Arena:
    """Comparisons in a store of their own."""

    store: Path

    def request(self, **more: Any) -> Request:
        """An A/A run of the racers on the fake device, but for ``more``."""
        given: dict[str, Any] = {
            "selection": FAKE,
            "settings": SETTINGS,
            "base": SideSpec("base", ""),
            "head": SideSpec("head", ""),
            "control": not any(name in more for name in ("base", "head")),
            "controls": 0,
            "seed": 0,
        }
        return Request(**{**given, **more})

    def run(
        self, request: Request, on_add: Callable[[Launch], None] = lambda launch: None, **script: Any
    ) -> tuple[Script, ComparisonEnding]:
        """Measure as a :class:`Script` wants it."""
        made = new_comparison(request, store=str(self.store), progress=AbProgress(io.StringIO()))
        judge = Script(made.plan.pairs, on_add=on_add, **script)

        def judge_of(environments: Sequence[Environment]) -> Script:
            judge.environments = list(environments)
            return judge

        return judge, run_comparison(made, judge_of)

    def folder(self) -> ComparisonFolder:
        """The only comparison."""
        (path,) = (self.store / "comparisons").iterdir()
        return ComparisonFolder(path)


def arena_in(folder: Path) -> Iterator[Arena]:
    """A store in ``folder``, with the racers installed as a third party's package, in workers too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PLUGIN))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), str(PLUGIN)]))
        registry._installed.cache_clear()
        yield Arena(folder / "store")
    registry._installed.cache_clear()


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    """For one test."""
    yield from arena_in(tmp_path)


@pytest.fixture(scope="module")
def shared_arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """For what several tests look at."""
    yield from arena_in(tmp_path_factory.mktemp("arena"))


@pytest.fixture
def script_for() -> type[Script]:
    """The judge of these tests."""
    return Script
