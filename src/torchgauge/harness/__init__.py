"""The harness: plan, run, watch and fold; its worker half runs in the target interpreter.

``planning`` decides what runs and in which order, ``executors`` where; ``worker`` is what the measured
process does, with the steps of ``scenarios``. ``ab`` measures two builds in turns (``ab.side_run`` is its
worker half), ``census`` records operators (``census.child`` runs in the target interpreter). Beside them are
the parent's other modules, such as ``campaigns``, ``runner``, ``watch`` and ``fold``, and what both halves
share: ``job``, ``events``, ``turn``, ``metrics``, ``suspects``, ``process_tree``, ``cold_turn`` and
``compile_cache``.
"""
