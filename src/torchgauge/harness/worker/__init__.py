"""What runs in the measured process: checks, compilation, timing, and the words in which it answers.

Workers are forked from ``host``; ``entry`` runs one job in a worker. The target interpreter has torch, the
standard library and torchgauge's worker half, and nothing else of ours.
"""
