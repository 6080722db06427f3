"""Publishers of reports come through the door of plugins."""

from __future__ import annotations

import pytest
from comparison_builder import comparison, pair, suite_verdict, verdict

from torchgauge import registry
from torchgauge.errors import UsageError
from torchgauge.records.comparison import Verdict
from torchgauge.results.reports.report import (
    ComparisonReport,
    comparison_report,
)
from torchgauge.results.store import Store

LINEAR = pair("linear")


@pytest.fixture
def report(tmp_path) -> ComparisonReport:
    folder = comparison(tmp_path / "store", [LINEAR], [verdict(LINEAR, Verdict.REGRESSION), suite_verdict()])
    return comparison_report(Store.open(tmp_path / "store"), folder)


@pytest.mark.parametrize("name", ["json", "junit", "markdown"])
def test_publishers_are_plugins_that_write_whole_files(report, tmp_path, name) -> None:
    """Each takes the door of the registry, and writes what it renders."""
    publisher = registry.load("torchgauge.publishers", name)
    publisher.publish(report, tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == publisher.render(report)
    for target in (tmp_path, tmp_path / "nowhere" / "out"):
        with pytest.raises(UsageError):
            publisher.publish(report, target)
