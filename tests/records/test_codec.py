"""Records cross processes and files as plain JSON values, strictly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchgauge.records import (
    Cause,
    DeviceTarget,
    Measurement,
    Modifier,
    Outcome,
    Phase,
    RecordError,
    Status,
    from_plain,
    to_json,
    to_plain,
)
from torchgauge.testing import make_case, make_result


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"statuss": "pass"}, "Outcome.statuss: unknown field"),
        ({"status": "passed"}, "Outcome.status: 'passed' is not one of pass"),
        ({"measurements": 3}, "Outcome.measurements: expected a list, found int"),
        (
            {"measurements": [{"metric": "x", "unit": "s", "samples": ["a"]}]},
            "Outcome.measurements[0].samples[0]: ",
        ),
        ({"facts": [["only one"]]}, "Outcome.facts[0]: expected 2 items, found 1"),
    ],
)
def test_wrong_values_are_refused_with_the_path(change: dict[str, object], message: str) -> None:
    """The message starts with the path of the mistake, whatever its depth."""
    plain = to_plain(Outcome("key", Status.PASS, Phase.DONE))
    with pytest.raises(RecordError) as caught:
        from_plain(Outcome, {**plain, **change})
    assert str(caught.value).startswith(message)


def test_non_finite_numbers_are_refused_at_the_source() -> None:
    """Neither a measurement nor its JSON can hold NaN or infinity."""
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="a sample is not finite"):
            Measurement("latency", "s", (bad,))
        with pytest.raises(ValueError, match="not JSON compliant"):
            to_json({"x": bad})


def test_missing_value_is_a_reason_and_never_both() -> None:
    """A measurement has samples or the reason of their absence."""
    with pytest.raises(ValueError, match="needs either samples or the reason"):
        Measurement("latency", "s")
    with pytest.raises(ValueError, match="needs either samples or the reason"):
        Measurement("latency", "s", (1.0,), absent="no clock")
    with pytest.raises(ValueError, match="1 block for 2 samples"):
        Measurement("latency", "s", (1.0, 2.0), (0,))


def test_causes_belong_to_their_status() -> None:
    """A cause that a status cannot carry is refused."""
    with pytest.raises(ValueError, match="cannot have the cause"):
        Outcome("k", Status.PASS, Phase.DONE, Cause.SIGNAL)
    assert Outcome("k", Status.CRASH, Phase.EAGER, Cause.SIGNAL).cause is Cause.SIGNAL


def test_case_keys_tell_apart_what_must_not_be_compared() -> None:
    """Every part of workload, configuration and device enters the key, and the id where people see it."""
    case = make_case()
    others = [
        make_case(batch=2),
        make_case(dtype="bfloat16"),
        make_case(seed=1),
        make_case(size="full"),
        make_case(shape=(("seq", 8),)),
        make_case(configuration="inductor"),
        replace(case, device=DeviceTarget("fake", 1)),
    ]
    assert len({each.key for each in [case, *others]}) == len(others) + 1
    assert len({each.id for each in [case, *others]}) == len(others) + 1
    assert case.workload.declared_hash == make_case(configuration="inductor").workload.declared_hash


def test_unexpected_means_other_than_the_data_file_says() -> None:
    """A promise is kept or not; without one, only attempted cases that did not pass are unexpected."""
    case = make_case()
    assert not make_result(case).unexpected
    assert make_result(case, Status.ERROR).unexpected
    assert not make_result(case, Status.UNSUPPORTED).unexpected
    assert not replace(make_result(case, Status.ERROR), expected=Status.ERROR).unexpected
    assert replace(make_result(case), expected=Status.ERROR).unexpected
    right = replace(make_result(case), expected=Status.FAIL_ACCURACY)
    assert right.unexpected
    assert not replace(right, modifiers=(Modifier.UNCHECKED,)).unexpected
