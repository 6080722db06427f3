"""Backends, scenarios, a sweep and executors as a vendor would write them, well and badly; for tests only."""
