# Sends to bytes, where many go the same way: what they have in common is made once.

@cython.final
cdef class SendHead:
    """What all sends of one group to one queue begin and end with; `frame` puts the rest between."""
    cdef bytes before, behind

    def __init__(self, str group not None, str topic not None, queue_id, *, code=310, bint batch=False,
                 str broker not None="", default_queues=4):
        cdef Command c
        c.out.bytes = NULL
        try:
            begin(&c, FORM_JSON, 256, fit32(code, "code"), 0, 0, "PYTHON", 479)
            begin_fields(&c, None)
            put_text(&c, b"a", 1, group)
            put_text(&c, b"b", 1, topic)
            put_text(&c, b"c", 1, "TBW102")
            put_number(&c, b"d", 1, fit64(default_queues, "default_queues"))
            put_number(&c, b"e", 1, fit64(queue_id, "queue_id"))
            self.before = PyBytes_FromStringAndSize(<const char *>c.out.start + 8, c.out.size - 8)
            c.out.size = 8
            put_number(&c, b"j", 1, 0)
            put_flag(&c, b"k", False)
            put_flag(&c, b"m", batch)
            if broker:
                put_text(&c, b"n", 1, broker)
            end_fields(&c)
            self.behind = PyBytes_FromStringAndSize(<const char *>c.out.start + 8, c.out.size - 8)
        finally:
            mq_writer_drop(&c.out)

    def frame(self, opaque, properties not None, body not None, born_at, sys_flag=0, flag=0, bint oneway=False):
        """As `encode_send` makes it."""
        cdef Command c
        cdef Run content, text
        cdef int32_t number = fit32(opaque, "opaque"), marks = ONEWAY if oneway else 0
        cdef object held = hold(body, &content), held_text = hold(properties, &text)
        if not is_utf8(text.at, text.size):
            raise ConfigError("properties are no UTF-8")
        c.form = FORM_JSON
        c.first = False
        c.out.bytes = NULL
        try:
            mq_writer_open(&c.out, content.size + text.size + text.size // 4 + 512)
            mq_room(&c.out, 8)
            mq_write(&c.out, PyBytes_AS_STRING(self.before), PyBytes_GET_SIZE(self.before))
            put_number(&c, b"f", 1, fit64(sys_flag, "sys_flag"))
            put_number(&c, b"g", 1, fit64(born_at, "born_at"))
            put_number(&c, b"h", 1, fit64(flag, "flag"))
            put_field(&c, literal(b"i", 1), text)
            mq_write(&c.out, PyBytes_AS_STRING(self.behind), PyBytes_GET_SIZE(self.behind))
            end_header(&c, number, marks, "PYTHON", None, 479)
            write_run(&c.out, content)
            return finish(&c, 0)
        finally:
            mq_writer_drop(&c.out)
