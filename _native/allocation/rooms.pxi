# machine_room and machine_room_nearby.

cdef str room_in_name(str broker):
    """`room@name`, split as Java does: empty parts at the end do not count."""
    cdef list parts = broker.split("@")
    while parts and not parts[len(parts) - 1]:
        parts.pop()
    return parts[0] if len(parts) == 2 else None


cdef list machine_room(object available, Py_ssize_t members, Py_ssize_t index, object rooms):
    cdef list kept = [], share
    cdef Py_ssize_t size, more
    cdef object last = None
    cdef bint wanted = False
    for queue in available:
        broker = queue[1]
        if broker is not last:
            wanted = room_in_name(<str?> broker) in rooms
            last = broker
        if wanted:
            kept.append(queue)
    size = len(kept) // members
    more = len(kept) % members
    share = kept[index * size:(index + 1) * size]
    if index < more:
        share.append(kept[index + size * members])
    return share


cdef object room_of(object rooms, object key, object item, str kind):
    """From the caller's mapping or callable."""
    room = rooms.get(key) if isinstance(rooms, Mapping) else rooms(item)
    if not room:
        raise ConfigError(f"no machine room is known for the {kind} {item!r}")
    return room


def _java_order(str room):
    """Java compares UTF-16 code units."""
    return room.encode("utf-16-be", "surrogatepass")


cdef list machine_room_nearby(object available, Members members, str own, Options options):
    cdef dict queues_in = {}, members_in = {}
    cdef list share = []
    for queue in available:
        room = room_of(options.broker_room, queue[1], queue, "queue")
        (<list> queues_in.setdefault(room, [])).append(queue)
    for member in members.ids:
        room = room_of(options.member_room, member, member, "member")
        (<list> members_in.setdefault(room, [])).append(member)
    home = room_of(options.member_room, own, own, "member")
    if home in queues_in:
        share += share_of(options.inner, own, queues_in[home], members_in[home], options)
    for room in sorted(queues_in, key=_java_order):
        if room not in members_in:
            share += share_of(options.inner, own, queues_in[room], members.ids, options)
    return share
