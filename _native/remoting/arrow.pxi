# Owns the way from a batch's columns to a `pyarrow.RecordBatch`.

cdef tuple INT64_COLUMNS = ("offset", "physical_offset", "born_at", "stored_at")
cdef tuple INT32_COLUMNS = ("queue_id", "flag", "sys_flag", "attempts")


cdef object record_batch(dict columns, Py_ssize_t rows):
    """Around the columns' buffers, which are not copied again; times are timestamps in milliseconds, UTC."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("to_arrow() needs pyarrow: pip install mqclient[arrow]") from error
    arrays = [arrow_array(pa, name, parts, rows) for name, parts in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


cdef object arrow_array(pa, name, parts, Py_ssize_t rows):
    cdef list buffers = [None if part is None else pa.py_buffer(part) for part in parts]
    if name == "properties":
        return arrow_map(pa, buffers, rows)
    if name in ("born_at", "stored_at"):
        kind = pa.timestamp("ms", tz="UTC")
    elif name in INT64_COLUMNS:
        kind = pa.int64()
    elif name in INT32_COLUMNS:
        kind = pa.int32()
    else:
        kind = pa.binary() if name == "body" else pa.string()
    return pa.Array.from_buffers(kind, rows, buffers)


cdef object arrow_map(pa, list buffers, Py_ssize_t rows):
    _, offsets, key_offsets, keys, value_offsets, values = buffers
    kind = pa.map_(pa.string(), pa.string())
    entries = key_offsets.size // 4 - 1
    names = pa.Array.from_buffers(kind.key_type, entries, [None, key_offsets, keys])
    texts = pa.Array.from_buffers(kind.item_type, entries, [None, value_offsets, values])
    pairs = pa.StructArray.from_arrays([names, texts], fields=[kind.key_field, kind.item_field])
    return pa.Array.from_buffers(kind, rows, [None, offsets], children=[pairs])
