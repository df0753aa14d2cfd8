"""The Pulsar codec, for reading: what `mqclient/_native/pulsar.pyi` describes, from the protocol's specification."""

# ruff: noqa: F401 - what is imported here is the surface; __all__ would be one name more than the extension has

from __future__ import annotations

from mqclient._pure.pulsar.batch import BatchBuilder, Door
from mqclient._pure.pulsar.columns import COLUMNS, encode_columns
from mqclient._pure.pulsar.commands import ACK, FLOW, MESSAGE, PING, PONG, SEND, SEND_RECEIPT
from mqclient._pure.pulsar.encode import (
    PING_FRAME,
    PONG_FRAME,
    encode_ack,
    encode_command,
    encode_flow,
    encode_message,
    encode_metadata,
    encode_receipt,
    encode_send,
)
from mqclient._pure.pulsar.entry import CHECKSUM_MISMATCH, Entry
from mqclient._pure.pulsar.fdio import WOULD_BLOCK, send_now
from mqclient._pure.pulsar.flight import EntryFlight
from mqclient._pure.pulsar.frames import FRAME_PADDING, MAX_MESSAGE, FrameReader
from mqclient._pure.pulsar.lane import Lane
from mqclient._pure.pulsar.message_id import MessageId
from mqclient._pure.pulsar.messages import (
    BATCH_DESERIALIZE_ERROR,
    DECOMPRESSION_ERROR,
    UNCOMPRESSED_SIZE_CORRUPTION,
    Message,
    MessageBatch,
    decode_messages,
)
from mqclient._pure.pulsar.runs import decode_run, take_run
from mqclient._pure.pulsar.train import EntryTrain

INDIVIDUAL, CUMULATIVE = 0, 1
DECRYPTION_ERROR = 4
EARLIEST = MessageId(-1, -1)
LATEST = MessageId((1 << 63) - 1, (1 << 63) - 1)
