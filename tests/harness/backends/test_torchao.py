"""Quantised copies of a small stack: what is told of them, what is refused, and what is not believed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from torchgauge.errors import MissingPackageError, NotOfferedError
from torchgauge.harness.backends.backend import backend_named
from torchgauge.harness.backends.prepared import BackendSession, Prepared, prepare
from torchgauge.harness.scenarios.scenario import RemadeCall, Subject
from torchgauge.records import Configuration

torch = pytest.importorskip("torch")
pytest.importorskip("torchao")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
PLANTS = "torchao.prototype.planted"


class Host:
    """The part of a device session that a backend needs."""

    torch_device, name = torch.device("cpu"), "cpu"

    def synchronize(self) -> None:
        """The host has nothing to wait for."""


class Stack:
    """Two linear layers in bfloat16, quantised by a configuration of torchao."""

    def __init__(self, folder: Path) -> None:
        torch.manual_seed(0)
        self.module = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Linear(128, 64)).bfloat16()
        self.inputs, self.folder = torch.randn(4, 64, dtype=torch.bfloat16), folder
        self.subject = Subject(self.module, self.module, (self.inputs,), {}, None, Host(), 0)

    def prepared(self, word: str, **options: Any) -> Prepared:
        """What the backend makes of the stack."""
        options["config"] = word
        configuration = Configuration("c", "torchao", tuple(sorted(options.items())))
        session = BackendSession(Host(), lambda call: lambda: call(self.inputs), cache=str(self.folder))
        return prepare(backend_named("torchao"), self.subject, configuration, session)

    def judged(self, made: Prepared) -> Any:
        """The verdict over what was made, by its own rule."""
        from torchgauge.harness.worker.accuracy import Verdict

        with made.context():
            found = made.call(self.inputs)
        assert made.rule is not None
        return made.rule({"out": self.module(self.inputs)}, {"out": found}, Verdict())


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """A stack, and no gradients."""
    with torch.no_grad():
        yield Stack(tmp_path)


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that gives torchao one more configuration, with a handler."""
    from torchao.core.config import AOBaseConfig
    from torchao.quantization import transform_module

    from torchgauge.suites.quant import offered

    monkeypatch.setitem(sys.modules, PLANTS, ModuleType(PLANTS))
    kept: list[type] = []

    def planted(name: str, handler: Any) -> None:
        kind = type(name, (AOBaseConfig,), {"__module__": PLANTS})
        kept.append(kind)
        monkeypatch.setitem(transform_module._QUANTIZE_CONFIG_HANDLER, kind, handler)
        offered._offers.cache_clear()

    yield planted
    kept.clear()
    offered._offers.cache_clear()


def test_a_quantised_copy_says_what_became_of_it(stack: Stack) -> None:
    """Int8 weights take half the bytes, pass by the bits, and leave the model and inductor as they were."""
    import torch._inductor.config as settings
    from torchao.quantization.utils import compute_error

    made = stack.prepared("int8-weight-only")
    assert isinstance(made.call, RemadeCall)
    assert made.call.module is not stack.module
    assert type(stack.module[0].weight) is torch.nn.Parameter
    assert settings.coordinate_descent_tuning is False
    verdict = stack.judged(made)
    made.judged()
    found = {each.metric: each.samples for each in made.measurements}
    assert verdict.ok
    assert made.degraded == []
    assert made.evidence["quantised_linears"] == "2 of 2"
    assert made.evidence["quantised_tensors"] == "Int8Tensor x2"
    assert "mm" in str(made.evidence["products"])
    whole = sum(each.numel() * 2 for each in stack.module.parameters())
    assert 0.5 * whole < found["model_size"][0] < 0.6 * whole
    with made.context():
        theirs = compute_error(stack.module(stack.inputs).double(), made.call(stack.inputs).double())
    assert found["sqnr"][0] == pytest.approx(float(theirs))
    assert found["sqnr"][0] > float(made.evidence["sqnr_floor_db"])


def test_fixed_scales_are_found_with_the_inputs_of_the_case(stack: Stack) -> None:
    """A configuration of fixed activations gets a scale for each layer, also in batches of texts."""
    stack.inputs = stack.inputs.reshape(2, 2, 64)
    made = stack.prepared("int8-static-activation-int8-weight")
    assert stack.judged(made).ok
    made.judged()
    assert made.evidence["quantised_linears"] == "2 of 2"
    assert made.evidence["inputs_kept_in"] == "8 bits"
    assert "_int_mm" in str(made.evidence["products"])
    assert made.degraded == []


def test_floating_point_products_of_quantised_activations_are_degraded(stack: Stack) -> None:
    """A format that is meant for export dequantises both and multiplies floats: the row says so."""
    made = stack.prepared("int8-dynamic-activation-intx-weight")
    assert stack.judged(made).ok
    made.judged()
    assert len(made.degraded) == 1
    assert made.degraded[0].startswith("quantised activations were requested, but every matmul ran")


