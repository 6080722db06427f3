"""Arrow columns as numpy arrays and back, without pandas.

Why: pyarrow's own conversions (``to_numpy``, ``pa.array``) import pandas, which alone costs a tenth of the
time in which a nightly build has to be done. Buffers are all that is needed for the five types of the store.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Bits = npt.NDArray[np.bool_]

NO_TIME = np.iinfo(np.int64).min
"""What stands in an array of times or integers where the column is null."""


def one(column: Any) -> Any:
    """``column`` as one array without chunks."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    return column


def valid(array: Any) -> Bits | None:
    """Which elements of ``array`` are not null; None where all are valid."""
    buffer = array.buffers()[0]
    if array.null_count == 0 or buffer is None:
        return None
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].astype(np.bool_)


LARGEST = 1e30
"""What is larger is no second, byte or operation, and the arithmetic of pages would overflow: not finite."""


def floats(column: Any) -> Floats:
    """A column of float64; null and what is not finite or beyond :data:`LARGEST` become NaN."""
    array = one(column)
    found: Floats = _fixed(array, np.float64).copy()
    there = valid(array)
    sound = np.abs(found) <= LARGEST
    found[~sound if there is None else ~(there & sound)] = np.nan
    return found


def integers(column: Any) -> Integers:
    """A column of int64 or of times (microseconds); null becomes :data:`NO_TIME`."""
    array = one(column)
    found = _fixed(array, np.int64)
    there = valid(array)
    return found if there is None else np.where(there, found, NO_TIME)


def booleans(column: Any) -> Bits:
    """A column of booleans; null becomes false."""
    array = one(column)
    if len(array) == 0:
        return np.zeros(0, np.bool_)
    bits = np.unpackbits(np.frombuffer(array.buffers()[1], np.uint8), bitorder="little")
    found = bits[array.offset : array.offset + len(array)].astype(np.bool_)
    there = valid(array)
    return found if there is None else found & there


def codes(column: Any) -> tuple[Codes, list[str | None]]:
    """A column of strings as codes and the words that they stand for; null has the code -1."""
    array = one(column)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    indices = array.indices
    found = _fixed(indices, np.int32)
    there = valid(indices)
    return (found if there is None else np.where(there, found, -1)), array.dictionary.to_pylist()


def list_words(column: Any) -> dict[str, Bits]:
    """A column of lists of strings: for every word, which rows have it."""
    array = one(column)
    rows = len(array)
    if rows == 0 or len(array.flatten()) == 0:
        return {}
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + rows + 1]
    row_of = np.repeat(np.arange(rows), np.diff(offsets))
    inner = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    word_of, words = codes(inner)
    found: dict[str, Bits] = {}
    for code, word in enumerate(words):
        has = np.zeros(rows, np.bool_)
        has[row_of[word_of == code]] = True
        if word:
            found[word] = has
    return found


def _fixed(array: Any, kind: Any) -> Any:
    if len(array) == 0:
        return np.zeros(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def of_floats(values: Floats) -> Any:
    """A float64 column; NaN becomes null."""
    there = ~np.isnan(values)
    return pa.Array.from_buffers(
        pa.float64(), len(values), [_bitmap(there), pa.py_buffer(np.ascontiguousarray(values, np.float64))]
    )


def of_integers(values: npt.NDArray[Any], kind: Any = None) -> Any:
    """A column of int64, or of the eight-byte type ``kind``; :data:`NO_TIME` becomes null."""
    plain = np.ascontiguousarray(values, np.int64)
    buffers = [_bitmap(plain != NO_TIME), pa.py_buffer(plain)]
    return pa.Array.from_buffers(kind or pa.int64(), len(plain), buffers)


def of_booleans(values: Bits) -> Any:
    """A column of booleans."""
    packed = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(packed)])


def of_strings(values: Sequence[str | None]) -> Any:
    """A column of strings; None becomes null."""
    data = [b"" if value is None else value.encode(errors="replace") for value in values]
    offsets = np.zeros(len(data) + 1, np.int32)
    np.cumsum([len(text) for text in data], out=offsets[1:])
    there = np.fromiter((value is not None for value in values), np.bool_, len(data))
    buffers = [_bitmap(there), pa.py_buffer(offsets), pa.py_buffer(b"".join(data))]
    return pa.Array.from_buffers(pa.string(), len(data), buffers)


def of_words(values: Sequence[str | None]) -> Any:
    """A dictionary column of words of which many are equal; None becomes null."""
    words: dict[str, int] = {}
    found = [-1 if value is None else words.setdefault(value, len(words)) for value in values]
    return of_codes(np.array(found, np.int32), list(words))


def of_codes(found: npt.NDArray[Any], words: Sequence[str | None]) -> Any:
    """A dictionary column: ``words`` by code; a code below 0 is null."""
    plain = np.ascontiguousarray(found, np.int32)
    indices = pa.Array.from_buffers(pa.int32(), len(plain), [_bitmap(plain >= 0), pa.py_buffer(plain)])
    return pa.DictionaryArray.from_arrays(indices, of_strings(words))


def parquet(columns: Mapping[str, Any]) -> bytes:
    """``columns`` as a Parquet file, dictionaries as plain strings; the same columns give the same bytes."""
    target = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), target, compression="zstd", store_schema=False)
    return target.getvalue()


def _bitmap(there: Bits) -> Any:
    return None if bool(there.all()) else pa.py_buffer(np.packbits(there, bitorder="little"))


def rounded(values: Floats, digits: int = 6) -> Floats:
    """``values`` to ``digits`` significant digits, each the double nearest to its decimal; NaN stays."""
    found = np.full(values.shape, np.nan)
    there = np.isfinite(values)
    finite = values[there]
    size = np.abs(finite)
    size[size == 0] = 1.0
    places = np.clip(digits - 1 - np.floor(np.log10(size)), -300, 300).astype(np.int64)
    scale = _POWERS[np.abs(places)]
    with np.errstate(over="ignore"):  # of the two only the one that fits is taken
        small = np.rint(finite * scale) / scale
        large = np.rint(finite / scale) * scale
    found[there] = np.where(places >= 0, small, large)
    return found


_POWERS = np.array([float(f"1e{exponent}") for exponent in range(301)])
