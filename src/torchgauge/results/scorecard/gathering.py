"""The scorecards of devices from stores and declarations: one for each release, and the level over them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.errors import NothingSelectedError
from torchgauge.results.scorecard.card import Card, card_of
from torchgauge.results.scorecard.declarations import NOTHING_DECLARED, Declared, declarations_of
from torchgauge.results.scorecard.evidence import StoreEvidence, read_evidence
from torchgauge.results.scorecard.levels import ReleaseLevel, level_history
from torchgauge.results.scorecard.scorecard_file import ScorecardFile, bundled_scorecard


@dataclass(frozen=True)
class Scorecard:
    """A device: the card of the newest release that was measured, and the level over all releases.

    ``history`` is empty where nothing but previews was measured.
    """

    card: Card
    history: tuple[ReleaseLevel, ...]

    @property
    def device(self) -> str:
        """Its device."""
        return self.card.device


@dataclass(frozen=True)
class Scorecards:
    """Those of several devices; ``notes`` and ``gaps`` are sentences on what was read."""

    file: ScorecardFile
    cards: tuple[Scorecard, ...]
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


def scorecards(
    stores: Sequence[str], devices: Sequence[str] = (), declared: Sequence[str] = ()
) -> Scorecards:
    """The scorecards of ``devices`` (empty: all) over the rows in ``stores``.

    ``declared`` are files beside those in the stores' folder ``declared``. Raises :class:`UsageError` and
    :class:`DataFileError` for what cannot be read, and :class:`NothingSelectedError` where there is no row.
    """
    file = bundled_scorecard()
    said = declarations_of(tuple(stores), tuple(declared), file)
    evidence = read_evidence(stores)
    _check_devices(devices, evidence)
    names = tuple(dict.fromkeys(devices)) or tuple(sorted(evidence.of))
    found = tuple(scorecard_of(file, evidence, name, said) for name in names)
    return Scorecards(file, found, evidence.notes, evidence.gaps)


def scorecard_of(
    file: ScorecardFile, evidence: StoreEvidence, device: str, said: Declared = NOTHING_DECLARED
) -> Scorecard:
    """The scorecard of ``device``, which has rows."""
    of_device = said.of.get(device, ())
    cards = {
        release: card_of(file, found, of_device) for release, found in sorted(evidence.of[device].items())
    }
    final = [release for release in cards if release.final]
    newest = cards[max(final or cards)]
    return Scorecard(newest, level_history(file, cards, said.documented.get(device)))


def _check_devices(wanted: Sequence[str], evidence: StoreEvidence) -> None:
    known = sorted(evidence.of)
    if not known:
        raise NothingSelectedError(
            "; ".join(("the stores contain no rows of a known torch version", *evidence.notes)),
            hint="torchgauge check --device DEVICE --store DIR",
        )
    for name in wanted:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise NothingSelectedError(
                f"{name} was never measured in these stores{meant}", hint=f"--device {','.join(known)}"
            )
