"""A package of backends and scenarios as a vendor would write it, well and badly; for tests only."""
