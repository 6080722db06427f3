"""The checks of the suite ``conformance`` under pytest, for a vendor's own continuous integration.

``pytest --pyargs torchgauge.suites.conformance --torchgauge-device NAME``. Loaded by pytest through the entry
point ``pytest11``; importing it loads no torch.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from torchgauge.suites.conformance.check_context import CheckContext

OPTION = "--torchgauge-device"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the one option."""
    group = parser.getgroup("torchgauge")
    group.addoption(
        OPTION, metavar="NAME", help="device that torchgauge's checks run on, for example D or D.1"
    )


@pytest.fixture(scope="session")
def torchgauge_session(request: pytest.FixtureRequest) -> Any:
    """The open session of the device; a run without one ends with pytest's code of a usage error."""
    name = request.config.getoption(OPTION)
    if name is None:
        pytest.skip(f"no device is named: pass {OPTION} NAME")
    from torchgauge.devices.discover import find_device, parse_target
    from torchgauge.errors import TorchgaugeError
    from torchgauge.registry import resolve

    try:
        target = parse_target(name)
        device = find_device(target.name, sys.executable)
        return resolve(device.session)(target.name, target.index)
    except TorchgaugeError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.fixture
def torchgauge_context(torchgauge_session: Any) -> CheckContext:
    """A context for one check."""
    from torchgauge.suites.conformance.check_context import CheckContext

    if torchgauge_session.torch_device is None:
        pytest.skip(f"device {torchgauge_session.name!r} runs no torch")
    return CheckContext(torchgauge_session)
