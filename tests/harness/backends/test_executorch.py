"""Programs of ExecuTorch on small models: what they compute, what delegates take, and what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from torchgauge.errors import MissingPackageError, NotOfferedError
from torchgauge.harness.backends.backend import backend_named
from torchgauge.harness.backends.executorch_int8 import FLOOR_DB, quantised, rule
from torchgauge.harness.backends.executorch_program import Program
from torchgauge.harness.backends.prepared import BackendSession, Prepared, prepare
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.records import Cause, Configuration, Status, Workload

torch = pytest.importorskip("torch")
pytest.importorskip("executorch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
XNNPACK = "XnnpackBackend"


class Host:
    """The part of a device session that a backend needs."""

    name = "a device"

    def __init__(self, kind: str = "cpu") -> None:
        self.torch_device = torch.device(kind)

    def synchronize(self) -> None:
        """Nothing waits."""

    def seed(self, seed: int) -> None:
        """Seed the host's generator."""
        torch.manual_seed(seed)


class Model:
    """A module with its inputs, prepared by the backend ``executorch`` in a folder."""

    def __init__(self, folder: Path, module: Any, *args: Any, **kwargs: Any) -> None:
        self.folder, self.module, self.args, self.kwargs = folder, module.eval(), args, kwargs
        self.stages: list[str] = []
        self.autocast: Any = None

    def subject(self, host: Host) -> Subject:
        """It, on ``host``."""
        subject = Subject(self.module, self.module, self.args, self.kwargs, None, host, 0)
        return replace(subject, autocast=self.autocast)

    def step(self, call: Any, host: Host) -> Any:
        """One call."""
        del host
        return lambda: call(*self.args, **self.kwargs)

    def prepared(self, *, kind: str = "cpu", fresh: bool = False, **options: Any) -> Prepared:
        """What the backend makes of it on a device of ``kind``."""
        configuration = Configuration("c", "executorch", tuple(sorted(options.items())))
        host = Host(kind)
        session = BackendSession(
            host,
            lambda call: self.step(call, host),
            cache=str(self.folder),
            fresh=fresh,
            stage=self.stages.append,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return prepare(backend_named("executorch"), self.subject(host), configuration, session)


class Speaker(Model):
    """A tiny language model of suite ``llm`` in scenario ``generate``; sequences of a batch end apart."""

    def __init__(self, folder: Path, architecture: str, batch: int = 1) -> None:
        from torchgauge.suites.llm.models import build

        sizes = (("output", 6), ("prompt", 5))
        workload = Workload("llm", architecture, mode="generate", batch=batch, shape=sizes)
        recipe = {"architecture": architecture, "tiny": True, "unequal": batch > 1}
        self.built = build(workload, recipe)
        super().__init__(folder, self.built.module, **self.built.kwargs)

    def subject(self, host: Host) -> Subject:
        """It, with what it can do."""
        return replace(super().subject(host), built=self.built)

    def step(self, call: Any, host: Host) -> Any:
        """One generation."""
        from torchgauge.harness.scenarios.generate_steps import step

        return step(self.subject(host).run_by(call))


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    """As in scenario inference."""
    torch.manual_seed(0)
    with torch.no_grad():
        yield


class Sums(torch.nn.Module):  # type: ignore[misc]
    """Nothing that XNNPACK has."""

    def forward(self, x: Any) -> Any:
        return torch.cumsum(x, -1)


class Gamma(torch.nn.Module):  # type: ignore[misc]
    """An operator of which the runtime has no kernel."""

    def forward(self, x: Any) -> Any:
        return torch.lgamma(x)


class Branches(torch.nn.Module):  # type: ignore[misc]
    """What comes next depends on data."""

    def forward(self, x: Any) -> Any:
        return x + 1 if x.sum() > 0 else x - 1


class Twice(torch.nn.Module):  # type: ignore[misc]
    """An operator without a variant that writes into given memory."""

    def forward(self, x: Any) -> Any:
        return torch.ops.torchgauge_planted.twice(x)


class Named(torch.nn.Module):  # type: ignore[misc]
    """Arguments by name, results by name and in a tuple."""

    def forward(self, *, b: Any, a: Any) -> Any:
        return {"less": a - b, "both": (a + b, a)}


def by_metric(prepared: Prepared) -> dict[str, tuple[float, ...]]:
    """The samples of each measurement."""
    return {each.metric: each.samples for each in prepared.measurements}


def test_a_program_of_a_model_under_autocast_has_its_dtypes(tmp_path: Path) -> None:
    """Autocast is applied where the exported model is lowered: outside of it the program was float32."""
    model = Model(tmp_path, torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()), torch.randn(2, 8))
    model.autocast = partial(torch.autocast, "cpu", torch.bfloat16)
    prepared = model.prepared()
    assert prepared.call(*model.args).dtype is torch.bfloat16


