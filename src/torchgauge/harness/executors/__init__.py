"""Executors: where the workers of a plan run."""
