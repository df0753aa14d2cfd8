"""What a broker of RocketMQ says to a thread that waits alone: it gets the answer that is for it, and only that."""

from __future__ import annotations

import socket
from random import Random

from mqclient._impl import Impl
from tests.fuzz.sent import ROOM
from tests.support.road import RemotingRoad

MINE = 0x7FFFFFF1
"""The number of our request; the seeds have smaller ones."""


def run_crossing(impl: Impl, data: bytes, random: Random) -> None:
    """`data` comes first, then the answer. A slot, at the latest when the lane cannot go on, else the frame."""
    road = RemotingRoad(impl.remoting)
    hindered = random.randrange(8)
    if hindered == 0:
        road.clog()
    if hindered == 2:
        road.connection.closing = True
    road.peer.sendall(data[:ROOM] + road.reply(MINE))
    if hindered == 1:
        road.peer.shutdown(socket.SHUT_WR)
    road.end_bell.ring()  # nobody waits for what does not come
    crossing = road.crossing(MINE)
    found = road.lane.exchange(crossing, road.request(MINE), 3)
    assert road.reading.acquire(False)
    assert (road.taken, road.lane.under_way) == (False, set())
    if found is None:  # the twin takes nothing
        assert hindered == 2 or not impl.remoting.Lane.able
    elif crossing.slot is None:
        assert (found.opaque, found.code, found.flag & 1) == (MINE, 0, 1)
        assert (crossing.answered, road.lane.landed, road.waiting) == (True, 3, {})
    else:
        assert (found, crossing.answered, road.lane.landed) == (crossing.slot, False, 0)
        assert found.done == (MINE not in road.waiting)
        assert not found.done or found.result().opaque == MINE
        assert bool(road.link.outbox) == (hindered == 0)
    road.close()
