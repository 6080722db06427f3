"""TorchBench's traps, on models of our own in a repository laid out like it: each ends as it should."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import torchgauge
from torchgauge.harness.planning.selection import TIERS
from torchgauge.suites.torchbench import checkout as torchbench_checkout
from torchgauge.suites.torchbench.suite import SUITE

IN_DATA = {"data": "batch.pt", "places": ["torchbenchmark/models/{model}/.data"]}
IN_OTHER_DATA = {"data": "batch.pt", "places": ["torchbenchmark/data/.data/batch.pt"]}
CASES: dict[str, tuple[Any, ...]] = {
    "plain": ("plain", "inference", {}, 2),
    "reseeded": ("plain", "inference", {}, 2, 8),
    "trained": ("plain", "training", {}, 2),
    "mapping": ("mapping", "inference", {}, 2),
    "token": ("wants_token", "inference", {"variable": "TG_HUB_TOKEN"}, 2),
    "listed": ("listed", "inference", {}, 2),
    "staged": ("staged", "training", {}, 2),
    "litters": ("litters", "training", {}, 2),
    "sparse": ("sparse", "training", {}, 2),
    "draws": ("draws", "inference", {}, 2),
    "stateful": ("stateful", "training", {}, 2),
    "closure": ("trains_in_a_closure", "training", {}, 2),
    "wrapping": ("wraps_its_optimizer", "training", {}, 2),
    "compiled": ("plain", "training", {"compiled": True}, 2),
    "uncompiled": ("fixed_module", "training", {"compiled": True}, 2),
    "invoked": ("plain", "inference", {"eval_step": "invoke"}, 2),
    "needs_grad": ("needs_grad", "inference", {"eval_step": "invoke"}, 2),
    "downloads": ("downloads", "inference", {}, 2),
    "halves": ("halves_the_batch", "inference", {}, 4),
    "ignores": ("ignores_the_batch", "inference", {}, 7),
    "doubles": ("doubles", "inference", {}, 2),
    "returned": ("llama", "training", {}, 2),
    "rollout": ("rollout", "training", {}, 2),
    "no_batch": ("no_train_batch", "training", {}, 2),
    "constructor": ("refuses_to_be_made", "inference", {}, 2),
    "first_step": ("refuses_the_step", "training", {}, 2),
    "eval_refused": ("refuses_eval", "inference", {}, 2),
    "batch_refused": ("fixed_batch", "inference", {}, 1),
    "fetches": ("fetches", "inference", {}, 2),
    "package": ("needs_package", "inference", {"requirements": ["no-such-package>=2"]}, 2),
    "part": ("seeks_its_own_module", "inference", {}, 2),
    "helper": ("mistypes_a_folder", "inference", {}, 2),
    "similar": ("mistypes_a_file", "inference", {}, 2),
    "file": ("needs_file", "inference", IN_DATA, 2),
    "asserted": ("asserts_data", "inference", IN_DATA, 2),
    "pins": ("needs_fitting_package", "inference", {}, 2),
    "own_data": ("mistypes_data", "inference", IN_OTHER_DATA, 2),
    "own_module": ("mistypes_a_module", "inference", {}, 2),
    "undeclared": ("asserts_data", "inference", {}, 2),
    "layer": ("asks_for_a_layer", "inference", {}, 2),
    "handled": ("fails_without_network", "inference", {}, 2),
    "hub_words": ("speaks_as_a_hub", "inference", {}, 2),
    "cuda_words": ("speaks_of_cuda", "inference", {}, 2),
    "returned_error": ("returns_its_error", "training", {}, 2),
    "observation": ("drq", "inference", {"data": "drq/obs.pkl", "synthetic": "drq"}, 2),
    "other_seed": ("drq", "inference", {"data": "drq/obs.pkl", "synthetic": "drq"}, 2, 8),
    "checkpoint": ("reads_data", "inference", {"data": "sam.pth", "synthetic": "segment_anything"}, 2),
    "not_for_this": ("plain", "inference", {"data": "zebras", "synthetic": "horse2zebra"}, 2),
    "fails_on_it": ("reads_and_fails", "inference", {"data": "faces", "synthetic": "celeba"}, 2),
    "operators": ("needs_operators", "inference", {}, 2),
    "buffer": ("fills_a_buffer", "training", {"array_bytes": 40}, 2),
    "cuda": ("wants_cuda", "inference", {}, 2),
    "broken": ("broken", "inference", {}, 2),
    "unfinished": ("unfinished", "inference", {}, 2),
    "network": ("unfinished_network", "inference", {}, 2),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, fake_torchbench: Any) -> Path:
    """A repository that is no checkout of the pinned commit."""
    folder = tmp_path_factory.mktemp("upstream")
    fake_torchbench.write(folder)
    return folder


@pytest.fixture(scope="module")
def found(child: Callable[..., Any], repository: Path, tmp_path_factory: Any) -> dict[str, dict[str, Any]]:
    """What became of each of :data:`CASES`; none leaves a file where the process stands."""
    empty = tmp_path_factory.mktemp("here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(torchbench_checkout.VARIABLE, str(repository))
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("scratch")))  # as a worker's host does
        patch.chdir(empty)
        rows = child("child_torchbench.py", *(json.dumps(case) for case in CASES.values()))
    assert list(empty.iterdir()) == []
    return dict(zip(CASES, rows, strict=True))


def test_the_data_file_holds_every_model_of_upstream() -> None:
    """104 core models and 25 canaries, which no tier of the command line selects; both modes for each."""
    tiers = [model.tiers for model in SUITE.models()]
    assert [tiers.count((tier,)) for tier in ("smoke", "standard", "full", "canary")] == [6, 61, 37, 25]
    assert "canary" not in TIERS
    for model in SUITE.models():
        assert set(model.batch) == {"inference", "training"}
        assert bool(model.recipe.get("canary")) is (model.tiers == ("canary",))
        for config in model.recipe.get("configs", {}).values():  # type: ignore[attr-defined]
            assert config["model_type"]
        if model.recipe.get("eval_step") == "invoke":
            assert model.recipe["beyond"], f"why {model.name} is stepped by invoke()"


@pytest.mark.torch
@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "trained",
        "mapping",
        "token",
        "listed",
        "staged",
        "draws",
        "sparse",
        "litters",
        "stateful",
        "closure",
        "wrapping",
        "invoked",
        "needs_grad",
        "downloads",
        "observation",
        "checkpoint",
        "buffer",
    ],
)
def test_a_model_repeats_itself(found: dict[str, dict[str, Any]], name: str) -> None:
    """Two seeded observations agree to the bit, and so does a third after two more steps."""
    row = found[name]
    assert row["status"] == "pass", row
    assert row["keys"]
    assert row["gap"] == 0.0


@pytest.mark.torch
def test_inference_runs_the_module_and_training_upstreams_step(found: dict[str, dict[str, Any]]) -> None:
    """The module has a float64 reference; a training step is judged by parameters and gradients."""
    assert found["plain"]["reference"] == "float64 on the host"
    assert "no float64 run" in found["trained"]["reference"]
    assert not found["plain"]["training"]
    keys = found["trained"]["keys"]
    assert {"state.update.model.0.weight", "state.gradient.model.0.weight"} <= set(keys)
    assert found["mapping"]["inputs"] == [0, ["input"]]
    assert found["listed"]["inputs"] == [1, []]


@pytest.mark.torch
def test_training_is_found_behind_functions_and_other_optimizers(found: dict[str, dict[str, Any]]) -> None:
    """What a closure, a partial or a bound method holds trains; a wrapped optimizer shows its gradients."""
    closure, wrapping = (set(found[name]["keys"]) for name in ("closure", "wrapping"))
    assert "state.gradient.train.func.bound.self.model.0.weight" in closure
    assert "state.gradient.model.0.weight" in wrapping


@pytest.mark.torch
def test_a_training_step_runs_the_compiled_module(found: dict[str, dict[str, Any]]) -> None:
    """Upstream's step captures graphs and gives eager's numbers; without ``set_module`` it is unsupported."""
    assert found["compiled"]["graphs"] > 0
    assert found["compiled"]["gap"] < 1e-5
    assert found["uncompiled"]["status"] == "unsupported"
    assert "no set_module here" in found["uncompiled"]["reason"]


@pytest.mark.torch
def test_the_seed_is_ours_again(found: dict[str, dict[str, Any]]) -> None:
    """Upstream replaces ``torch.manual_seed`` by one that ignores its argument; afterwards it obeys."""
    assert found["plain"]["seed"] == 3
    assert found["plain"]["weights"] == found["listed"]["weights"] != found["reseeded"]["weights"]


@pytest.mark.torch
def test_what_differs_from_upstream_is_named(found: dict[str, dict[str, Any]]) -> None:
    """Notes and facts name dropout, batch and dtype if they differ, and what upstream's own CI skips."""
    assert found["trained"]["dropout"] == [0.0]
    assert any("dropout is off" in note for note in found["trained"]["notes"])
    assert any("skips" in note for note in found["trained"]["notes"])
    assert not any("skips" in note for note in found["plain"]["notes"])
    assert found["halves"]["items"] == 2
    assert "upstream uses batch 2 instead of 4" in found["halves"]["notes"]
    ignored = "no input has size 7, the batch that the throughput counts"
    assert ignored in found["ignores"]["notes"]
    assert found["doubles"]["facts"] == {"upstream_dtypes": "upstream's float64 is cast to the case's dtype"}
    assert not [note for note in found["plain"]["notes"] if "no input" in note]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "status", "cause", "words"),
    [
        ("returned", "unsupported", "", "it returns NotImplementedError('no training loop is written')"),
        ("rollout", "unsupported", "", "train() does nothing"),
        ("no_batch", "unsupported", "", "DEFAULT_TRAIN_BSIZE is None"),
        ("constructor", "unsupported", "", "upstream: not on this device"),
        ("first_step", "unsupported", "", "upstream: the loss is not written"),
        ("eval_refused", "unsupported", "", "upstream: eval is a raise"),
        ("batch_refused", "unsupported", "", "doesn't support customizing batch size"),
        ("cuda", "unsupported", "", "requires CUDA"),
        ("fetches", "skipped", "no_network", "images.invalid"),
        ("package", "skipped", "missing_package", 'pip install "no-such-package>=2"'),
        ("file", "skipped", "missing_data", "python install.py needs_file"),
        ("asserted", "skipped", "missing_data", "batch.pt"),
        ("operators", "skipped", "missing_package", "torchvision's compiled operators do not load"),
        ("pins", "error", "", "cannot import name 'no_such_name' from 'json'"),
        ("own_data", "error", "", "btach.pt"),
        ("own_module", "error", "", "No module named 'torchbenchmark.util.modle'"),
        ("undeclared", "error", "", "please run install.py again"),
        ("layer", "error", "", "cannot import name 'NoSuchLayer' from 'torch.nn'"),
        ("handled", "error", "", "ValueError: a bug"),
        ("part", "error", "", "No module named 'no_such_part'"),
        ("helper", "error", "", "No module named 'helper_in_source'"),
        ("similar", "error", "", "No module named 'setings_of_it'"),
        ("hub_words", "error", "", "OSError: weights is not a local folder"),
        ("cuda_words", "error", "", "it requires CUDA"),
        ("returned_error", "error", "", "has no attribute 'stepp'"),
        ("broken", "error", "", "ValueError: a bug of the model"),
        ("unfinished", "error", "", "NotImplementedError: forgot the head"),
        ("network", "error", "", "NotImplementedError: no head"),
        ("fails_on_it", "error", "", "a bug of the model (inputs: synthetic, in the shape of faces)"),
    ],
)  # fmt: skip
def test_what_does_not_run_says_why(
    found: dict[str, dict[str, Any]], name: str, status: str, cause: str, words: str
) -> None:
    """A refusal is never a failure or a pass, and a model's own bug is never a refusal or a skip."""
    row = found[name]
    assert (row["status"], row["cause"]) == (status, cause), row
    assert words in row["reason"]


