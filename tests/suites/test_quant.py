"""The suite of quantised models: what it finds in torchao, and what it plans beside that."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from torchgauge.errors import InfrastructureError
from torchgauge.harness.planning.entry_words import with_beside
from torchgauge.suites import kept_answer
from torchgauge.suites.quant import catalogue
from torchgauge.suites.quant.catalogue import Offers, Word
from torchgauge.suites.quant.suite import SUITE

needs_torchao = pytest.mark.skipif(importlib.util.find_spec("torchao") is None, reason="needs torchao")


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Int8WeightOnlyConfig", "int8-weight-only"),
        ("IntNWeightOnlyConfig", "intn-weight-only"),
        ("Int8DynamicActivationUIntxWeightConfig", "int8-dynamic-activation-uintx-weight"),
        ("GGUFWeightOnlyConfig", "gguf-weight-only"),
    ],
)
def test_a_word_is_made_of_the_name_of_a_class(name: str, word: str) -> None:
    """One rule for all names of torchao."""
    from torchgauge.suites.quant.offered import word_of

    assert word_of(type(name, (), {})) == word


@needs_torchao
def test_configurations_are_found_in_the_installed_torchao() -> None:
    """Stable ones and prototypes, packings and few bits; none that only holds others or is for training."""
    known = {each.word: each.prototype for each in SUITE.offers.offers if each.backend == "torchao"}
    assert SUITE.offers.missing == ""
    for word in ("int8-weight-only", "int8-static-activation-int8-weight", "intx-weight-only-int4"):
        assert known[word] is False
    assert known["prototype-int4-weight-only"] is True
    assert known["int4-weight-only-plain-int32"] is False
    for part in ("coreml", "fqn", "awq", "gptq", "smooth", "training", "qat"):
        assert not [word for word in known if part in word]


@needs_torchao
def test_entries_have_the_names_of_what_was_found() -> None:
    """Words of the data file become configurations; the stable word leaves prototypes out."""
    entries = {each.name: each for each in SUITE.models()}
    names = entries["linear-1024x2816"].configurations
    assert names[:2] == ("eager", "inductor")
    assert "torchao-int8-weight-only" in names
    assert "torchao-prototype-int4-weight-only" not in names
    assert "torchao-prototype-int4-weight-only" in entries["linear-256x768"].configurations


def test_one_name_stands_for_all_where_torchao_is_missing() -> None:
    """Its row says what to install."""
    nothing = Offers("", "torchao", ())
    assert nothing.names("torchao-*") == ("torchao-int8-weight-only",)
    assert nothing.names("optim-adam-*") == ("optim-adamw-8bit",)
    assert nothing.names("float8-*") == ("float8-tensorwise",)


def test_words_of_a_data_file_stand_for_what_is_found() -> None:
    """All of a backend, all but prototypes, what a pattern matches; any other word for itself."""
    found = Offers("1", "", (Word("torchao", "a"), Word("torchao", "b", prototype=True), Word("optim", "a")))
    assert found.names("torchao-stable") == ("torchao-a",)
    assert found.names("torchao-*") == ("torchao-a", "torchao-b")
    assert found.names("torchao-b*") == ("torchao-b",)
    assert found.names("optim-*") == ("optim-a",)
    assert found.names("torchao-c") == ("torchao-c",)
    assert found.names("executorch-*") == ("executorch-*",)


def test_a_broken_torchao_costs_its_own_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One name stands for all, and its row says how torchao is broken; other suites are planned."""
    pytest.importorskip("torchao")

    def broken(*_: object) -> Offers:
        raise InfrastructureError("torchao cannot be imported")

    monkeypatch.setattr(kept_answer.Question, "ask", broken)
    monkeypatch.setattr(kept_answer, "user_cache", lambda: Path("nowhere"))
    catalogue.offers_of.cache_clear()
    try:
        found = catalogue.offers_of()
    finally:
        catalogue.offers_of.cache_clear()
    assert found.names("torchao-*") == ("torchao-int8-weight-only",)
    assert found.missing == ""


def test_the_compiled_model_is_planned_beside_a_quantised_one() -> None:
    """Whatever a person names: a speed-up is over the compiled model that is not quantised."""
    names = [each.name for each in with_beside(["torchao-int8-weight-only", "eager"], None)]
    assert names == ["inductor", "torchao-int8-weight-only", "eager"]
