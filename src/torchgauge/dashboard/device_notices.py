"""What a reader must know of a device before anything else: one sentence each, above every page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.dashboard.freshness import Freshness, Reporter
from torchgauge.dashboard.lost_nights import LostNight, told
from torchgauge.results import units
from torchgauge.results.hostile_text import first_line

LATE, LOST, AHEAD = (
    "no new data",
    "no results from the last night (run failed)",
    "a result dated in the future",
)
"""What a device has, the worst first."""

NAMED, NAME_LIMIT = 5, 40
"""Devices that the line of several names for each kind, and characters of a name in it."""


@dataclass(frozen=True)
class DeviceNotice:
    """``text`` goes on where the name of ``device`` ends; ``kind`` is the worst that it says.

    ``since`` is the day of its newest result where none came that was due.
    """

    device: str
    kind: str
    text: str
    since: str = ""


@dataclass(frozen=True)
class DeviceNotices:
    """Those of all devices of whom there is something to say, in the order of the devices."""

    each: tuple[DeviceNotice, ...] = ()

    @property
    def loud(self) -> bool:
        """Whether more is said than that nights were lost, after which nothing is late."""
        return any(notice.kind != LOST for notice in self.each)

    @property
    def line(self) -> str:
        """All in one line, short enough for a phone."""
        if len(self.each) == 1:
            only = self.each[0]
            since = f" since {only.since}" if only.since else ""
            return f"{first_line(only.device, NAME_LIMIT)} has {only.kind}{since}"
        parts: list[str] = []
        for kind in (LATE, LOST, AHEAD):
            names = [first_line(notice.device, NAME_LIMIT) for notice in self.each if notice.kind == kind]
            if names:
                noun = "" if parts else " device" if len(names) == 1 else " devices"
                more = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
                verb = "has" if len(names) == 1 else "have"
                parts.append(f"{len(names)}{noun} {verb} {kind}: {', '.join(names[:NAMED] + more)}")
        return "; ".join(parts)


def device_notices(fresh: Freshness, lost: Sequence[LostNight]) -> DeviceNotices:
    """One for each device that is late, lost a night or is ahead of the clock.

    Where all are late that is said of the page, and of no device.
    """
    found = []
    for device, reporter in fresh.devices.items():
        nights = [each for each in lost if each.device == device]
        late = not fresh.all_late and fresh.is_late(device)
        if late or nights or reporter.ahead_at is not None:
            kind = LATE if late else LOST if nights else AHEAD
            since = units.day(reporter.at) if late and reporter.at is not None else ""
            found.append(DeviceNotice(device, kind, " ".join(_sentences(reporter, nights, late)), since))
    return DeviceNotices(tuple(found))


def _sentences(reporter: Reporter, nights: Sequence[LostNight], late: bool) -> list[str]:
    said = []
    silence = reporter.silence
    if nights:
        known = any(each.known for each in nights)
        since = f"{silence[0].upper()}{silence[1:]}." if late else "Older results are shown."
        said += [f"{told(nights)}.", since if known else "No older result exists."]
    elif late:
        said.append(f"{'has' if reporter.at is None else 'stopped reporting:'} {silence}.")
    if reporter.ahead_at is not None:
        said.append(
            f"{'It has' if said else 'has'} a result that is dated {units.moment(reporter.ahead_at)}, after "
            "the build of this page. Cause: the clock of the machine or of the builder is wrong."
        )
    return said
