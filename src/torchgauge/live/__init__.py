"""Torchgauge as a library: measuring and comparing objects of the calling process, and reading a store.

The names of :mod:`torchgauge` are defined here and imported when they are used. Steps are sampled and results
judged by the worker's own code: nothing here decides what a number means.
"""
