"""Cold commands: what is written, and what an error reply means."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient import _schema
from mqclient.core.driver import Address
from mqclient.errors import ProtocolError
from mqclient.pulsar import requests
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.requests import Command


def body(codec: Any, command: Command) -> Any:
    """The command as a peer reads it."""
    [(kind, data)] = codec.pulsar.FrameReader().feed(command.encode(codec, 7))
    return _schema.read_command(kind, data)


def test_connect_says_who_and_what(codec: Any) -> None:
    sent = body(codec, requests.connect("token", b"t", "broker:6650"))
    assert (sent.auth_method_name, sent.auth_data, sent.proxy_to_broker_url) == ("token", b"t", "broker:6650")
    assert (sent.protocol_version, sent.feature_flags.supports_auth_refresh) == (21, True)
    assert not sent.feature_flags.supports_scalable_topics
    plain = body(codec, requests.connect("none", None, None))
    assert not plain.HasField("auth_data")
    assert not plain.HasField("proxy_to_broker_url")
    answer = body(codec, requests.auth_response("none", None))
    assert (answer.response.HasField("auth_data"), answer.protocol_version) == (True, 21)


def test_subscribe(codec: Any) -> None:
    options: dict[str, Any] = {
        "type": "key_shared",
        "name": "n",
        "priority": 1,
        "metadata": {"a": "b"},
        "read_compacted": False,
        "from_earliest": True,
    }
    sent = body(codec, requests.subscribe("t", "s", 3, durable=True, start=None, **options))
    assert (sent.subType, sent.initialPosition, sent.consumer_id, sent.request_id) == (3, 1, 3, 7)
    assert not sent.HasField("start_message_id")
    assert sent.metadata[0].value == "b"
    start = codec.pulsar.EARLIEST
    sent = body(codec, requests.subscribe("t", "s", 3, durable=False, start=start, **options))
    assert (sent.start_message_id.ledgerId, sent.start_message_id.entryId) == (2**64 - 1, 2**64 - 1)


def test_seek_inside_a_batch_names_what_is_left(codec: Any) -> None:
    at = codec.pulsar.MessageId(1, 2, -1, 66, 70)
    sent = body(codec, requests.seek_to_id(3, at)).message_id
    assert (sent.ledgerId, sent.entryId, list(sent.ack_set)) == (1, 2, [0, 0b111100])
    assert requests.remaining(0, 64) == [-1]
    first = codec.pulsar.MessageId(0, 9)
    whole = codec.pulsar.MessageId(1, 2, first_chunk=first)
    assert body(codec, requests.seek_to_id(3, whole)).message_id.entryId == 9


def test_redeliver(codec: Any) -> None:
    sent = body(codec, requests.redeliver(3, [(1, 2), (1, 3)]))
    assert [(at.ledgerId, at.entryId) for at in sent.message_ids] == [(1, 2), (1, 3)]
    assert not body(codec, requests.redeliver(3, [])).message_ids


def reply(name: str, **fields: Any) -> Any:
    return requests.parse(name, _schema.message(name)(request_id=1, **fields).SerializeToString())


def test_errors_are_found_in_whichever_field() -> None:
    cases = [
        (reply("CommandError", error=5, message="busy"), ServerError.ConsumerBusy),
        (reply("CommandLookupTopicResponse", response=2, error=11, message="no"), ServerError.TopicNotFound),
        (reply("CommandLookupTopicResponse", brokerServiceUrl="x"), ServerError.UnknownError),
        (reply("CommandPartitionedTopicMetadataResponse", response=1, error=6), ServerError.ServiceNotReady),
        (reply("CommandConsumerStatsResponse", error_code=13, error_message="no"), ServerError.ConsumerNotFound),
        (reply("CommandAckResponse", consumer_id=1, error=13), ServerError.ConsumerNotFound),
    ]
    for told, code in cases:
        error = requests.error_of(told, "broker:1")
        assert error is not None
        assert (error.code, error.remote) == (code, "broker:1")
    good = [
        reply("CommandSuccess"),
        reply("CommandLookupTopicResponse", response=1),
        reply("CommandPartitionedTopicMetadataResponse", response=0, partitions=0),
    ]
    assert [requests.error_of(told, "") for told in good] == [None, None, None]


def test_bytes_that_are_no_reply() -> None:
    with pytest.raises(ProtocolError, match="CommandSuccess"):
        requests.parse("CommandSuccess", b"\xff\xff\xff")


def test_where_the_topic_went() -> None:
    told = _schema.message("CommandCloseConsumer")(
        consumer_id=1, request_id=2, assignedBrokerServiceUrl="pulsar://a", assignedBrokerServiceUrlTls="pulsar+ssl://a"
    )
    assert requests.assigned_broker(told, Address("a", 1)) == "pulsar://a"
    assert requests.assigned_broker(told, Address("a", 1, tls=object())) == "pulsar+ssl://a"
    bare = _schema.message("CommandCloseConsumer")(consumer_id=1, request_id=2)
    assert requests.assigned_broker(bare, Address("a", 1)) is None
