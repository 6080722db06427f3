"""Suites: models as strict YAML and the functions that build them in the worker."""
