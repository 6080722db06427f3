"""Results: the append-only journal, the Parquet store, views, statistics.

``journal`` and ``store`` need the standard library only, so that a run starts quickly; pyarrow, numpy and
pandas are imported by the modules that need them: ``tables``, ``dataset``, ``publication``, ``stats``,
``frames`` and ``query``.
"""
