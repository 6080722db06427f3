"""``torchgauge bisect``: what it refuses, and a search whose result is in the store already."""

from __future__ import annotations

import json
import sys

import pytest

from torchgauge.harness.ab.quick_measure import QuickCase
from torchgauge.harness.ab.reading import Answer, Reading
from torchgauge.harness.bisect.bisection import Bisection
from torchgauge.harness.bisect.builds import Build, Builds
from torchgauge.results.store import Store

TWICE = ("--build", f"a={sys.executable}", "--build", f"b={sys.executable}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["toy/sum"], "no builds given"),
        (["toy/sum", "--build", f"a={sys.executable}", "--builds", "x"], "--builds and --build given"),
        (["toy/sum", "--build", f"a={sys.executable}"], "needs at least two builds"),
        (["toy/sum", *TWICE], "are the same build"),
        (["sum", "--build", f"a={sys.executable}"], "is not of the form SUITE/MODEL"),
        (["toy/sum", "--builds", "/no/such/file"], "cannot be read"),
    ],
)
def test_mistakes_are_explained(process, tmp_path, words, said):
    """Exit 2 with what to try, before anything is measured."""
    done = process("bisect", *words, "--device", "fake", "--store", str(tmp_path / "store"))
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("answer", "ratio", "code"), [(Answer.CHANGED, 1.2, 0), (Answer.SAME, 1.0, 1)])
def test_a_search_that_is_done_is_shown_again(invoke, tmp_path, answer, ratio, code):
    """The same command shows the evidence of each step and ends as the search did."""
    file = tmp_path / "builds.yaml"
    file.write_text(f"builds: [{{label: a, python: {sys.executable}}}, {{label: b, python: {sys.prefix}}}]")
    builds = Builds((Build("a", python=sys.executable), Build("b", python=sys.prefix)), source=str(tmp_path))
    store = Store.open(tmp_path / "store", create=True)
    case = QuickCase("toy/sum", "fake")
    found = Reading(answer, ratio, ratio - 0.01, ratio + 0.01, comparison="ab-1")
    Bisection(store, builds, case.text, "latency", lambda *_: found).run()
    words = ("bisect", "toy/sum", "--device", "fake", "--builds", str(file), "--store", str(store.path))
    shown = invoke(*words)
    assert shown.exit_code == code, shown.output
    assert "evidence: comparison ab-1" in shown.output
    shown = invoke(*words, "--json")
    plain = json.loads(shown.output[shown.output.index("{\n") :])
    assert plain["search"]["labels"] == ["a", "b"]
