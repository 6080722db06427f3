"""Quantised models: every configuration that the installed torchao offers."""
