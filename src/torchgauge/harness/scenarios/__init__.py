"""Scenarios: what one step of a workload is, and what of it is compared."""
