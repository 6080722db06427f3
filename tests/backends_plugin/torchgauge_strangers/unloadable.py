"""A module that cannot be imported."""

raise RuntimeError("this module breaks on import")