def test_what_a_delegate_has_is_counted_and_timed(tmp_path: Path) -> None:
    """Two products go to XNNPACK and the running sum stays; every stage is measured, and no trace is left."""
    layers = [torch.nn.Linear(256, 256), torch.nn.Linear(256, 256), Sums()]
    model = Model(tmp_path, torch.nn.Sequential(*layers), torch.randn(64, 256))
    made = model.prepared(delegate=XNNPACK)
    assert torch.allclose(made.call(*model.args), model.module(*model.args), atol=1e-4)
    found = by_metric(made)
    assert min(found["export_time"] + found["lower_time"] + found["package_load"]) > 0
    assert found["package_size"][0] > 2 * 256 * 256 * 4
    assert (found["delegated_share"], made.degraded) == ((2 / 3,), [])
    assert len(found["delegated_time_share"]) == 5
    assert all(0.0 < share < 1.0 for share in found["delegated_time_share"])
    assert made.evidence["delegated_operators"] == "2 of 3 in 1 subgraph"
    assert made.evidence["not_delegated"] == "aten_cumsum_default x1"
    assert made.evidence["executorch_threads"] == torch.get_num_threads()
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["model.pte", "trees.json"]


def test_nothing_delegated_is_degraded(tmp_path: Path) -> None:
    """A program that was asked for a delegate and has nothing for it ran by another path."""
    made = Model(tmp_path, Sums(), torch.randn(4, 8)).prepared(delegate=XNNPACK)
    assert made.degraded == [f"{XNNPACK} was requested, but 0 of 1 operator were delegated to it"]
    found = by_metric(made)
    assert (found["delegated_share"], set(found["delegated_time_share"])) == ((0.0,), {0.0})


