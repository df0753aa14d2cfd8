# allocate: checks in Java's order, and the rules that need no more than the index.

@cython.final
@cython.internal
cdef class Options:
    """What the rules need besides queues and members."""

    cdef object queues
    cdef object rooms
    cdef object inner
    cdef object broker_room
    cdef object member_room
    cdef Py_ssize_t virtual_nodes
    cdef object hash
    cdef object current


cdef int need(str rule, str option, object value) except -1:
    if value is None:
        raise ConfigError(f"the rule {rule} needs the option {option}")
    return 0


cdef int check(object rule, Options options) except -1:
    """As far as the arguments alone can tell; Java does it in the constructors of its rules."""
    if rule not in RULES:
        raise ConfigError(f"no allocation rule is called {rule!r}; there are {', '.join(RULES)}")
    if rule == "by_config":
        return need(rule, "queues", options.queues)
    if rule == "machine_room":
        return need(rule, "rooms", options.rooms)
    if rule == "consistent_hash" and options.virtual_nodes < 0:
        raise ConfigError(f"virtual_nodes is {options.virtual_nodes}; it cannot be negative")
    if rule == "machine_room_nearby":
        need(rule, "broker_room", options.broker_room)
        need(rule, "member_room", options.member_room)
        if options.inner == rule:
            raise ConfigError(f"the inner rule of {rule} must be another one")
        return check(options.inner, options)
    return 0


cdef list averagely(object available, Py_ssize_t members, Py_ssize_t index):
    cdef Py_ssize_t count = len(available)
    cdef Py_ssize_t size = count // members, more = count % members
    cdef Py_ssize_t start = index * size + min(index, more)
    share = available[start:start + size + (index < more)]
    return share if type(share) is list else list(share)


cdef list share_of(object rule, object own, object available, object ids, Options options):
    """Java's checks in Java's order, then the rule."""
    if rule == "by_config":
        return list(options.queues)
    if not PyUnicode_CheckExact(own):
        raise TypeError(f"the own id is a str, not {type(own).__name__}")
    if not own:
        raise ConfigError("the own client id is empty")
    if not available:
        raise ConfigError("there are no queues to share")
    cdef Members members = known(ids)
    cdef Py_ssize_t index = members.index(own)
    if index < 0:
        return []
    if rule == "averagely":
        return averagely(available, len(members.ids), index)
    if rule == "averagely_by_circle":
        return list(available[index::len(members.ids)])
    if rule == "consistent_hash":
        return consistent_hash(available, members, own, options.virtual_nodes, options.hash)
    if rule == "rendezvous":
        return rendezvous(available, members, index)
    if rule == "sticky":
        return sticky(available, members, own, options.current)
    if rule == "machine_room":
        return machine_room(available, len(members.ids), index, options.rooms)
    return machine_room_nearby(available, members, own, options)


def allocate(
    rule,
    own,
    available,
    members,
    /,
    *,
    queues=None,
    rooms=None,
    inner="averagely",
    broker_room=None,
    member_room=None,
    Py_ssize_t virtual_nodes=10,
    hash=None,
    current=None,
):
    """The share of `own` in the available queues; see `mqclient/_native/allocation.pyi`."""
    cdef Options options = Options.__new__(Options)
    options.queues = queues
    options.rooms = rooms
    options.inner = inner
    options.broker_room = broker_room
    options.member_room = member_room
    options.virtual_nodes = virtual_nodes
    options.hash = hash
    options.current = current
    check(rule, options)
    return share_of(rule, own, available, members, options)
