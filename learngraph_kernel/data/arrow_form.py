"""One byte form for one result: Arrow arrays brought to a canonical layout, batches to a fixed size.

Engines hand out the same rows in differently laid-out buffers: batch sizes follow threads, memory under a null is left
over from other rows, enums come as dictionaries. A snapshot's hash must depend on the rows alone, so every array is
compacted, what lies under a null is zeroed, dictionaries are decoded, and batches hold exactly `BATCH_ROWS` rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import pack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

BATCH_ROWS = 65_536


def canonical_schema(schema: pa.Schema) -> pa.Schema:
    """The schema the canonical batches of a result will have: unique names, no metadata, plain types."""
    types = [canonical_array([], field.type).type for field in schema]
    return pa.schema(list(zip(unique_names(schema.names), types, strict=True)))


def unique_names(names: Sequence[str]) -> list[str]:
    """Column names with repetitions numbered (`id`, `id_2`), so that a cell reference means one cell."""
    taken: set[str] = set()
    wanted = set(names)
    result = []
    for name in names:
        candidate, number = name, 2
        while candidate in taken or (candidate != name and candidate in wanted):
            candidate, number = f"{name}_{number}", number + 1
        taken.add(candidate)
        result.append(candidate)
    return result


def canonical_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The same rows in canonical batches.

    Takes batches of `schema` and the schema `canonical_schema` gave for it; yields batches of exactly BATCH_ROWS rows,
    the last one shorter, none empty.
    """
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while rows + batch.num_rows >= BATCH_ROWS:
            take = BATCH_ROWS - rows
            yield _merged([*waiting, batch.slice(0, take)], schema, target)
            batch, waiting, rows = batch.slice(take), [], 0
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
    if rows:
        yield _merged(waiting, schema, target)


def _merged(parts: Sequence[pa.RecordBatch], schema: pa.Schema, target: pa.Schema) -> pa.RecordBatch:
    columns = [
        canonical_array([part.column(index) for part in parts], field.type) for index, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=target)


def canonical_array(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """One array with the chunks' values in canonical layout; its type is the canonical form of `kind`."""
    if pa.types.is_dictionary(kind):
        return canonical_array([chunk.dictionary_decode() for chunk in chunks], kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return canonical_array([chunk.storage for chunk in chunks], kind.storage_type)
    # Concatenating at least two arrays copies always: offset 0, no slack.
    array = pa.concat_arrays([*chunks, _empty(kind), _empty(kind)])
    if pa.types.is_null(kind):
        return array
    if pa.types.is_struct(kind):
        return _struct(array)
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(array, list_lengths(array))
    if pa.types.is_fixed_size_list(kind):
        return _list(array, [kind.list_size if valid else 0 for valid in array.is_valid().to_pylist()])
    return _flat(array)


def _empty(kind: pa.DataType) -> pa.Array:
    return pa.nulls(0, kind)  # pa.array would import pandas first, where there is one


def _validity(array: pa.Array) -> pa.Buffer | None:
    """The validity bitmap with its spare bits cleared; None when nothing is null."""
    return None if array.null_count == 0 else _bits(array.is_valid())


def _bits(booleans: pa.Array) -> pa.Buffer:
    size, spare = (len(booleans) + 7) // 8, -len(booleans) % 8
    data = bytearray(memoryview(booleans.buffers()[1])[:size])
    if spare:
        data[-1] &= 0xFF >> spare
    return pa.py_buffer(bytes(data))


def _flat(array: pa.Array) -> pa.Array:
    validity = _validity(array)
    filled = array if validity is None else pa.concat_arrays([_zero_nulls(array), _empty(array.type)])
    buffers = filled.buffers()
    if pa.types.is_boolean(array.type):
        buffers[1] = _bits(filled)
    return pa.Array.from_buffers(array.type, len(array), [validity, *buffers[1:]], array.null_count)


def _zero_nulls(array: pa.Array) -> pa.Array:
    zero: Any = 0
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        zero = ""
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        zero = b""
    elif pa.types.is_fixed_size_binary(kind):
        zero = bytes(kind.byte_width)
    elif pa.types.is_boolean(kind):
        zero = False
    elif kind == pa.month_day_nano_interval():
        return pa.array([(0, 0, 0) if value is None else value for value in array.to_pylist()], kind)
    return pc.fill_null(array, pa.scalar(zero, kind))


def _struct(array: pa.Array) -> pa.Array:
    """A struct whose children are null wherever it is."""
    fields = []
    for index, field in enumerate(array.type):
        child = array.field(index)
        if array.null_count:
            child = pc.if_else(array.is_valid(), child, pa.scalar(None, child.type))
        fields.append(canonical_array([child], field.type))
    kind = pa.struct(list(zip((field.name for field in array.type), (child.type for child in fields), strict=True)))
    return pa.Array.from_buffers(kind, len(array), [_validity(array)], array.null_count, children=fields)


def list_lengths(array: pa.Array) -> list[int]:
    """Items per list; 0 for null. Maps and lists alike."""
    offsets = array.offsets.to_pylist()
    return [
        stop - start if valid else 0
        for start, stop, valid in zip(offsets, offsets[1:], array.is_valid().to_pylist(), strict=False)
    ]


def _list(array: pa.Array, lengths: Sequence[int]) -> pa.Array:
    """A plain list; nothing is kept under a null."""
    kind = array.type
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays(
            [array.keys, array.items], fields=[pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
        )
        offsets = array.offsets.to_pylist()
        spans = [
            entries.slice(start, stop - start)
            for start, stop, valid in zip(offsets, offsets[1:], array.is_valid().to_pylist(), strict=False)
            if valid
        ]
        values = entries if array.null_count == 0 else pa.concat_arrays([entries.slice(0, 0), *spans])
    else:
        values = array.flatten()  # leaves out what lies under nulls
    values = canonical_array([values], values.type)
    ends, total = [0], 0
    for length in lengths:
        total += length
        ends.append(total)
    offsets_buffer = pa.py_buffer(pack(f"={len(ends)}i", *ends))
    return pa.Array.from_buffers(
        pa.list_(values.type), len(array), [_validity(array), offsets_buffer], array.null_count, children=[values]
    )
