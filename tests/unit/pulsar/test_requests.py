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
from mqclient.pulsar.schema.base import SchemaInfo


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


def test_questions_about_topics(codec: Any) -> None:
    assert body(codec, requests.partitions("t")).topic == "t"
    sent = body(codec, requests.topics("public/default", 2, "hash"))
    assert (sent.namespace, sent.mode, sent.topics_hash) == ("public/default", 2, "hash")
    sent = body(codec, requests.watch_topics(5, "public/default", "a.*"))
    assert (sent.watcher_id, sent.namespace, sent.topics_pattern) == (5, "public/default", "a.*")
    assert body(codec, requests.unwatch_topics(5)).watcher_id == 5
    sent = body(codec, requests.lookup("t", True, "outside"))
    assert (sent.topic, sent.authoritative, sent.advertised_listener_name) == ("t", True, "outside")
    assert not body(codec, requests.lookup("t", False)).HasField("advertised_listener_name")


def test_producer(codec: Any) -> None:
    schema = SchemaInfo("rows", 2, b"{}", {"a": "b"})
    sent = body(
        codec,
        requests.producer(
            "t",
            3,
            name="n",
            user_provided=True,
            epoch=4,
            metadata={"m": "1"},
            access=1,
            topic_epoch=9,
            initial_subscription="first",
            schema=schema,
        ),
    )
    assert (sent.topic, sent.producer_id, sent.producer_name, sent.epoch) == ("t", 3, "n", 4)
    assert (sent.producer_access_mode, sent.topic_epoch, sent.initial_subscription_name) == (1, 9, "first")
    assert not sent.HasField("encrypted")
    assert requests.schema_info(sent.schema) == schema
    bare = requests.producer("t", 3, name=None, user_provided=False, epoch=0, metadata={}, encrypted=True)
    sent = body(codec, bare)
    assert (sent.HasField("producer_name"), sent.HasField("schema"), sent.encrypted) == (False, False, True)
    assert body(codec, requests.close_producer(3)).producer_id == 3


def test_schemas(codec: Any) -> None:
    assert requests.schema_fields(SchemaInfo("bytes", None, b"", {})) is None
    assert body(codec, requests.get_schema("t", b"\0\1")).schema_version == b"\0\1"
    assert not body(codec, requests.get_schema("t", None)).HasField("schema_version")


def test_commands_of_one_consumer(codec: Any) -> None:
    assert body(codec, requests.close_consumer(3)).consumer_id == 3
    assert body(codec, requests.unsubscribe(3, True)).force
    assert body(codec, requests.seek_to_time(3, 12345)).message_publish_time == 12345
    assert body(codec, requests.last_message_id(3)).consumer_id == 3
    assert body(codec, requests.consumer_stats(3)).consumer_id == 3


def test_what_is_told_without_being_asked() -> None:
    waiting = reply("CommandProducerSuccess", producer_name="n", producer_ready=False)
    ready = reply("CommandProducerSuccess", producer_name="n", producer_ready=True)
    assert [requests.is_waiting(told) for told in (waiting, ready, reply("CommandSuccess"))] == [True, False, False]
    told = _schema.message("CommandSendError")(producer_id=1, sequence_id=2, error=15, message="no")
    error = requests.remote_error(told, "broker:1")
    assert (error.code, error.remote, error.request) == (ServerError.TopicTerminatedError, "broker:1", "CommandSend")
    features = _schema.message("FeatureFlags")(supports_auth_refresh=True, supports_partial_producer=False)
    assert requests.flags(features) == {"supports_auth_refresh": True, "supports_partial_producer": False}
