# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: auto_pickle=False
"""The native remoting codec: frames, headers, messages, batches, columns and ids of RocketMQ.

| hot, made by hand                                        | cold, generic                          |
|----------------------------------------------------------|----------------------------------------|
| cutting frames, reading both header forms                | fields as a dict                       |
| `encode_send`, `encode_pull`                             | `encode_frame`: every other command    |
| walking pull replies, tag filter, columns both ways      | hosts as text, inner batches           |
| batch elements, stored messages, `store_batch`, ids      | `split_batch`, parsing ids             |
| messages as users make them, `SendHead`, receipts        |                                        |
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_SetItem
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from common.cursor cimport *
from common.scan cimport *
from common.text cimport *
from common.writebuf cimport *

from datetime import datetime

from mqclient.errors import ConfigError, ProtocolError

include "remoting/arguments.pxi"
include "remoting/json.pxi"
include "remoting/header.pxi"
include "remoting/frames.pxi"
include "common/fdio.pxi"
include "remoting/requests.pxi"
include "remoting/properties.pxi"
include "remoting/walk.pxi"
include "remoting/messages.pxi"
include "remoting/decode.pxi"
include "remoting/columns.pxi"
include "remoting/arrow.pxi"
include "remoting/batch.pxi"
include "remoting/stored.pxi"
include "remoting/rows.pxi"
include "remoting/ids.pxi"
include "remoting/fields.pxi"
include "remoting/outgoing.pxi"
include "remoting/sends.pxi"
include "remoting/receipts.pxi"
include "common/passage.pxi"
include "remoting/lane.pxi"
include "remoting/ferry.pxi"
