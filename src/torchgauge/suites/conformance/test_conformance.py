"""Every check as a test, collected by ``pytest --pyargs torchgauge.suites.conformance``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torchgauge.suites.check import NotOnThisDeviceError
from torchgauge.suites.conformance.catalogue import catalogue
from torchgauge.suites.conformance.run_check import run_entry

if TYPE_CHECKING:
    from torchgauge.suites.conformance.check_context import CheckContext


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", catalogue())
def test_check(name: str, torchgauge_context: CheckContext) -> None:
    """The check passes, or is skipped with the reason why PyTorch or the device does not offer it."""
    try:
        run_entry(catalogue()[name], torchgauge_context)
    except (NotOnThisDeviceError, NotImplementedError) as error:
        pytest.skip(str(error).partition("\n")[0])