@pytest.mark.torch
def test_synthetic_inputs_are_said_and_leave_the_checkout_alone(
    found: dict[str, dict[str, Any]], repository: Path, fake_torchbench: Any
) -> None:
    """The row says what they stand for, they come from the seed, and the checkout stays as it was."""
    seen, other = found["observation"], found["other_seed"]
    assert seen["facts"] == {"inputs": "synthetic, in the shape of drq/obs.pkl"}
    assert seen["stands_for"] == "synthetic, in the shape of drq/obs.pkl"
    assert seen["input_sum"] != other["input_sum"]
    assert found["not_for_this"]["facts"] == found["plain"]["facts"] == {}
    status = fake_torchbench.git(repository, "status", "--porcelain", "--ignored").splitlines()
    assert [line for line in status if not line.endswith("__pycache__/")] == []  # Python's own, of any import
    assert not list(repository.rglob("litter.txt"))


@pytest.mark.torch
def test_data_of_the_checkout_is_used_and_said(
    child: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_torchbench: Any
) -> None:
    """Where upstream's own data is there, it is read, and numbers over it stand for nothing else."""
    fake_torchbench.write(tmp_path)
    observation = child("child_observation.py", str(tmp_path / "torchbenchmark/models/drq/obs.pkl"))
    monkeypatch.setenv(torchbench_checkout.VARIABLE, str(tmp_path))
    (row,) = child("child_torchbench.py", json.dumps(CASES["observation"]))
    assert row["facts"] == {"inputs": "real: drq/obs.pkl"}
    assert row["stands_for"] == ""
    assert row["input_sum"] == observation


