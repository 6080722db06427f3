"""Why a build cannot start from the site that stands."""

from __future__ import annotations


class UnusableSiteError(Exception):
    """The site that stands cannot be built upon: everything is built anew, and the reason is told."""