def test_arguments_and_results_keep_their_names(tmp_path: Path) -> None:
    """Also in a fresh process, which loads the program that is there and exports nothing."""
    given = {"a": torch.tensor([5.0, 7.0]), "b": torch.tensor([2.0, 3.0])}
    model = Model(tmp_path, Named(), b=given["b"], a=given["a"])
    for fresh in (False, True):
        made = model.prepared(fresh=fresh)
        found = made.call(**given)  # in another order than it was exported with
        assert found["less"].tolist() == [3.0, 4.0]
        assert [each.tolist() for each in found["both"]] == [[7.0, 10.0], [5.0, 7.0]]
        assert ("export_time" in by_metric(made)) is not fresh


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (Gamma, r"stage load: the runtime has no kernel for aten::lgamma\.out"),
        (Branches, "stage export: GuardOnDataDependentSymNode: Could not guard on data-dependent"),
        (Twice, r"stage lower: RuntimeError: Missing out variants: \{'torchgauge_planted::twice'\}"),
    ],
)
def test_what_the_library_refuses_is_unsupported_in_its_words(tmp_path: Path, module: Any, said: str) -> None:
    """The stage and the operator, or what cannot be known before it runs, are in the reason."""
    with torch.library._scoped_library("torchgauge_planted", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        with pytest.raises(NotOfferedError, match=said):
            Model(tmp_path, module(), torch.randn(4, 4)).prepared()


def test_delegates_are_those_of_the_runtime(tmp_path: Path) -> None:
    """One that it has not is refused with those that it has; of several, each says why it cannot serve."""
    from executorch.runtime import Runtime

    there = set(Runtime.get().backend_registry.registered_backend_names)
    model = Model(tmp_path, Sums(), torch.randn(4, 8))
    with pytest.raises(NotOfferedError, match=f"no delegate NoSuchBackend: it has .*{XNNPACK}"):
        model.prepared(delegate="NoSuchBackend")
    assert model.prepared(delegate="any").evidence["delegate"] in there
    others = there - {XNNPACK}
    try:
        made = model.prepared(delegate="any", apart_from=XNNPACK)
        assert made.evidence["delegate"] in others
    except NotOfferedError as error:
        assert all(f"{name}: " in str(error) for name in others) and XNNPACK not in str(error)  # noqa: PT017, PT018


def test_a_device_that_is_not_the_host_is_told_where_it_was_computed(tmp_path: Path) -> None:
    """The reason is what a small program did, not a list of names."""
    model = Model(tmp_path, Sums(), torch.randn(4, 8))
    with pytest.raises(NotOfferedError, match="returned its result on cpu, but a device was requested"):
        model.prepared(kind="meta")


def test_a_missing_package_says_what_to_type(tmp_path: Path) -> None:
    """The extra of torchgauge has it with all that it needs."""
    backend: Any = replace(backend_named("executorch"), packages=("executorch_that_is_not_there",))
    configuration, host = Configuration("c", "executorch"), Host()
    subject = Subject(Sums(), Sums(), (), {}, None, host, 0)
    session: Any = BackendSession(host, lambda call: call, cache=str(tmp_path))
    with pytest.raises(MissingPackageError) as raised:
        prepare(backend, subject, configuration, session)
    assert raised.value.hint == "pip install 'torchgauge[executorch]'"


def test_8_bits_are_smaller_and_judged_by_their_noise(tmp_path: Path) -> None:
    """A convolution with its norm, on XNNPACK: at most half of the file, above the floor, eager intact."""
    from torchgauge.harness.worker.accuracy import Verdict

    layers = [
        torch.nn.Conv2d(32, 64, 3),
        torch.nn.BatchNorm2d(64),
        torch.nn.ReLU(),
        torch.nn.Conv2d(64, 64, 3),
    ]
    model = Model(tmp_path, torch.nn.Sequential(*layers), torch.randn(1, 32, 8, 8))
    before = model.module(*model.args)
    made = model.prepared(delegate=XNNPACK, int8=XNNPACK)
    found = made.call(*model.args)
    assert torch.equal(model.module(*model.args), before)
    assert made.rule is not None
    verdict = Verdict()
    verdict.fail(Cause.TOLERANCE, "largest error above the tolerance of float32")
    assert made.rule({"out": before}, {"out": found}, verdict).ok
    values = by_metric(made)
    assert values["sqnr"][0] > FLOOR_DB
    assert values["package_size"][0] < (32 * 64 + 64 * 64) * 9 * 4 / 2
    assert min(values["quantise_time"] + values["delegated_share"]) > 0
    for wrong in (found * 2, found.nan_to_num() * float("nan"), found[:, :1]):
        assert not made.rule({"out": before}, {"out": wrong}, verdict).ok


def test_wrong_scales_are_below_the_floor(tmp_path: Path) -> None:
    """Calibrated on inputs that are a hundredth of those of the case, all real ones are cut off."""
    from torchgauge.harness.worker.accuracy import Verdict

    module, x = (
        torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 32)).eval(),
        torch.randn(16, 64),
    )
    for scale, right in ((1.0, True), (0.01, False)):
        program = Program(tmp_path / f"{scale}.pte", None)
        program.export(quantised(XNNPACK, module, [((x * scale,), {})]), (x,), {})
        program.lower()
        program.load()
        verdict = rule(Prepared(module))({"out": module(x)}, {"out": program.loaded()(x)}, Verdict())
        assert verdict.ok is right
        assert ("below the minimum of 10.0 dB for 8 bits" in verdict.detail) is not right


@pytest.mark.parametrize("delegate", ["", XNNPACK])
def test_an_input_that_lies_otherwise_in_memory_is_read_right(tmp_path: Path, delegate: str) -> None:
    """Exported with one layout and called with others: the runtime by itself takes one for the other."""
    convolution, plain = torch.nn.Conv2d(3, 8, 3), torch.randn(2, 3, 6, 6)
    layouts = {
        "contiguous": plain,
        "channels_last": plain.to(memory_format=torch.channels_last),
        "permuted": plain.permute(2, 3, 1, 0).contiguous().permute(3, 2, 0, 1),
        "sliced": plain.repeat_interleave(2, -1)[..., ::2],
    }
    assert len({each.stride() for each in layouts.values()}) == len(layouts)
    right = convolution(plain)
    raw = None
    for name, given in layouts.items():
        model = Model(tmp_path / name, convolution, given)
        made = model.prepared(delegate=delegate) if delegate else model.prepared()
        for other in layouts.values():
            assert torch.allclose(made.call(other), right, atol=1e-4)
        assert torch.allclose(model.prepared(fresh=True, delegate=delegate).call(given), right, atol=1e-4)
        assert ("inputs_copied" in made.evidence) is (name in ("permuted", "sliced"))
        if name == "contiguous":
            raw = next((tmp_path / name).rglob("model.pte"))
    program = Program(raw, None)
    program.load()
    assert not torch.allclose(program._method.execute([layouts["channels_last"]])[0], right, atol=1e-4)


