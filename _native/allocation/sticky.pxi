# sticky: sizes differ by at most one, and nothing moves without need.

cdef dict held_by(list queues, list members, object current):
    """By member the places of its queues, in order; of two who claim one queue, the first has it."""
    cdef dict place_of = {}, held = {}
    cdef list places
    for place, queue in enumerate(queues):
        place_of.setdefault(queue, place)
    for member in members:
        places = []
        for queue in current.get(member, ()):
            place = place_of.pop(queue, None)
            if place is not None:
                places.append(place)
        places.sort()
        held[member] = places
    return held


cdef dict quotas(dict held, Py_ssize_t count):
    """Who holds more than the smaller share gets the larger one first."""
    cdef Py_ssize_t size = count // len(held), more = count % len(held)
    cdef dict quota = {}
    for large in (True, False):
        for member, places in held.items():
            if (len(<list> places) > size) == large:
                quota[member] = size + (more > 0)
                more -= more > 0
    return quota


cdef list sticky(object available, Members known_members, str own, object current):
    cdef list queues = list(available)
    cdef list members = list(dict.fromkeys(known_members.ids))
    cdef dict held = held_by(queues, members, {} if current is None else current)
    cdef dict quota = quotas(held, len(queues))
    cdef set taken = set()
    cdef list mine
    cdef Py_ssize_t before = 0, wanted = 0
    for member in members:
        mine = (<list> held[member])[:quota[member]]
        held[member] = mine
        taken.update(mine)
    for member in members:
        wanted = quota[member] - len(<list> held[member])
        if member == own:
            break
        before += wanted
    # what nobody keeps is given out in the order of members: ours begins behind what those before us want
    mine = held[own]
    for place in range(len(queues)):
        if wanted == 0:
            break
        if place in taken:
            continue
        if before:
            before -= 1
        else:
            mine.append(place)
            wanted -= 1
    mine.sort()
    return [queues[place] for place in mine]
