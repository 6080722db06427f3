"""Torchgauge as several processes that a launcher such as torchrun started, perhaps on several machines.

The one of rank 0 plans, keeps the journal and the results, and prints. The others serve it: each starts, on
its machine, the worker of its rank.
"""