def test_a_configuration_that_quantises_nothing_is_degraded(stack: Stack, plant: Any) -> None:
    """A handler that hands the layer back is found by what the layers hold, however right its result is."""
    plant("PlantedNothingConfig", lambda module, _: module)
    made = stack.prepared("planted-nothing")
    assert stack.judged(made).ok
    assert made.degraded == ["none of 2 linear layers was quantised"]
    assert made.evidence["quantised_tensors"] == "none"


def test_a_wrong_scale_fails(stack: Stack, plant: Any) -> None:
    """A layer whose scale is half as large again computes something else, by more than its bits explain."""
    from torchao.quantization import Int8WeightOnlyConfig
    from torchao.quantization.transform_module import _QUANTIZE_CONFIG_HANDLER

    def handler(module: Any, _: Any) -> Any:
        made = _QUANTIZE_CONFIG_HANDLER[Int8WeightOnlyConfig](module, Int8WeightOnlyConfig())
        made.weight.scale.mul_(1.1)
        return made

    plant("PlantedInt8WeightOnlyConfig", handler)
    made = stack.prepared("planted-int8-weight-only")
    verdict = stack.judged(made)
    assert not verdict.ok
    assert verdict.detail.startswith("SQNR of ")
    assert made.degraded == []


def test_what_torchao_refuses_is_unsupported_in_its_own_words(stack: Stack, plant: Any) -> None:
    """An exception of torchao's code is a refusal, a missing attribute a defect, our own code is neither."""
    with pytest.raises(NotOfferedError, match="TorchAO kernel library is not loaded"):
        stack.prepared("int8-dynamic-activation-intx-weight-opaque-torchao-lowbit")

    def defect(module: Any, _: Any) -> Any:
        return module.nothing_of_this_name

    plant("PlantedDefectConfig", defect)
    with pytest.raises(AttributeError):
        stack.prepared("planted-defect")
    with pytest.raises(NotOfferedError, match="no configuration 'int8-weight-onli'; the nearest is 'int8-we"):
        stack.prepared("int8-weight-onli")


def test_what_does_not_compile_and_runs_is_degraded_with_the_compilers_words(stack: Stack) -> None:
    """Codes are a tensor in a tensor, which dynamo does not take: bytes and result are right."""
    made = stack.prepared("codebook-weight-only")
    assert stack.judged(made).ok
    (said,) = made.degraded
    assert said.startswith("torch.compile failed, so the model runs uncompiled: InternalTorchDynamoError")
    assert made.evidence["quantised_tensors"] == "CodebookQuantizedTensor x2"


def test_products_that_the_device_refuses_are_tried_by_themselves(stack: Stack) -> None:
    """Blocks with a scale each: the smallest such product says what a whole model runs into."""
    from torchgauge.harness.backends.float8_products import refused

    session = BackendSession(Host(), lambda call: call)
    assert refused(session) == ""
    said = refused(session, in_blocks=True)
    assert said.startswith("no float8 matmul with block-wise scales runs on cpu: ")
    with pytest.raises(NotOfferedError) as caught:
        stack.prepared("mx-dynamic-activation-mx-weight")
    assert caught.value.message == said


def test_bits_that_only_a_trained_quantiser_knows_are_four(stack: Stack) -> None:
    """Without them torchao multiplies by None; the word says how many they are."""
    made = stack.prepared("stretched-intx-weight-int4")
    assert stack.judged(made).ok
    assert (made.degraded, made.evidence["weights_kept_in"]) == ([], "4 bits")
    with pytest.raises(NotOfferedError, match="nearest is 'stretched-intx-weight-int4'"):
        stack.prepared("stretched-intx-weight")


def test_arguments_of_the_class_may_be_given(stack: Stack) -> None:
    """An option that is none of the backend's is one of the class; an unknown one is refused by name."""
    with pytest.raises(NotOfferedError, match=r"Int8WeightOnlyConfig of torchao .* has no 'grupe_size'"):
        stack.prepared("int8-weight-only", grupe_size=32)


def test_a_missing_package_says_what_to_type(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torchao its cases are skipped, with the command of the extra."""
    monkeypatch.setattr("torchgauge.harness.backends.prepared.find_spec", lambda _: None)
    with pytest.raises(MissingPackageError) as caught:
        stack.prepared("int8-weight-only")
    assert caught.value.hint == "pip install 'torchgauge[quant]'"


def test_a_model_whose_weights_stay_as_they_are_is_not_a_quantised_one(stack: Stack, plant: Any) -> None:
    """Layers of other kinds hold most weights of some models; one layer of two is not the model either."""
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    made = stack.prepared("int8-weight-only")
    assert made.evidence["quantised_share"] == 1.0
    stack.module.append(torch.nn.Bilinear(64, 64, 64).bfloat16())  # 262,144 weights beside 16,384
    stack.module[2].forward = lambda given: given
    made = stack.prepared("int8-weight-only")
    assert made.degraded == ["2 of 2 linear layers are quantised, with 6% of the weights"]

    def first_only(module: Any, _: Any) -> Any:
        if module.in_features == 64:
            quantize_(module, Int8WeightOnlyConfig())
        return module

    del stack.module[2]
    plant("FirstOnlyConfig", first_only)
    made = stack.prepared("first-only")
    assert made.degraded == ["1 of 2 linear layers are quantised, with 50% of the weights"]
