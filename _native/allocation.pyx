# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Which queues are mine: the RocketMQ allocation rules, rendezvous and sticky; see `mqclient/_native/allocation.pyi`.

| part | what |
|---|---|
| allocation/members.pxi | member lists seen before, with what was worked out from them |
| allocation/texts.pxi | texts of queues and ring points, hashed many at a time (common/md5.h) |
| allocation/ring.pxi | consistent_hash |
| allocation/rendezvous.pxi | rendezvous |
| allocation/sticky.pxi | sticky |
| allocation/rooms.pxi | machine_room, machine_room_nearby |
| allocation/rules.pxi | allocate: checks, averagely, by circle, by config |
"""

cimport cython

from bisect import bisect_left
from collections.abc import Mapping
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from mqclient.errors import ConfigError

RULES = (
    "averagely",
    "averagely_by_circle",
    "machine_room",
    "machine_room_nearby",
    "consistent_hash",
    "rendezvous",
    "sticky",
    "by_config",
)

include "allocation/texts.pxi"
include "allocation/members.pxi"
include "allocation/ring.pxi"
include "allocation/rendezvous.pxi"
include "allocation/sticky.pxi"
include "allocation/rooms.pxi"
include "allocation/rules.pxi"
