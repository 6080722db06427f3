"""Devices: the parent-side descriptor, the worker-side session, probes and calibration."""
