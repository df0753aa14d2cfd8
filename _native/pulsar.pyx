# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: nonecheck=True, auto_pickle=False
"""The Pulsar codec (see mqclient/_native/pulsar.pyi).

| hot: by hand                                          | reads                   | writes     |
|-------------------------------------------------------|-------------------------|------------|
| SEND, SEND_RECEIPT, MESSAGE, ACK, FLOW, PING, PONG    | commands.pxi            | encode.pxi |
| MessageMetadata, BrokerEntryMetadata                  | metadata.pxi, entry.pxi | encode.pxi |
| SingleMessageMetadata                                 | decode.pxi              | batch.pxi  |

Cold is everything else: its type and bytes leave here, protobuf reads and writes it (`mqclient._schema`).

Bytes of a peer are read through the checked cursor only (common/cursor.h, common/varint.h).
"""

cimport cython
from cpython.buffer cimport PyBUF_WRITE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

from common.ack_id cimport ACK_ID_CAPSULE, ack_id
from common.cursor cimport mq_be16, mq_be32, mq_cursor, mq_left, mq_open, mq_put16, mq_put32, mq_skip
from common.text cimport mq_is_ascii, mq_text
from common.varint cimport (
    mq_field, mq_next_field, mq_put_data, mq_put_number, mq_put_varint, mq_varint, mq_varint_size,
)
from common.writebuf cimport mq_room, mq_write, mq_writer, mq_writer_done, mq_writer_drop, mq_writer_open

from types import GenericAlias

from mqclient.errors import ConfigError, ProtocolError

include "common/fdio.pxi"
include "pulsar/wire.pxi"
include "pulsar/message_id.pxi"
include "pulsar/metadata.pxi"
include "pulsar/entry.pxi"
include "pulsar/messages.pxi"
include "pulsar/decode.pxi"
include "pulsar/columns.pxi"
include "pulsar/commands.pxi"
include "pulsar/runs.pxi"
include "pulsar/frames.pxi"
include "pulsar/encode.pxi"
include "pulsar/batch.pxi"
include "pulsar/rows.pxi"
include "pulsar/train.pxi"
include "pulsar/flight.pxi"
include "pulsar/row.pxi"
include "common/passage.pxi"
include "pulsar/way.pxi"
include "pulsar/lane.pxi"
