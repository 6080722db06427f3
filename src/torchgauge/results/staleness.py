"""When a result counts as old; apart from the frames, so that knowing it costs no import of pandas."""

from __future__ import annotations

STALE_AFTER_S = 14 * 86_400.0
"""Seconds after which a result counts as stale unless the caller says otherwise: two weeks of nightlies."""
