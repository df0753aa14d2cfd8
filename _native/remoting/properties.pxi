# Property text: one property found by name, all of them as a dict, and back.

cdef enum:
    MOST_TEXT = 32767
    PLACES = 32  # so many entries of a text have a memo of their name and value
    KEPT_NAME = 64  # longer ones are not worth keeping
    KEPT_VALUE = 48
    TAGS = 64

cdef PyObject *name_memo[PLACES]
cdef PyObject *value_memo[PLACES]
cdef PyObject *tag_memo[TAGS]
cdef uint16_t scratch[MOST_TEXT + 1]
# Separators of the text at hand. The GIL is held while it is used, and nothing is made meanwhile that the collector
# tracks: a collection may run any code, also code that comes back here.

memset(name_memo, 0, sizeof(name_memo))
memset(value_memo, 0, sizeof(value_memo))
memset(tag_memo, 0, sizeof(tag_memo))


cdef str entry_text(PyObject **memo, int place, const uint8_t *at, int32_t size, int keep):
    """Text of the entry in this place: mostly what the last message had there."""
    return mq_text_memo(&memo[place], at, size, keep) if place < PLACES else mq_text(at, size)


cdef dict text_to_dict(const uint8_t *text, int32_t size):
    cdef dict properties = {}  # before the scratch is used: see there
    cdef mq_entries entries = mq_open_entries(text, size, scratch)
    cdef mq_entry entry
    cdef int place = 0
    while mq_next_entry(&entries, &entry):
        PyDict_SetItem(
            properties,
            entry_text(name_memo, place, entry.name, entry.name_size, KEPT_NAME),
            entry_text(value_memo, place, entry.value, entry.value_size, KEPT_VALUE),
        )
        place += 1
    return properties


cdef str tag_text(const uint8_t *at, int32_t size):
    """Tags are few: one string each."""
    cdef uint32_t mixed = size
    if size > 0:
        mixed = mixed * 31 + at[0]
        mixed = mixed * 31 + at[size - 1]
    return mq_text_memo(&tag_memo[mixed % TAGS], at, size, KEPT_NAME)


def decode_properties(text not None):
    """Entries with an empty name or value are passed over, bad UTF-8 is replaced."""
    cdef Run run
    cdef object held = hold(text, &run)
    if run.size > MOST_TEXT:
        return long_text_to_dict(PyUnicode_DecodeUTF8(<const char *>run.at, run.size, "replace"))
    return text_to_dict(run.at, <int32_t>run.size)


cdef dict long_text_to_dict(str text):
    """A text that no message can have."""
    cdef dict properties = {}
    for entry in text.split("\x02"):
        name, _, value = entry.partition("\x01")
        if name and value:
            properties[name] = value
    return properties


cdef Run property_part(object text) except *:
    cdef Run run = utf8_of(text)
    if run.size == 0 or mq_separates(run.at, run.size):
        raise ConfigError("a property name or value is empty or holds the separator 0x01 or 0x02")
    return run


cdef inline uint8_t *put_entry(uint8_t *at, const uint8_t *name, Py_ssize_t name_size, Run value) noexcept nogil:
    """An entry of name_size + value.size + 2 bytes; gives where it ends."""
    memcpy(at, name, name_size)
    at += name_size
    at[0] = 1
    memcpy(at + 1, value.at, value.size)
    at += value.size + 1
    at[0] = 2
    return at + 1


cdef int write_entry(mq_writer *w, Run name, Run value) except -1:
    put_entry(mq_room(w, name.size + value.size + 2), name.at, name.size, value)
    return 0


cdef int check_text(Py_ssize_t size) except -1:
    if size > MOST_TEXT:
        raise ConfigError(f"properties of {size} bytes; {MOST_TEXT} fit")
    return 0


def encode_properties(properties not None):
    """The property text, with the final separator that all but a few releases write."""
    cdef mq_writer w
    mq_writer_open(&w, 256)
    try:
        for name, value in properties.items():
            write_entry(&w, property_part(name), property_part(value))
        check_text(w.size)
        return mq_writer_done(&w)
    finally:
        mq_writer_drop(&w)