@pytest.mark.parametrize(("architecture", "batch", "delegate"), [("llama", 1, XNNPACK), ("gpt2", 3, "")])
def test_a_program_generates_what_the_model_generates(
    tmp_path: Path, architecture: str, batch: int, delegate: str
) -> None:
    """Every id is that of transformers' own generate, a second time too: nothing is left of the first."""
    pytest.importorskip("transformers")
    from torchgauge.harness.scenarios.generate_steps import observe, reference

    model, host = Speaker(tmp_path, architecture, batch), Host()
    settings = (model.module.config.use_cache, model.module.generation_config.to_dict())
    made = model.prepared(delegate=delegate) if delegate else model.prepared()
    assert (model.module.config.use_cache, model.module.generation_config.to_dict()) == settings
    subject = model.subject(host).run_by(made.call)
    right, first, again = reference(model.subject(host)), observe(subject), observe(subject)
    assert right["out.ids"].shape == (batch, 6)
    for seen in (first, again, observe(model.subject(host).run_by(model.prepared(fresh=True).call))):
        assert torch.equal(seen["out.ids"], right["out.ids"])
        assert torch.allclose(seen["out.logits"], right["out.logits"], atol=1e-4)
    decoder = model.step(made.call, host).decoder
    assert decoder.cache_bytes == 2 * model.module.config.num_hidden_layers * batch * 11 * _width(model) * 4
    assert made.evidence["prefill"] == "5 calls of the program with one token each"
    assert ("delegated_time_share" in by_metric(made)) is bool(delegate)
    assert model.stages[:4] == ["export", "export", "lower", "load"]
    assert model.stages[-1] == "run"


def _width(model: Any) -> int:
    """Numbers of the keys of one place in one layer."""
    return 2 * 16 if model.module.config.model_type == "llama" else 64


def test_a_crash_of_the_runtime_is_one_case(make_sandbox: Any) -> None:
    """A damaged file ends the process that loads it: the row says where, and the others are measured."""
    sandbox = make_sandbox()
    names = "eager,executorch-portable,executorch-xnnpack"
    words = ("--models", "writes_a_damaged_program", "--measure-seconds", "0.02", "--no-memory-probe")
    done = sandbox.measure("observed", *words, "--device", "cpu", "--config", names)
    assert "Traceback" not in done.stderr
    rows = {row.case.configuration.name: row for row in sandbox.rows()}
    assert len(rows) == 3
    row = rows["executorch-portable"]
    assert (row.status, row.cause) == (Status.CRASH, Cause.SIGNAL)
    assert row.reason == "signal 11 (SIGSEGV) in phase compile, in backend 'executorch', stage load"
    assert [rows[name].status for name in ("eager", "executorch-xnnpack")] == [Status.PASS] * 2


def test_a_wrong_program_is_never_timed(make_sandbox: Any) -> None:
    """A model that computes something else when it is exported: eager passes, the program does not."""
    sandbox = make_sandbox()
    names = "eager,executorch-portable"
    models = ("--models", "wrong_in_a_program,returns_a_handle", "--measure-seconds", "0.02")
    done = sandbox.measure("observed", *models, "--device", "cpu", "--config", names, "--no-memory-probe")
    assert "Traceback" not in done.stderr
    rows = {(row.case.workload.model, row.case.configuration.name): row for row in sandbox.rows()}
    assert rows["wrong_in_a_program", "eager"].status is Status.PASS
    row = rows["wrong_in_a_program", "executorch-portable"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert "largest error 0.5" in row.reason
    assert not [each for each in row.measurements if each.metric == "latency" and each.samples]
    assert {each.metric for each in row.measurements} >= {"export_time", "lower_time", "package_load"}


def test_a_program_that_lost_autocast_is_an_error(make_sandbox: Any) -> None:
    """Its result is nearer to float64 than eager's, and of eager's dtype: only the program's dtypes tell.

    A program keeps what the model switches off: ExecuTorch traces it again, and cast that too.
    """
    sandbox = make_sandbox()
    names = ("executorch-portable", "aot-inductor")
    words = ("--models", "loses_autocast,switches_autocast_off", "--dtype", "amp", "--device", "cpu")
    quick = ("--config", ",".join(("eager", *names)), "--measure-seconds", "0.02", "--no-memory-probe")
    done = sandbox.measure("observed", *words, *quick)
    assert "Traceback" not in done.stderr
    rows = {(row.case.workload.model, row.case.configuration.name): row for row in sandbox.rows()}
    reason = (
        "the configuration did not run: eager has results in bfloat16 under autocast, "
        "but the program has only float32"
    )
    for name in names:
        lost, kept = rows["loses_autocast", name], rows["switches_autocast_off", name]
        assert (lost.status, lost.reason) == (Status.ERROR, reason)
        assert (kept.status, kept.reason) == (Status.PASS, "")
        assert dict(kept.facts)["program_dtypes"] == "bfloat16, float32"
