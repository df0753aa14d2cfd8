# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The accounts: a Pulsar consumer's permits, a RocketMQ queue's offsets in flight, acknowledgements not yet told.

Surface and meaning: mqclient/_native/permits.pyi. Nothing here runs Python code between reading and writing its state,
so that one call is one step under the GIL; an AckSet, which faces use without the engine lock, also takes a critical
section for builds without the GIL.
"""

cimport cython
from common.ack_id cimport ACK_ID_CAPSULE, ack_id, read_ack_id
from cpython.long cimport PyLong_AsUnsignedLongLongMask
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(object)

DELIVERED = 0
SKIPPED = 1
DISCARDED = 2
EXPIRED = 3
CHUNK = 4

COUNT = 1
BYTES = 2
SPAN = 3

ARM = 1
FLUSH = 2

cdef enum:
    REASONS = 5
    MOST = 0x7fffffff
    LARGEST_BATCH = 1 << 24

include "permits/credits.pxi"
include "permits/outstanding.pxi"
include "permits/acktable.pxi"
include "permits/ackset.pxi"
