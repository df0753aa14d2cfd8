"""The Pulsar codec, for reading: what `mqclient/_native/pulsar.pyi` describes, from the protocol's specification."""

from __future__ import annotations

from mqclient._pure.pulsar.batch import BatchBuilder
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
from mqclient._pure.pulsar.frames import FRAME_PADDING, MAX_MESSAGE, FrameReader
from mqclient._pure.pulsar.message_id import EARLIEST, LATEST, MessageId
from mqclient._pure.pulsar.messages import (
    BATCH_DESERIALIZE_ERROR,
    DECOMPRESSION_ERROR,
    UNCOMPRESSED_SIZE_CORRUPTION,
    Message,
    MessageBatch,
    decode_messages,
)

INDIVIDUAL, CUMULATIVE = 0, 1
DECRYPTION_ERROR = 4

__all__ = [
    "ACK",
    "BATCH_DESERIALIZE_ERROR",
    "CHECKSUM_MISMATCH",
    "COLUMNS",
    "CUMULATIVE",
    "DECOMPRESSION_ERROR",
    "DECRYPTION_ERROR",
    "EARLIEST",
    "FLOW",
    "FRAME_PADDING",
    "INDIVIDUAL",
    "LATEST",
    "MAX_MESSAGE",
    "MESSAGE",
    "PING",
    "PING_FRAME",
    "PONG",
    "PONG_FRAME",
    "SEND",
    "SEND_RECEIPT",
    "UNCOMPRESSED_SIZE_CORRUPTION",
    "WOULD_BLOCK",
    "BatchBuilder",
    "Entry",
    "FrameReader",
    "Message",
    "MessageBatch",
    "MessageId",
    "decode_messages",
    "encode_ack",
    "encode_columns",
    "encode_command",
    "encode_flow",
    "encode_message",
    "encode_metadata",
    "encode_receipt",
    "encode_send",
    "send_now",
]
