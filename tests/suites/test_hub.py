"""What a library's error means when weights cannot be had, wherever in the chain of causes it stands."""

from __future__ import annotations

from email.message import Message
from urllib.error import HTTPError, URLError

import pytest

from torchgauge.errors import MissingDataError, NoNetworkError
from torchgauge.suites.hub import reaching_hub


def named(name: str, *bases: type) -> Exception:
    """An error of a library that need not be installed: only its name and its bases count."""
    return type(name, bases or (Exception,), {})("the library's words\nmore of them")


def raised(error: Exception, *, wrapped: bool) -> Exception:
    """What leaves ``reaching_hub`` when ``error`` is raised in it, plain or as the cause of another."""
    with pytest.raises(Exception) as caught, reaching_hub("some/weights"):  # noqa: PT011, PT012  any error
        if wrapped:
            raise OSError("cannot load") from error
        raise error
    return caught.value


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        named("OfflineModeIsEnabled", ConnectionError),
        named("ConnectError", type("NetworkError", (Exception,), {})),
        URLError("unknown host"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_hub_that_was_not_reached_is_no_network(error: Exception, *, wrapped: bool) -> None:
    """The message names the weights and ends with one line of the library's own."""
    found = raised(error, wrapped=wrapped)
    assert isinstance(found, NoNetworkError)
    assert "some/weights" in found.message
    assert "\n" not in found.message


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", ["GatedRepoError", "RepositoryNotFoundError", "EntryNotFoundError"])
def test_weights_that_the_hub_does_not_give_are_missing_data(name: str, *, wrapped: bool) -> None:
    """A repository that is closed, gone or without the file has answered: the network is not to blame."""
    assert isinstance(raised(named(name), wrapped=wrapped), MissingDataError)


@pytest.mark.parametrize(
    "error", [ValueError("wrong shape"), OSError("disk full"), HTTPError("u", 500, "", Message(), None)]
)
def test_every_other_error_passes(error: Exception) -> None:
    """A failure of the library, the disk or the server keeps its own type."""
    assert raised(error, wrapped=False) is error


def test_what_fails_after_a_refusal_keeps_its_own_type() -> None:
    """A library that survives without the hub and then fails has a defect, not a missing network."""
    error = ValueError("wrong shape")
    error.__context__ = ConnectionRefusedError("refused")
    assert raised(error, wrapped=False) is error
