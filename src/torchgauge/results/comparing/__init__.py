"""Two sides of one measurement, or many: what they say of each other, and how sure it is.

From the steps of a launch to a number (``estimators``, ``pair_evidence``), from numbers to a verdict
(``sequential``, ``pair_verdict``, ``judgement``, ``suite_level``; ``two_runs`` for sides that were not
measured together), what a policy allows (``policy``, ``gate``, ``quarantine``), what the history of a runner
says of its noise (``noise``, ``noise_ledger``), and where comparisons are kept (``comparison_store``).
"""
