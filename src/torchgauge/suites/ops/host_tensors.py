"""Which tensors of a sample PyTorch's database makes on the host, whatever device it is asked for.

Worker side. Some arguments must be there, such as the indices of ``tensor_split``. Samples are made on the
host, where these look like all others, so the database is asked again for samples of the device ``meta``:
what it makes there without being told has no numbers, and what is not there it made on the host.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import islice
from typing import Any

from torchgauge.suites.ops.samples import outside_tests, tensors_of
from torchgauge.suites.suite import HOST

_KNOWN: dict[tuple[int, int], Mapping[int, frozenset[int]]] = {}


def host_tensors(op: Any, dtype: Any, sample: Any, index: int) -> frozenset[int]:
    """Places of the tensors of ``sample``, PyTorch's number ``index``, that stay on the host.

    Tensors count in the order of input, arguments and keywords. Asked only where one of them may be an index:
    an integer or a mask behind the first.
    """
    tensors = list(tensors_of((sample.input, sample.args, sample.kwargs)))
    if not any(not (each.is_floating_point() or each.is_complex()) for each in tensors[1:]):
        return frozenset()
    return _asked(op, dtype).get(index, frozenset())


def _asked(op: Any, dtype: Any) -> Mapping[int, frozenset[int]]:
    """Places by number of sample, once for each operator: they do not depend on the dtype."""
    key = (id(op), 0)
    if key not in _KNOWN:
        _KNOWN[key] = dict(_read(op, dtype))
    return _KNOWN[key]


def _read(op: Any, dtype: Any) -> list[tuple[int, frozenset[int]]]:
    found = []
    with warnings.catch_warnings(), outside_tests():
        warnings.simplefilter("ignore")
        try:
            made = enumerate(op.sample_inputs("meta", dtype))
            for index, sample in islice(made, MOST):
                tensors = tensors_of((sample.input, sample.args, sample.kwargs))
                held = frozenset(n for n, each in enumerate(tensors) if each.device.type == HOST)
                if held:
                    found.append((index, held))
        except Exception:  # noqa: BLE001  samples that are made from numbers: none of them is known further
            return found
    return found


MOST = 64
"""Samples that are asked for."""
