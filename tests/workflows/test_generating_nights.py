"""Nights of text generation through their commands: suspicion, both builds measured again, red; and lies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from replayed_nights import BLOCKS, BUILD, NIGHTS, Edit, Nights, copied, measured, steady, times

from torchgauge import registry
from torchgauge.records import Result
from torchgauge.results.journal import results
from torchgauge.results.store import RunFolder
from torchgauge.results.trends.trend_outcomes import TrendState, read_outcomes
from torchgauge.workflows.ingest.refusal import RefusedSetError
from torchgauge.workflows.ingest.series_check import check_series

PLUGIN = Path(__file__).resolve().parents[1] / "faults_plugin"
FACTOR = 20.0
DELAYED = BUILD.replace('RACERS_FACTOR"] = "{factor}', 'WRITERS_DELAY_MS"] = "{delay}')
DELAYED += f'echo {Path(torch.__file__).parents[1]} >"$site/torch.pth"\n'
"""A build whose tokens wait; torch and transformers are those of this interpreter."""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nights]:
    """Twenty calm nights of a tiny Llama, from one that was measured."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PLUGIN))
        patch.setenv("HF_HUB_OFFLINE", "1")
        registry._installed.cache_clear()
        found = Nights(tmp_path_factory.mktemp("nights"), plugin=PLUGIN)
        patch.setenv("PYTHONPATH", found.path)
        patch.delenv("GITHUB_ACTIONS", raising=False)
        found.configure("slow", suite="writers", mode="generate", device="cpu")
        yield measured(found)
    registry._installed.cache_clear()


@pytest.mark.full  # minutes; test_nights_confirm.py goes the same way
def test_a_slower_token_is_suspected_measured_again_and_red(known: Nights, tmp_path: Path) -> None:
    """A wait of 30 ms before each token, in the later build alone: the confirmation finds it."""
    nights = copied(known, tmp_path / "repository")
    assert nights.night(times(FACTOR)).exit_code == 0  # one night is no level
    assert nights.night(times(FACTOR)).exit_code == 3
    (leg,) = nights.legs()
    done = nights.confirm(leg, DELAYED.format(delay=0), DELAYED.format(delay=30))
    assert "CONFIRMED: measured again, ratio" in done.stderr, done.stderr
    nights.settle()
    (outcome,) = read_outcomes(nights.store)
    assert outcome.state is TrendState.CONFIRMED
    red = nights.gate()
    assert (red.exit_code, "confirmed tonight: writers/slow" in red.output) == (1, True)


def changed(metric: str, factor: float, first: int = 0) -> Edit:
    """Rows whose samples of ``metric``, from the block ``first`` on, are ``factor`` times as large."""

    def edit(row: Result) -> Result:
        found = {each.metric: each for each in row.measurements}[metric]
        assert found.samples
        samples = (*found.samples[:first], *(factor * one for one in found.samples[first:]))
        made = replace(found, samples=samples)
        measurements = tuple(made if each is found else each for each in row.measurements)
        return replace(row, measurements=measurements)

    return edit


LIES = {
    "a first token later than the last": changed("first_token_time", 50.0),
    "tokens that take hardly any time": changed("output_token_time", 1e-3),
    "tokens in four fifths of their time": lambda row: changed("output_token_time", 0.8)(
        changed("first_token_time", 0.8)(row)
    ),
    "fifty times as many tokens": lambda row: changed("throughput", 50.0)(
        replace(row, facts=tuple((k, 50 * v if k == "items_per_step" else v) for k, v in row.facts))
    ),
    "twice the prefill": changed("prefill_rate", 2.0),
    "one block of a higher rate": changed("decode_rate", 1.001, first=BLOCKS - 1),
}


@pytest.mark.parametrize("lie", LIES)
def test_token_times_that_are_not_of_the_generation_are_refused(known: Nights, lie: str) -> None:
    """Rows of a run are taken as they are, and not with one of its series made larger."""
    (row,) = steady(RunFolder(known.folder / "first"))
    check_series(row)
    with pytest.raises(RefusedSetError, match="is not that of its latency"):
        check_series(LIES[lie](row))


REFUSED = {
    "a first token of minus a second": ("take no time", changed("first_token_time", -1.0)),
    "a 90th percentile above the 99th": ("of a higher rank", changed("inter_token_p90", 100.0)),
}


@pytest.mark.parametrize("lie", REFUSED)
def test_impossible_times_of_tokens_are_refused(known: Nights, lie: str) -> None:
    """Whatever stands beside them."""
    said, edit = REFUSED[lie]
    (row,) = steady(RunFolder(known.folder / "first"))
    with pytest.raises(RefusedSetError, match=said):
        check_series(edit(row))


def test_bandwidth_without_the_times_of_tokens_is_refused(known: Nights) -> None:
    """Nothing would be left to hold it against."""
    (row,) = results(RunFolder(known.folder / "first").journal_path)
    times_of_tokens = {"first_token_time", "output_token_time", "prefill_rate", "decode_rate"}
    kept = tuple(each for each in row.measurements if each.metric not in times_of_tokens)
    assert len(kept) == len(row.measurements) - 4
    with pytest.raises(RefusedSetError, match="of other blocks"):
        check_series(replace(row, measurements=kept))


def test_bandwidth_of_other_bytes_in_one_block_is_refused(known: Nights) -> None:
    """Weights have one size: read again from the rows as they were measured."""
    (row,) = results(RunFolder(known.folder / "first").journal_path)
    check_series(row)
    with pytest.raises(RefusedSetError, match="its decode_bandwidth is not"):
        check_series(changed("decode_bandwidth", 2.0, first=1)(row))


def test_a_night_with_a_lie_about_its_tokens_is_not_taken(known: Nights, tmp_path: Path) -> None:
    """The door refuses the shard, and the night lacks it: not green."""
    nights = copied(known, tmp_path / "repository")
    night = nights.night(changed("prefill_rate", 2.0))
    assert night.exit_code == 3
    assert len(nights.store.run_ids()) == NIGHTS
