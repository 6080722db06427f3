"""``torchgauge results claim``: forms, selections, exit codes and what a person types wrong."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import claim_store as made
import stored_runs as stored

from torchgauge.cli.option_values import moment_of
from torchgauge.results.claims.claim_file import DATA, load_claims
from torchgauge.results.store import Store

FOUNDING = ("results", "claim", "inductor", "faster", "than", "eager", "--suite", "zoo", "--device", "fake")
OWN = """\
claims:
  - name: zoo-is-fast
    title: the zoo is fast
    statement: the zoo is faster than eager
    published: {by: me, link: "https://example.org/", date: "2026"}
    question: {aggregation: geomean, metric: speedup, threshold: 1.05}
    select: {suites: [zoo]}
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> tuple[str, str]:
    """Twelve quick models and four slow ones on the fake device, as words of the command line."""
    values = {f"q{number}": 1.3 for number in range(12)} | {f"s{number}": 0.9 for number in range(4)}
    return "--store", made.store_of(tmp_path_factory.mktemp("claim") / "store", made.speedups(values))


def test_the_founding_claim_is_answered_in_one_command(invoke, store):
    """On 16 models of 100 it is undecided, with what they would say; with a lower minimum it is refuted."""
    shown = invoke(*FOUNDING, *store)
    assert shown.exit_code == 3, shown.output
    assert "Undecided on fake, inductor: 75.0 % [50.5 %, 89.8 %] over 16 models" in shown.output
    assert "these models alone would give the verdict refuted" in shown.output
    assert "published: 97.5 % of 193 models" in shown.output
    shown = invoke(*FOUNDING, *store, "--minimum", "10")
    assert shown.exit_code == 1, shown.output
    assert "at least 10 models" in shown.output


def test_what_nobody_measured_is_said_of_no_feature(invoke, store):
    """A store of other suites answers none of the sentences on features: each is open, none is true."""
    shown = invoke("results", "claim", "features", *store)
    assert shown.exit_code == 3, shown.output
    verdicts = re.findall(r"^(Supported|Refuted|Undecided|Not measured) on ", shown.output, re.MULTILINE)
    assert len(verdicts) >= len(load_claims(DATA / "features.yaml")), shown.output
    assert set(verdicts) == {"Not measured"}, shown.output


def test_a_count_of_one_run_decides(invoke, tmp_path):
    """Captures and hits are counted once and repeat: one sample is enough, and 0 is a no."""
    words = {"suite": "features", "device": "cpu"}
    held = {"autograd_captures": (1.0,)}, {"mode": "training", "configuration": "inductor-compiled-autograd"}
    found = {f"compile.autograd-stack{blocks}": held for blocks in (2, 12)}
    found["compile.latency-stack2"] = {"cache_hits": (1.0,)}, {}
    found["compile.latency-stack12"] = {"cache_hits": (0.0,)}, {}
    rows = [made.row(made.case(model, **words, **how), numbers) for model, (numbers, how) in found.items()]
    store = "--store", made.store_of(tmp_path / "store", rows, stored.environment("cpu"))
    shown = invoke("results", "claim", "compiled-autograd-captures-backward", *store)
    assert "100.0 %" in shown.output
    assert "2 yes" in shown.output, shown.output
    shown = invoke("results", "claim", "caches-outlive-the-process", *store)
    assert "1 yes + 1 no" in shown.output, shown.output


def test_a_claim_of_ones_own_is_asked_by_its_file(invoke, store, tmp_path):
    """By --file with and without words, and by the name of the file alone."""
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    assert invoke("validate", str(path)).exit_code == 0
    for words in (["--file", str(path)], ["zoo", "is", "fast", "--file", str(path)], [str(path)]):
        shown = invoke("results", "claim", *words, *store)
        assert shown.exit_code == 0, shown.output
        assert "Supported on fake, inductor: 1.19x" in shown.output
    assert "zoo-is-fast" in invoke("results", "claim", "--list", "--file", str(path)).output


def test_a_bundled_file_is_asked_whole(invoke, store):
    """The name of a file asks all of its claims, and the exit code is that of the worst answer."""
    shown = invoke("results", "claim", "dashboard", *store, "--suite", "zoo", "--minimum", "5")
    verdicts = [line.split(" on fake")[0] for line in shown.output.splitlines() if "fake, inductor:" in line]
    assert verdicts == ["Undecided", "Supported", "Not measured", "Not measured"], shown.output
    assert shown.exit_code == 3


def test_every_form_says_the_same(invoke, store):
    """JSON has the whole answer, Markdown the table, and --all every model."""
    shown = invoke(*FOUNDING, *store, "--json")
    found = json.loads(shown.stdout)
    assert (found["schema"], found["version"]) == ("torchgauge.claim", 1)
    (claim,) = found["claims"]
    assert claim["exit_code"] == shown.exit_code == 3
    (answer,) = claim["answers"]
    assert (answer["n"], answer["planned"], answer["counts"]) == (16, 16, {"yes": 12, "no": 4})
    assert len(answer["members"]) == 16
    markdown = invoke(*FOUNDING, *store, "--markdown").stdout
    assert markdown.startswith("# Claim: `inductor faster than eager`")
    assert "| `zoo/s0` | no |" in markdown
    assert "zoo/q0" not in markdown
    assert re.search(r"zoo/q0 +yes +1\.300x", invoke(*FOUNDING, *store, "--all").stdout)


