"""The harness: plan, run, watch and derive statuses; its worker half runs in the target interpreter.

``planning`` decides what runs and in which order, ``run`` takes a plan to its last row, ``executors`` say
where and ``pool`` keeps the workers; ``worker`` is what the measured process does, with ``backends`` and
``scenarios``. ``ab`` measures two builds in turns (``ab.side_run`` is its worker half), ``census`` records
operators (``census.child`` runs in the target interpreter). Beside the folders is what both halves share.
"""
