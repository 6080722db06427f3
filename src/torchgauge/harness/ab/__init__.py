"""Base against head: two live workers that take turns, launch after launch (``docs/comparison.md``)."""