def test_without_a_checkout_it_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    """No path, a path that does not exist and a folder that is none: each is named."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(torchbench_checkout.VARIABLE, raising=False)
    assert SUITE.unavailable is not None
    assert "suites fetch torchbench" in SUITE.unavailable.hint
    assert SUITE.environment == {}
    monkeypatch.setenv(torchbench_checkout.VARIABLE, str(tmp_path / "nowhere"))
    assert "does not exist" in SUITE.unavailable.reason
    monkeypatch.setenv(torchbench_checkout.VARIABLE, str(tmp_path))
    assert "torchbenchmark/__init__.py" in SUITE.unavailable.reason
    monkeypatch.setenv(torchbench_checkout.VARIABLE, str(repository))
    assert SUITE.unavailable is None
    assert SUITE.environment == {torchbench_checkout.VARIABLE: str(repository)}


def test_another_commit_is_named_and_part_of_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_torchbench: Any
) -> None:
    """The checkout's commit enters the digest; one that is not the pinned one, or is changed, is said."""
    first = fake_torchbench.write(tmp_path)
    monkeypatch.setenv(torchbench_checkout.VARIABLE, str(tmp_path))
    before = SUITE.digest
    assert first[:12] in SUITE.notes[0]
    assert torchbench_checkout.COMMIT[:12] in SUITE.notes[0]
    monkeypatch.setattr(torchbench_checkout, "COMMIT", first)
    assert SUITE.notes == ()
    (tmp_path / "utils" / "__init__.py").write_text("changed = True\n", encoding="utf-8")
    assert "has changes" in SUITE.notes[0]
    fake_torchbench.commit(tmp_path)
    assert SUITE.digest != before