def test_options_replace_what_the_file_selects(invoke, store):
    """Models by glob, another configuration, another mode: each is asked as it is typed."""
    shown = invoke(*FOUNDING, *store, "--models", "q*", "--minimum", "5", "--json")
    (answer,) = json.loads(shown.stdout)["claims"][0]["answers"]
    assert (answer["n"], answer["counts"]) == (12, {"yes": 12})
    for words in (("--config", "other"), ("--mode", "training"), ("--torch", "1.*"), ("--system", "Plan9")):
        shown = invoke(*FOUNDING, *store, *words)
        assert shown.exit_code == 3
        assert "Not measured" in shown.output
    shown = invoke(*FOUNDING, *store, "--since", "2031-01-01")
    assert "Not measured" in shown.output
    assert "over 16 models" in invoke(*FOUNDING, *store, "--since", "999999999d").output


def test_a_date_may_say_its_offset():
    """Midnight two hours east of Greenwich is 22:00 UTC of the day before."""
    utc = moment_of("2026-08-01T00:00:00")
    assert moment_of("2026-08-01T00:00:00+02:00") == utc - 7200


def test_a_device_or_configuration_unknown_here_is_said(invoke, store):
    """A store of another machine may have it; where nothing has it, the sentence shows the slip."""
    shown = invoke(*FOUNDING[:-1], "fakee", *store, "--config", "inductr")
    assert shown.exit_code == 3, shown.output
    assert "note: unknown device 'fakee'; did you mean fake" in shown.output
    assert "note: unknown configuration 'inductr'; did you mean inductor" in shown.output
    assert "unknown" not in invoke(*FOUNDING, *store).output


def test_two_sides_can_be_named(invoke, tmp_path):
    """Two versions by globs of the command line; case by case the newer one is 20 % faster."""
    path = tmp_path / "store"
    for number, (torch, value) in enumerate((("2.7.0", 0.5), ("2.8.0", 1.0), ("2.9.0", 1.2))):
        rows = [made.row(made.case(f"m{n}", "eager"), {"throughput": value * (n + 1)}) for n in range(12)]
        where = stored.environment(torch=torch)
        made.store_of(path, rows, where, run_id=f"run-{number}", at=stored.BEGIN + number)
    words = ("results", "claim", "newer torch", "--suite", "zoo", "--store", str(path))
    shown = invoke(*words)
    assert shown.exit_code == 0, shown.output
    assert "Supported on fake, eager: 1.2" in shown.output
    assert re.search(r"torch\.version +2\.8\.0 +2\.9\.0", shown.output)
    shown = invoke(*words, "--base", "torch=2.7*")
    assert "Supported on fake, eager: 2.4" in shown.output


def test_the_list_names_every_claim(invoke):
    """With what was published, as text and as JSON."""
    shown = invoke("results", "claim", "--list")
    assert shown.exit_code == 0
    assert "inductor faster than eager  [97.5 % of 193 models]" in shown.output
    names = [claim["name"] for claim in json.loads(invoke("results", "claim", "--list", "--json").stdout)]
    assert "windows-as-fast-as-linux" in names


def test_an_empty_store_is_exit_3_with_a_command(invoke, tmp_path):
    """All models of the suites are counted, and one command measures them."""
    Store.open(tmp_path / "store", create=True)
    shown = invoke("results", "claim", "inductor faster than eager", "--store", str(tmp_path / "store"))
    assert shown.exit_code == 3
    assert "Not measured" in shown.output
    assert "To measure the missing cases:\n\n    torchgauge run huggingface timm torchbench" in shown.output
    assert "--tier full" in shown.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["inductor", "speed-up"], "matches several claims"),
        (["/no/such/claim.yaml"], "cannot be read"),
        (["dashboard-memory", "--base", "torch=2"], "dashboard-memory does not compare two sides"),
        (["newer-torch-not-slower", "--base", "torch"], "'torch' selects nothing"),
        (["newer-torch-not-slower", "--base", "tork=2"], "did you mean torch?"),
        (["newer-torch-not-slower", "--base", "torch=2", "--head", "torch=2"], "`base` and `head` are equal"),
        (["dashboard-memory", "--mode", "traning"], "unknown mode 'traning'; did you mean training?"),
        (["dashboard-memory", "--dtype", "flot32"], "unknown dtype 'flot32'; did you mean float32"),
        (["dashboard-memory", "--models", "resnet19"], "unknown model 'resnet19'; did you mean resnet18"),
        (["dashboard-memory", "--since", "\u00b2d"], "neither a date nor a number of days"),
        (["dashboard-memory", "--json", "--markdown"], "several output formats"),
    ],
)
def test_what_a_person_types_wrong_is_said(process, store, words, said):
    """Exit 2, a sentence, and no traceback."""
    given = () if "--store" in words else store
    done = process("results", "claim", *words, *given)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.torch
def test_one_real_model_is_measured_and_asked(process, tmp_path):
    """A run of a toy model with eager beside the compiler answers the founding claim for its N of one."""
    store = ("--store", str(tmp_path / "store"))
    words = ("toy", "--models", "mlp", "--device", "cpu", "--config", "eager,inductor")
    quick = (
        "--measure-seconds",
        "0.2",
        "--no-calibration",
        "--no-memory-probe",
        "--no-warm-compile",
        "--threads",
        "1",
    )
    done = process("run", *words, *quick, *store)
    assert done.returncode == 0, done.stderr
    done = process(
        "results",
        "claim",
        "inductor faster than eager",
        "--suite",
        "toy",
        "--models",
        "mlp",
        *store,
        "--json",
    )
    assert done.returncode == 3, done.stderr
    (answer,) = json.loads(done.stdout)["claims"][0]["answers"]
    (member,) = answer["members"]
    steady = not member["reason"].startswith("unsteady: ")  # beside busy neighbours it has no number
    assert (answer["n"], answer["planned"], answer["device"]) == (int(steady), 1, "cpu")
    assert member["state"] in ({"yes", "no", "undecided"} if steady else {"unsteady"})
    assert member["value"] > 0 if steady else member["value"] is None
    assert answer["where"][0]["torch"]
