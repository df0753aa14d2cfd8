# What a user gives for a message to send.

@cython.no_gc  # bytes, texts and numbers: no cycle; and lists of new messages do not wake the collector
cdef class Outgoing:
    """Outgoing(topic, body, *, tag=None, keys=(), properties=None, delay_level=0, deliver_at=None,
         deliver_after=None, flag=0)
--

The fields of a message to send."""
    cdef public object topic, body, tag, delay_level, deliver_at, deliver_after, flag
    cdef object own_keys, own_properties  # None until somebody asks for them

    def __init__(self, topic, body, *, tag=None, keys=(), properties=None, delay_level=0, deliver_at=None,
                 deliver_after=None, flag=0):
        if type(body) is not bytes:
            refuse_text(body)
        self.topic = topic
        self.body = body
        self.tag = tag
        self.own_keys = None
        if type(keys) is not tuple or keys:
            self.own_keys = [keys] if isinstance(keys, str) else list(keys)
        self.own_properties = dict(properties) if properties else None
        self.delay_level = delay_level
        if deliver_at is not None and isinstance(deliver_at, datetime):
            deliver_at = int(deliver_at.timestamp() * 1000)
        self.deliver_at = deliver_at
        self.deliver_after = deliver_after
        self.flag = flag

    @property
    def keys(self):
        if self.own_keys is None:
            self.own_keys = []
        return self.own_keys

    @keys.setter
    def keys(self, keys):
        self.own_keys = keys

    @property
    def properties(self):
        if self.own_properties is None:
            self.own_properties = {}
        return self.own_properties

    @properties.setter
    def properties(self, properties):
        self.own_properties = properties


cdef int refuse_text(object body) except -1:
    if not isinstance(body, (bytes, bytearray, memoryview)):
        cure = "encode it first: text.encode()" if isinstance(body, str) else "turn it into bytes first"
        raise TypeError(f"a body is bytes, not {type(body).__name__}: {cure}")
    return 0


cdef Outgoing fields_of(object message, object kind):
    """The message itself if it is of the `kind` whose fields nobody overrides; else what its attributes give."""
    cdef Outgoing fields
    if type(message) is kind:
        return <Outgoing>message
    fields = Outgoing.__new__(Outgoing)
    fields.topic = message.topic
    fields.body = message.body
    fields.tag = message.tag
    fields.own_keys = message.keys
    fields.own_properties = message.properties
    fields.delay_level = message.delay_level
    fields.deliver_at = message.deliver_at
    fields.deliver_after = message.deliver_after
    fields.flag = message.flag
    return fields


cdef object own_kind(object kind):
    """The class whose messages are read field by field: one of ours, or none."""
    return kind if type(kind) is type and issubclass(kind, Outgoing) else None
