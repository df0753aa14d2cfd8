"""Sending: another broker is tried while time is left; a key keeps its queue; batches are cut where the limits are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError, MQError
from mqclient.hooks import Sent
from mqclient.rocketmq.codes import BrokerError
from mqclient.rocketmq.model import (
    Account,
    CircuitOpenError,
    Message,
    MessageQueue,
    PartialSendError,
    QueueFullError,
    Receipt,
)
from mqclient.rocketmq.remoting.many import plan
from mqclient.rocketmq.remoting.producer import ProducerEngine, checked
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec, brokers=2)
    cluster.topic("orders", 2)
    return cluster


def stored(cluster: VirtualCluster, topic: str) -> int:
    return sum(
        queue.log.next
        for service in cluster.door.services
        if topic in service.broker.topics
        for queue in service.broker.topics[topic].queues.values()
    )


def test_messages_go_round_all_queues(cluster: VirtualCluster) -> None:
    receipts = cluster.client().produce(*[Message("orders", b"x") for _ in range(8)])
    assert len({receipt.queue for receipt in receipts}) == 4
    assert sorted(receipt.offset for receipt in receipts) == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_busy_broker_is_followed_by_the_other(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.produce(Message("orders", b"x"), Message("orders", b"x"))
    cluster.control.answer("SEND_MESSAGE_V2", 2, "[TIMEOUT_CLEAN_QUEUE]")
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok
    assert cluster.control.count("SEND_MESSAGE_V2") == 4


def test_a_silent_broker_leaves_time_for_the_other(cluster: VirtualCluster) -> None:
    client = cluster.client()
    cluster.control.drop("SEND_MESSAGE_V2")
    before = cluster.world.mono
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok
    assert 1.0 < cluster.world.mono - before < 2.0


def test_a_lost_connection_is_followed_by_the_other_broker(cluster: VirtualCluster) -> None:
    client = cluster.client()
    cluster.control.cut("SEND_MESSAGE_V2")
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok


def test_an_answer_that_no_other_broker_would_change_is_final(cluster: VirtualCluster) -> None:
    cluster.control.answer("SEND_MESSAGE_V2", 13, "message illegal")
    (error,) = cluster.client().produce(Message("orders", b"x"))
    assert isinstance(error, BrokerError)
    assert (error.code, error.retriable) == (13, False)
    assert stored(cluster, "orders") == 0


def test_when_all_fail_the_last_error_is_told_at_the_deadline(cluster: VirtualCluster) -> None:
    cluster.control.drop("SEND_MESSAGE_V2", times=10)
    before = cluster.world.mono
    (error,) = cluster.client().produce(Message("orders", b"x"))
    assert isinstance(error, DeadlineError)
    assert error.outcome_unknown
    assert cluster.world.mono - before == pytest.approx(3.0)


def test_stored_with_less_safety_is_told_apart(cluster: VirtualCluster) -> None:
    cluster.control.answer("SEND_MESSAGE_V2", 11, "")
    (receipt,) = cluster.client().produce(Message("orders", b"x"))
    assert (receipt.ok, receipt.status) == (True, "SLAVE_NOT_AVAILABLE")


def test_no_name_server_is_an_error_that_names_it(cluster: VirtualCluster) -> None:
    cluster.world.refuse(("names", 9876))
    (error,) = cluster.client().produce(Message("orders", b"x"))
    assert isinstance(error, LinkError)
    assert "names:9876" in str(error)


def test_many_at_once_to_a_new_topic_ask_for_its_route_once(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        engine = ProducerEngine(client.engine, "p")
    prepared = [engine.prepare(Message("fresh", b"%d" % number)) for number in range(50)]
    with client.driver.enter():
        slots = [engine.send(one, None)[0] for one in prepared]
    for slot in slots:
        assert client.driver.wait(slot)[0].ok
    assert cluster.control.count("GET_ROUTEINFO_BY_TOPIC") == 2  # the topic's, then the template's


def test_after_the_close_nothing_is_sent(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.produce(Message("orders", b"x"))
    with client.driver.enter():
        slot = client.engine.shutdown()
    client.driver.wait(slot)
    cluster.world.run()
    assert all(not service.members.producers for service in cluster.door.services)
    with pytest.raises(ClosedError), client.driver.enter():
        ProducerEngine(client.engine, "again").send(None, None)  # type: ignore[arg-type]


def test_oneway_messages_are_written_and_not_waited_for(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        engine = ProducerEngine(client.engine, "p")
    for topic in ("orders", "fresh"):
        prepared = engine.prepare(Message(topic, b"x"), "key")
        with client.driver.enter():
            slot = engine.submit_oneway(prepared)
        client.driver.wait(slot)
        cluster.world.run()
        assert stored(cluster, topic) == 1


def test_a_group_has_one_producer_a_client(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.produce(Message("orders", b"x"))
    with pytest.raises(ConfigError, match="has a producer"), client.driver.enter():
        ProducerEngine(client.engine, "producers")


def engine_of(client: VirtualClient, **options: Any) -> ProducerEngine:
    with client.driver.enter():
        return ProducerEngine(client.engine, "p", ProducerOptions(**options))


def submit(engine: ProducerEngine, *messages: Message, key: str | None = None) -> list[Any]:
    """In one entry; futures, or None where there was no room."""
    prepared = [engine.prepare(message, key) for message in messages]
    with engine.client.driver.enter():
        return [engine.submit(one) for one in prepared]


def finish(engine: ProducerEngine, call: Callable[[], Any]) -> Any:
    driver: Any = engine.client.driver
    with driver.enter():
        slot = call()
    return driver.wait(slot)


def test_flush_and_close_account_for_every_message(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client)
    cluster.control.answer("SEND_MESSAGE_V2", 13, "no")
    submit(engine, Message("orders", b"refused"))
    assert engine.account() == Account(0, 0, 0, 0, 1)
    finish(engine, engine.flush)
    assert engine.account() == Account(0, 0, 1, 0, 0)
    submit(engine, *[Message("orders", b"x") for _ in range(100)])
    assert finish(engine, engine.close) == Account(100, 0, 1, 0, 0)
    assert finish(engine, engine.close).taken == 101
    assert stored(cluster, "orders") == 100


def test_a_close_under_way_waits_for_the_deadline_of_what_is_unknown(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client, attempts=1, send_timeout=2.0)
    submit(engine, Message("orders", b"x"))
    finish(engine, engine.flush)
    cluster.control.drop("SEND_MESSAGE_V2")
    cluster.control.answer("SEND_BATCH_MESSAGE", 10, "")
    submit(engine, Message("orders", b"x"))
    cluster.world.run()
    submit(engine, Message("orders", b"x"), Message("orders", b"y"))
    before = cluster.world.mono
    assert finish(engine, engine.close) == Account(1, 2, 0, 1, 0)
    assert cluster.world.mono - before == pytest.approx(2.0)
    with pytest.raises(ClosedError):
        submit(engine, Message("orders", b"late"))


def test_beyond_the_limits_submit_refuses_or_waits_for_room(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client, max_pending_messages=2, when_full="refuse")
    one, two, three = submit(engine, *[Message("orders", b"x") for _ in range(3)])
    assert three is None
    with pytest.raises(QueueFullError, match=r"2 messages of .* when_full='block' waits"):
        engine.submit_late(engine.prepare(Message("orders", b"x")))
    assert (one.result(5).ok, two.result(5).ok) == (True, True)
    waiting = ProducerEngine(client.engine, "waits", ProducerOptions(max_pending_messages=1))
    (first,) = submit(waiting, Message("orders", b"1"))
    second = waiting.submit_late(waiting.prepare(Message("orders", b"2")))
    assert (first.done(), second.result(5).ok) == (True, True)
    assert waiting.budget.items == 0


def test_who_waits_for_room_in_vain_leaves_the_queue(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client, max_pending_bytes=1, send_timeout=1.0)
    cluster.control.drop("SEND_MESSAGE_V2", times=9)
    with client.driver.enter():  # its own time is longer than that of the one who waits for room
        engine._batching.add(engine.prepare(Message("orders", b"x")), client.driver.now.mono + 30, None)
        assert engine.budget.take(1)
    with pytest.raises(QueueFullError, match="none was in time"):
        engine.submit_late(engine.prepare(Message("orders", b"x")))
    assert engine.budget.waiting == 0
    client.engine.blocking = False
    with pytest.raises(QueueFullError, match=r"await producer\.send"):
        engine.submit_late(engine.prepare(Message("orders", b"x")))


def test_who_is_interrupted_while_waiting_for_room_leaves_the_queue(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client, max_pending_messages=1)
    with client.driver.enter():
        assert engine.budget.take(1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    cluster.world.at(cluster.world.mono + 1, interrupt)
    with pytest.raises(KeyboardInterrupt):
        engine.submit_late(engine.prepare(Message("orders", b"interrupted")))
    assert (engine.budget.waiting, engine.budget.items) == (0, 1)
    with client.driver.enter():
        engine.budget.give(1)
    (future,) = submit(engine, Message("orders", b"next"))
    assert future.result(5).ok
    assert finish(engine, engine.close) == Account(1, 0, 0, 0, 0)


def test_room_that_comes_with_the_close_is_given_back(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client, max_pending_messages=1)
    with client.driver.enter():
        assert engine.budget.take(1)

    def give_and_close() -> None:
        with client.driver.enter():
            engine.budget.give(1)
            engine.close()

    cluster.world.at(cluster.world.mono + 1, give_and_close)
    with pytest.raises(ClosedError, match="'p' is closed"):
        engine.submit_late(engine.prepare(Message("orders", b"late")))
    assert (engine.budget.waiting, engine.budget.items, engine.budget.bytes) == (0, 0, 0)
    assert stored(cluster, "orders") == 0


def test_a_closed_producer_sends_nothing(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client)
    prepared = engine.prepare(Message("orders", b"x"))
    chains = plan(engine, [Message("orders", b"x")], None)
    finish(engine, engine.close)
    calls: list[Callable[[], Any]] = [
        lambda: engine.send(prepared, None),
        lambda: engine.submit_many(chains, None),
        lambda: engine.submit_oneway(prepared),
    ]
    for call in calls:
        with pytest.raises(ClosedError, match="'p' is closed"), client.driver.enter():
            call()
    assert stored(cluster, "orders") == 0


def test_a_message_goes_to_the_queue_that_is_asked_for_and_to_none_of_another_topic(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client)
    prepared = [engine.prepare(Message("orders", b"x")) for _ in range(4)]
    wanted, strange = MessageQueue("orders", "broker-b", 1), MessageQueue("bills", "broker-b", 1)
    with client.driver.enter():
        slots = [engine.send(one, None, wanted) for one in prepared]
        future: Any = engine.submit(prepared[0], wanted)
        for refused in (engine.submit, lambda one, queue: engine.send(one, None, queue)):
            with pytest.raises(ConfigError, match="cannot go to a queue of 'bills'"):
                refused(prepared[0], strange)
    assert {client.driver.wait(slot)[index].queue for slot, index in slots} == {wanted}
    assert future.result(5).queue == wanted
    assert stored(cluster, "orders") == 5


def test_a_large_body_arrives_as_it_was(cluster: VirtualCluster) -> None:
    """So large that it goes to the socket from where it lies, behind a head of its own."""
    body = bytes(range(256)) * 200
    client = cluster.client()
    engine = engine_of(client, compression=None, new_topic_queues=3)
    (receipt,) = client.produce(Message("fresh", body, tag="big", properties={"shop": "north"}), group="p")
    broker = next(one.broker for one in cluster.door.services if one.broker.name == receipt.queue.broker_name)
    record = broker.topics["fresh"].queue(receipt.queue.queue_id).log.record(receipt.offset)
    (message,) = cluster.codec.remoting.decode_messages(record)
    assert (message.body, message.tag, message.property("shop")) == (body, "big", "north")
    assert (message.message_id, message.born_at) == (receipt.message_id, cluster.world.wall_ms)
    assert broker.topics["fresh"].write_queues == 3
    assert engine.account() == Account(1, 0, 0, 0, 0)


def test_many_are_stored_by_one_call(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client)
    messages = [Message("orders", b"%d" % number) for number in range(20)]
    chains = plan(engine, messages, None)
    parts = finish(engine, lambda: engine.submit_many(chains, None))
    assert sorted(index for part in parts for index in part.indexes) == list(range(20))
    assert [part.outcome.status for part in parts] == ["SEND_OK"] * len(parts)
    assert stored(cluster, "orders") == 20
    assert cluster.control.count("SEND_BATCH_MESSAGE") < 20


def test_what_requests_begin_with_is_kept_for_a_limited_number_of_queues(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqclient.rocketmq.remoting.producer.MOST_HEADS", 3)
    client = cluster.client()
    engine = engine_of(client)
    receipts = client.produce(*[Message("orders", b"x") for _ in range(9)], group="p")
    assert len({receipt.queue for receipt in receipts}) == 4
    assert all(receipt.ok for receipt in receipts)
    assert [len(heads) <= 3 for heads in engine._heads.values()] == [True]


def test_a_coroutine_waits_for_room(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.engine.blocking = False
    engine = engine_of(client, max_pending_messages=1)
    prepared = [engine.prepare(Message("orders", b"%d" % number)) for number in range(3)]
    with client.driver.enter():
        waiting = [engine.send(one, None) for one in prepared]
    receipts = [client.driver.wait(slot)[index] for slot, index in waiting]
    assert [receipt.message_id for receipt in receipts] == [one.message_id for one in prepared]
    assert engine.budget.items == 0


def test_a_child_sends_nothing_that_was_submitted_before_the_fork(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client)
    client.engine.blocking = False
    futures = submit(engine, Message("orders", b"on its way"))
    cluster.control.delay("SEND_MESSAGE_V2", seconds=1)
    cluster.world.run()
    futures += submit(engine, Message("orders", b"gathers"))
    before = stored(cluster, "orders")
    with client.driver.enter():
        client.engine.on_fork()
    assert all(isinstance(future.exception(0), ClosedError) for future in futures)
    cluster.world.advance(5)
    assert stored(cluster, "orders") - before <= 1  # the parent's own request
    client.engine.blocking = True
    (receipt,) = client.produce(Message("orders", b"the child's"), group="p")
    assert receipt.ok


def test_a_child_tells_no_traces_of_what_its_parent_sent(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine_of(client, message_trace=True)
    client.produce(Message("orders", b"the parent's"), group="p")
    with client.driver.enter():
        client.engine.on_fork()
    cluster.world.advance(30)
    assert stored(cluster, "RMQ_SYS_TRACE_TOPIC") == 0
    client.produce(Message("orders", b"the child's"), group="p")
    cluster.world.advance(30)
    assert stored(cluster, "RMQ_SYS_TRACE_TOPIC") == 1


def test_options_are_checked(cluster: VirtualCluster) -> None:
    with pytest.raises(ConfigError, match="max_body"):
        engine_of(cluster.client(), batch_max_bytes=8 << 20)


def test_results_of_many_as_one_error() -> None:
    good: list[Receipt | MQError] = [Receipt(MessageQueue("t", "b", 0), 0, "", "")]
    assert checked(list(good), True) == good
    bad: list[Receipt | MQError] = [*good, DeadlineError("late")]
    assert checked(list(bad), False) == bad
    with pytest.raises(PartialSendError, match="1 of 2"):
        checked(list(bad), True)


class Meter:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.messages = 0

    def after_send(self, sent: Sent) -> None:
        self.messages += len(sent.message_ids)


def test_options_that_hold_back_listen_and_trace(cluster: VirtualCluster) -> None:
    client, meter = cluster.client(), Meter()
    engine = engine_of(client, rate_limit=10, breaker_failures=1, hooks=(meter,), message_trace=True, attempts=1)
    before = cluster.world.mono
    receipts = client.produce(*[Message("orders", b"x")] * 4, group="p")
    assert all(receipt.ok for receipt in receipts)
    assert cluster.world.mono - before == pytest.approx(0.2)
    (late,) = submit(engine, Message("orders", b"x"))
    assert late is None
    assert engine.submit_late(engine.prepare(Message("orders", b"x"))).result(5).ok
    chains = plan(engine, [Message("orders", b"x")] * 3, None)
    assert len(finish(engine, lambda: engine.submit_many(chains, None))) == 1
    oneway = engine.prepare(Message("orders", b"x"))
    finish(engine, lambda: engine.submit_oneway(oneway))
    cluster.world.run()
    assert meter.messages == 4 + 1 + 3
    cluster.world.advance(1)
    cluster.control.answer("SEND_MESSAGE_V2", 2, "busy")
    (future,) = submit(engine, Message("orders", b"x"))
    assert isinstance(future.exception(5), MQError)
    with pytest.raises(CircuitOpenError):
        submit(engine, Message("orders", b"x"))
    assert engine.budget.items == 0
    finish(engine, engine.close)
    assert stored(cluster, "RMQ_SYS_TRACE_TOPIC") == 1


def test_slow_brokers_are_left_alone_if_that_is_wanted(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client, avoid_slow_brokers=True)
    client.produce(Message("orders", b"x"), group="p")
    engine.faults.failed("broker-a", client.driver.now.mono)
    receipts = client.produce(*[Message("orders", b"x") for _ in range(4)], group="p")
    assert {receipt.queue.broker_name for receipt in receipts} == {"broker-b"}
