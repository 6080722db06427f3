"""Nights of text generation through their commands: suspicion, both builds measured again, red; and lies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from replayed_nights import BUILD, Nights, copied, measured, times

from torchgauge import registry
from torchgauge.results.trends.trend_outcomes import TrendState, read_outcomes

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
    assert "CONFIRMED: measured again, speed-up" in done.stderr, done.stderr
    nights.settle()
    (outcome,) = read_outcomes(nights.store)
    assert outcome.state is TrendState.CONFIRMED
    red = nights.gate()
    assert (red.exit_code, "confirmed tonight: writers/slow" in red.output) == (1, True)
