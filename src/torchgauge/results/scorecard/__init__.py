"""The quality scorecard of a device: PyTorch's proposed points and levels, held against rows.

``scorecard_file`` and ``declarations`` read data, ``evidence`` reads stores, ``rules`` say what rows show,
``card`` adds up, ``levels`` follows releases, and ``text`` writes.
"""
