"""Nights: which one is due at a given time, and what a store holds of it.

A night is the date (UTC) on which its campaign is planned. Nobody can be told by a campaign that never
began, so what is missing is found from outside, by a timer of its own.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

from torchgauge.errors import UsageError


def night_of(text: str) -> date:
    """The date in ``text``; raises :class:`UsageError` where it is none."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a date", hint="write it as 2027-01-31") from error


def time_of_day(text: str) -> time:
    """The time of day in ``text`` (UTC); raises :class:`UsageError` where it is none."""
    try:
        return time.fromisoformat(text).replace(tzinfo=timezone.utc, second=0, microsecond=0)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a time of day", hint="write it as 06:00, in UTC") from error


def moment_of(text: str) -> datetime:
    """The moment in ``text`` (UTC where it says nothing); raises :class:`UsageError` where it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a date and time", hint="write it as 2027-01-31T06:00") from error
    return found.replace(tzinfo=timezone.utc) if found.tzinfo is None else found.astimezone(timezone.utc)


def due_night(now: datetime, expect_by: time, begins: time) -> date:
    """The newest night whose results must be there at ``now``.

    A night that ``begins`` at or after the time at which it is expected is expected on the day after.
    """
    overnight = timedelta(days=1 if begins >= expect_by else 0)
    day = now.date() - overnight
    due_at = datetime.combine(day, expect_by) + overnight
    return day if now >= due_at else day - timedelta(days=1)
