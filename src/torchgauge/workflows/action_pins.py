"""Actions of others, each by its commit: a tag can be moved to other code, a commit cannot.

Looked up in November 2026. To renew one, take the commit of a release, and read what changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Pin:
    """A commit of an action and the release that it is."""

    commit: str
    release: str


PINS: Mapping[str, Pin] = {
    "actions/checkout": Pin("3d3c42e5aac5ba805825da76410c181273ba90b1", "v7.0.1"),
    "actions/setup-python": Pin("5fda3b95a4ea91299a34e894583c3862153e4b97", "v7.0.0"),
    "actions/upload-artifact": Pin("043fb46d1a93c77aae656e7c1c64a875d1fc6a0a", "v7.0.1"),
    "actions/download-artifact": Pin("3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c", "v8.0.1"),
    "actions/cache/restore": Pin("27d5ce7f107fe9357f9df03efb73ab90386fccae", "v5.0.5"),
    "actions/cache/save": Pin("27d5ce7f107fe9357f9df03efb73ab90386fccae", "v5.0.5"),
    "actions/configure-pages": Pin("45bfe0192ca1faeb007ade9deae92b16b8254a0d", "v6.0.0"),
    "actions/upload-pages-artifact": Pin("fc324d3547104276b827a68afc52ff2a11cc49c9", "v5.0.0"),
    "actions/deploy-pages": Pin("cd2ce8fcbc39b97be8ca5fce6e763baed58fa128", "v5.0.0"),
    "actions/attest": Pin("1e69f48acb82d1966a394da916b4c1698aa569d6", "v4.2.2"),
    "pypa/gh-action-pypi-publish": Pin("dc37677b2e1c63e2034f94d8a5b11f265b73ba33", "v1.14.2"),
}


def uses(action: str) -> str:
    """What stands after ``uses:`` for ``action``: its commit, and its release as a comment."""
    pin = PINS[action]
    return f"{action}@{pin.commit} # {pin.release}"
