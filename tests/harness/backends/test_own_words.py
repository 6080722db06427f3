"""What a library refuses is told from what fails in it: who wrote the words, and of which type they are."""

from __future__ import annotations

from typing import Any

import pytest

from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.own_words import in_own_words, offer_named, refused_by

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

REFUSED = {
    "a statement": "raise RuntimeError('on this device: never')",
    "an assertion with words": "device = 'cpu'\nassert device == 'cuda', 'only cuda is supported'",
    "a package that is missing": "import kernels_that_nobody_has.fast",
    "an operator without a kernel": "import torch\ntorch.ones(2, device='meta').cpu()",
    "a refusal in other words": (
        "try:\n    import kernels_that_nobody_has\n"
        "except ImportError as e:\n    raise RuntimeError('install kernels') from e"
    ),
}
FAILED = {
    "a missing attribute": "object().nothing_of_this_name",
    "wrong shapes in an operator": "import torch\ntorch.ones(2, 3) @ torch.ones(2, 3)",
    "an assertion without words": "count = 1\nassert count == 2",
    "a part of torch that is gone": "import torch.nothing_of_this_name",
    "a defect in other words": (
        "try:\n    [][0]\nexcept IndexError as error:\n    raise RuntimeError('failed') from error"
    ),
}


def raised(source: str, **names: Any) -> BaseException:
    """What ``source`` raises as code of a module of the library, in which ``names`` are known."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  which one is what is judged
        exec(source, {"__name__": "planted_library.part", **names})
    error = caught.value
    assert error.__traceback__ is not None
    return error.with_traceback(error.__traceback__.tb_next)  # without this function's own frame


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_written_is_a_refusal(name: str) -> None:
    """Of the library that wrote it, and of no other, also not of one whose name begins alike."""
    error = raised(REFUSED[name])
    assert refused_by(error, "planted_library")
    assert refused_by(error, "another", "planted_library.part")
    assert not refused_by(error, "planted")
    assert not refused_by(error, "another")


@pytest.mark.parametrize("name", FAILED)
def test_what_fails_in_a_library_is_no_refusal(name: str) -> None:
    """A defect of its own, or of what it calls."""
    assert not refused_by(raised(FAILED[name]), "planted_library")


def test_what_others_raise_below_a_library_is_no_refusal_of_its() -> None:
    """Neither by its type, nor as not implemented: a model's own words are not the library's."""

    def refuses() -> None:
        raise RuntimeError("not here")

    def unfinished() -> None:
        raise NotImplementedError("some day")

    assert not refused_by(raised("call()", call=refuses), "planted_library")
    assert not refused_by(raised("call()", call=unfinished), "planted_library")


def test_a_refusal_becomes_unsupported_and_a_failure_stays_itself() -> None:
    """The reason has the library's name, the type and the first line of what it said."""
    source = "raise RuntimeError('on cuda only\\nand more')"
    with pytest.raises(NotOfferedError, match=r"^planted_library refuses: RuntimeError: on cuda only$"):
        _run_in_own_words(source)
    with pytest.raises(AttributeError):
        _run_in_own_words(FAILED["a missing attribute"])
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        _run_in_own_words(FAILED["wrong shapes in an operator"])


def _run_in_own_words(source: str) -> None:
    with in_own_words("planted_library"):
        exec(source, {"__name__": "planted_library.part"})


def test_a_word_that_nobody_knows_has_a_nearest_one() -> None:
    """So that a person sees what was meant; of nothing there is none."""
    known = {"adamw-8bit": 8, "adamw-4bit": 4}
    assert offer_named("adamw-4bit", known, "it offers no optimizer") == 4
    with pytest.raises(NotOfferedError, match="no optimizer 'adamw-8bits'; the nearest is 'adamw-8bit'"):
        offer_named("adamw-8bits", known, "it offers no optimizer")
    with pytest.raises(NotOfferedError, match=r"no optimizer 'x'$"):
        offer_named("x", {}, "it offers no optimizer")
