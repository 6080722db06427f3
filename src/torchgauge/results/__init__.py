"""Results: the append-only journal, the Parquet store, views, statistics.

``journal`` and ``store`` need the standard library only, so that a run starts quickly; pyarrow, numpy and
pandas are imported by the modules that need them: ``tables``, ``dataset``, ``publication``, ``stats``,
``frames`` and ``query``.

What is made of rows has folders of its own: ``comparing`` (two sides and a verdict), ``trends`` (a series of
nights), ``claims`` (a published sentence as a question), ``compat`` (what runs where), ``blockers`` (the
operators that most models wait for), ``triage`` (why cases fail), ``reports`` (a run as text for others) and
``interchange`` (other tools' formats).
"""