def test_a_folder_inside_another_repository_has_no_commit_of_its_own(
    tmp_path: Path, fake_torchbench: Any
) -> None:
    """The commit of an unpacked copy is unknown, whatever repository it lies in."""
    fake_torchbench.write(tmp_path)
    inner = tmp_path / "copy"
    inner.mkdir()
    assert torchbench_checkout.commit_of(inner) == ""
    assert "no commit" in torchbench_checkout.note(inner)


def cli(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """One torchgauge command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(torchgauge.__file__).parents[1]), **more}
    environment.setdefault("OMP_NUM_THREADS", "1")
    return subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *arguments],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "npusim", marks=pytest.mark.skipif(find_spec("torchgauge_npusim") is None, reason="needs npusim")
        ),
    ],
)
def test_a_run_over_a_checkout_ends_in_true_rows(tmp_path: Path, repository: Path, device: str) -> None:
    """A model that trains passes, one that does nothing is unsupported, and the other commit is said.

    On a device that is not the host, upstream's step runs on an instance of its own with equal weights.
    Counting operations does not end a process whose step differentiates inside of a transform.
    """
    done = cli(
        "run", "torchbench", "--models", "phlippe_resnet,llama,lennard_jones", "--mode", "training",
        "--device", device,
        "--config", "eager", "--measure-seconds", "0.02", "--no-memory-probe", "--no-calibration",
        "--torchbench", str(repository), "--store", str(tmp_path / "store"), "--json",
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stderr
    assert "torchgauge's data is for" in done.stderr
    rows = cli("results", "query", "--store", str(tmp_path / "store"), "--json")
    status = {row["model"]: (row["status"], row["reason"]) for row in json.loads(rows.stdout)}
    assert status["phlippe_resnet"][0] == status["lennard_jones"][0] == "pass", status
    assert status["llama"][0] == "unsupported"
    assert "does nothing" in status["llama"][1]


@pytest.mark.torch
def test_a_package_that_went_away_is_told_by_each_command(tmp_path: Path, fake_torchbench: Any) -> None:
    """A case that passed and is skipped is named by the run, broken for compare and gate, and in triage.

    The run also names a case that passed and is unsupported now.
    """
    checkout, store = tmp_path / "checkout", str(tmp_path / "store")
    fake_torchbench.write(checkout)
    words = (
        "run", "torchbench", "--models", "lennard_jones,llama,maml", "--mode", "inference", "--device", "cpu",
        "--config", "eager", "--measure-seconds", "0.02", "--no-memory-probe", "--no-calibration",
        "--torchbench", str(checkout), "--store", store,
    )  # fmt: skip
    first = cli(*words)
    assert first.returncode == 0, first.stderr
    model = checkout / "torchbenchmark/models/lennard_jones/__init__.py"
    model.write_text("import no_such_package\n" + model.read_text())
    refusal = "\n    def eval(self):\n        raise NotImplementedError('no eval')\n"
    model = checkout / "torchbenchmark/models/maml/__init__.py"
    model.write_text(model.read_text() + refusal)
    second = cli(*words)
    assert second.returncode == 0, second.stderr
    assert "1 skipped (missing_package): package 'no_such_package' is not installed" in second.stderr
    assert "passed before, skipped now  torchbench/lennard_jones" in second.stderr
    assert "passed before, unsupported now  torchbench/maml" in second.stderr
    gated = cli("gate", "latest~1", "latest", "--store", store)
    assert gated.returncode == 1, gated.stdout
    assert "skipped (missing_package)" in gated.stdout
    verdicts = json.loads(cli("compare", "latest~1", "latest", "--store", store, "--json").stdout)["verdicts"]
    assert [each["metric"] for each in verdicts if each["verdict"] == "broken"] == ["status", "status"]
    assert "broken" in cli("compare", "latest~1", "latest", "--store", store).stdout
    told = cli("results", "triage", "--store", store).stdout
    assert told.count("1 case passed before and is skipped or unsupported now") == 2


@pytest.mark.torch
def test_a_new_folder_of_the_checkout_is_listed_and_runs(tmp_path: Path, fake_torchbench: Any) -> None:
    """A model without an entry in our data is found where upstream's runner looks, and its row notes that.

    A folder without a class is not a model, but one that imports it with all other names is. A batch size may
    be that of a base class. A mistyped name is refused with the nearest one.
    """
    checkout = tmp_path / "checkout"
    fake_torchbench.write(checkout)
    package = checkout / "torchbenchmark"
    for folder in ("models/my_net", "models/fb/inner_net", "canary_models/my_bird"):
        (package / folder).mkdir(parents=True)
        (package / folder / "__init__.py").write_text(fake_torchbench.MODELS["fixed_batch"])
    for folder, line in (
        ("starred", "from torchbenchmark.models.my_net import *"),
        ("own", "from .net import *"),
        ("derived", "from .net import Model as Net\n\nclass Model(Net):\n    pass"),
    ):
        (package / "models" / folder).mkdir()
        (package / "models" / folder / "__init__.py").write_text(line + "\n")
    (package / "models" / "own" / "net.py").write_text(fake_torchbench.MODELS["fixed_batch"])
    lines = fake_torchbench.MODELS["fixed_batch"].replace("BSIZE = 2\n    DEFAULT", "BSIZE = DEFAULT")
    (package / "models" / "derived" / "net.py").write_text(lines)
    (package / "models" / "helpers").mkdir()
    (package / "models" / "helpers" / "__init__.py").write_text("size = 4\n")
    here = {torchbench_checkout.VARIABLE: str(checkout)}
    listed = {
        model["name"]: model
        for model in json.loads(cli("suites", "show", "torchbench", "--json", **here).stdout)
    }
    assert "helpers" not in listed
    tiers = [listed[name]["tiers"] for name in ("my_net", "inner_net", "my_bird")]
    assert tiers == [["full"], ["full"], ["canary"]]
    for name in ("my_net", "derived"):
        assert listed[name]["batch"] == {"inference": 2, "training": 2}
    quick = ("--config", "eager", "--measure-seconds", "0.02", "--no-memory-probe", "--no-calibration")
    where = ("--device", "cpu", "--torchbench", str(checkout), "--store", str(tmp_path / "store"))
    names = ("--models", "my_net,inner_net,my_bird,starred,own,derived", "--mode", "inference,training")
    done = cli("run", "torchbench", *names, *quick, *where, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(cli("results", "query", "--store", str(tmp_path / "store"), "--json").stdout)
    assert [row["status"] for row in rows] == ["pass"] * 12
    shown = cli("results", "show", rows[0]["case_id"], "--store", str(tmp_path / "store"))
    assert "torchgauge has no data for this model" in shown.stdout
    mistyped = cli("run", "torchbench", "--models", "my_nte", *where)
    assert mistyped.returncode == 2
    assert "did you mean my_net" in mistyped.stderr


def test_asked_for_alone_without_a_checkout_it_ends_with_2(tmp_path: Path) -> None:
    """Nothing is planned, and the message says what to type."""
    empty = {torchbench_checkout.VARIABLE: "", "XDG_CACHE_HOME": str(tmp_path)}
    done = cli("run", "torchbench", "--device", "cpu", "--store", str(tmp_path / "store"), **empty)
    assert done.returncode == 2
    assert "torchgauge suites fetch torchbench" in done.stderr
    shown = cli("suites", "show", "torchbench", **empty)
    assert "not here: there is no checkout" in shown.stderr
    assert "lennard_jones" in shown.stdout


def test_fastnlp_builds_its_encoder_from_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upstream patches the installed package for that; the file of weights is empty."""
    from torchgauge.suites.torchbench.offline import Offline

    (tmp_path / "bert_config.json").write_text('{"hidden_size": 8}')
    (tmp_path / "weights.bin").write_bytes(b"")
    bert = types.ModuleType("fastNLP.modules.encoder.bert")

    class BertConfig:
        def __init__(self, fields: dict[str, int]) -> None:
            self.fields = fields

        @classmethod
        def from_json_file(cls, file: str) -> BertConfig:
            return cls(json.loads(Path(file).read_text()))

    class BertModel:
        def __init__(self, config: BertConfig) -> None:
            self.config = config

        @classmethod
        def from_pretrained(cls, name: str) -> BertModel:
            raise EOFError(name)

    bert.BertConfig, bert.BertModel = BertConfig, BertModel  # type: ignore[attr-defined]
    bert._get_bert_dir = lambda name: name  # type: ignore[attr-defined]
    bert._get_file_name_base_on_postfix = (  # type: ignore[attr-defined]
        lambda folder, end: str(next(Path(folder).glob(f"*{end}")))
    )
    for name in ("fastNLP", "fastNLP.modules", "fastNLP.modules.encoder"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["fastNLP.modules.encoder"].bert = bert  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, bert.__name__, bert)
    monkeypatch.setattr(Offline, "_refuse_connections", lambda _: None)
    monkeypatch.setattr("torchgauge.suites.torchbench.offline._load_nothing_from_urls", lambda: None)
    Offline({}).install(["fastNLP"])
    built = BertModel.from_pretrained(str(tmp_path), neg_num_output_layer=-1)  # type: ignore[call-arg]
    assert built.config.fields == {"hidden_size": 8}
