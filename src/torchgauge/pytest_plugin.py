"""Torchgauge under pytest: the fixture ``torchgauge`` for a project's own models, and checks of a device.

``pytest --pyargs torchgauge.suites.conformance --torchgauge-device NAME`` runs the checks of the suite
``conformance``. Loaded by pytest through the entry point ``pytest11``; importing it loads no torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from torchgauge.live.pytest_fixture import LiveTest, LiveTests
    from torchgauge.suites.conformance.check_context import CheckContext

DEVICE, STORE, COMPARE = "--torchgauge-device", "--torchgauge-store", "--torchgauge-compare"
FIXTURE = "torchgauge"
TESTS: pytest.StashKey[LiveTests] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("torchgauge")
    group.addoption(
        DEVICE,
        metavar="NAME",
        help="device of torchgauge's checks: NAME or NAME.INDEX; for tests with the "
        "fixture `torchgauge` also a comma-separated list, or `all` for every device of this machine",
    )
    group.addoption(
        STORE, metavar="FOLDER", help="store to which the results of the session are written, as one run"
    )
    group.addoption(
        COMPARE,
        metavar="RUN",
        help="run of the store, such as `latest`, with which results are compared: a test with a "
        "regression fails, and a test without a verdict is skipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a store where several processes of pytest-xdist would each write a run of some tests."""
    parallel = config.getoption("numprocesses", None) or os.environ.get("PYTEST_XDIST_WORKER")
    if parallel and (config.getoption(STORE) or config.getoption(COMPARE)):
        raise pytest.UsageError(f"{STORE} and {COMPARE} require a single pytest process\n  try: pytest -n 0")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes the fixture once on each device that is named."""
    option = metafunc.config.getoption(DEVICE)
    if FIXTURE in metafunc.fixturenames and option is not None:
        from torchgauge.live.pytest_fixture import devices_of

        metafunc.parametrize(FIXTURE, devices_of(option), indirect=True)


@pytest.fixture
def torchgauge(request: pytest.FixtureRequest) -> LiveTest:
    """Measure and compare in a test: ``torchgauge.measure(model, inputs)``, ``torchgauge.compare(old, new)``.

    The arguments and the result of either are those of the functions of :mod:`torchgauge`.
    """
    from torchgauge.errors import TorchgaugeError
    from torchgauge.live.pytest_fixture import LiveTest, LiveTests

    config = request.config
    if TESTS not in config.stash:
        try:
            config.stash[TESTS] = LiveTests(config.getoption(STORE) or "", config.getoption(COMPARE) or "")
        except TorchgaugeError as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    return LiveTest(config.stash[TESTS], request.node, getattr(request, "param", None))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Compare what a test has measured, once its own assertions hold."""
    result = yield
    fixture = pyfuncitem.funcargs.get(FIXTURE)
    if hasattr(fixture, "judge"):
        fixture.judge()
    return result


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Write the rows of the session to its store, and say where they are."""
    tests = config.stash.get(TESTS, None)
    if tests is not None and (line := tests.finish()):
        terminalreporter.write_line(f"torchgauge: {line}")


@pytest.fixture(scope="session")
def torchgauge_session(request: pytest.FixtureRequest) -> Any:
    """The open session of the device; a run without one ends with pytest's code of a usage error."""
    name = request.config.getoption(DEVICE)
    if name is None:
        pytest.skip(f"no device was given: pass {DEVICE} NAME")
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
        pytest.skip(f"device {torchgauge_session.name!r} has no torch device type")
    return CheckContext(torchgauge_session)
