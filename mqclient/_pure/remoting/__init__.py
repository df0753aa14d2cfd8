"""The pure twin of the remoting codec: frames, headers, messages, batches, columns and ids of RocketMQ."""

from __future__ import annotations

from .batch import BatchBuilder
from .columns import COLUMNS, encode_columns
from .ferry import Berth, Ferry
from .fields import Outgoing
from .frames import (
    MAX_FRAME,
    WOULD_BLOCK,
    Frame,
    FrameReader,
    encode_frame,
    encode_pull,
    encode_send,
    send_now,
)
from .header import JSON, ROCKETMQ
from .ids import UniqueKeys, offset_id, offset_ids, parse_offset_id, parse_unique_key
from .lane import Crossing, Lane
from .messages import MAX_BODIES, Message, MessageBatch, decode_messages, split_batch
from .outgoing import add_messages, message_text
from .properties import decode_properties, encode_properties
from .receipts import receipts
from .sends import SendHead
from .stored import encode_message, is_timed, store_batch

__all__ = [
    "COLUMNS",
    "JSON",
    "MAX_BODIES",
    "MAX_FRAME",
    "ROCKETMQ",
    "WOULD_BLOCK",
    "BatchBuilder",
    "Berth",
    "Crossing",
    "Ferry",
    "Frame",
    "FrameReader",
    "Lane",
    "Message",
    "MessageBatch",
    "Outgoing",
    "SendHead",
    "UniqueKeys",
    "add_messages",
    "decode_messages",
    "decode_properties",
    "encode_columns",
    "encode_frame",
    "encode_message",
    "encode_properties",
    "encode_pull",
    "encode_send",
    "is_timed",
    "message_text",
    "offset_id",
    "offset_ids",
    "parse_offset_id",
    "parse_unique_key",
    "receipts",
    "send_now",
    "split_batch",
    "store_batch",
]
