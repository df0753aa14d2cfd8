"""A producer against the embedded broker in virtual time: order, batches, receipts, resending, deadlines."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.core.steps import run_steps
from mqclient.errors import ClosedError, ConfigError, DeadlineError, MQError
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.encryption import Encryption, Key
from mqclient.pulsar.options import ProducerOptions, checked
from mqclient.pulsar.outgoing import prepare, prepare_many, results
from mqclient.pulsar.producer import ProducerEngine
from tests.support.keys import pair
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture(params=[False, True], ids=["on-leaving", "per-turn"])
def world(codec: Any, request: pytest.FixtureRequest) -> PulsarWorld:
    return PulsarWorld(codec, per_turn=request.param)


def submit(world: PulsarWorld, producer: ProducerEngine, *bodies: bytes) -> list[Any]:
    with producer.client.driver.enter():
        return [producer.submit(prepare(body)) for body in bodies]


def stored(world: PulsarWorld, topic: str) -> list[list[bytes]]:
    """The bodies that the broker has, entry by entry."""
    codec, log = world.impl.pulsar, world.door.topics.make(topic).log
    entries = [codec.Entry.from_stored(log.record(number)) for number in range(log.next)]
    return [[message.body for message in codec.decode_messages(entry)] for entry in entries]


def everything(world: PulsarWorld, topic: str) -> list[bytes]:
    return list(chain.from_iterable(stored(world, topic)))


def test_a_lone_message_leaves_at_once(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    before = world.world.mono
    assert world.sender(producer).send(b"x").entry == 0
    assert world.world.mono == before


def test_while_one_is_in_flight_others_gather(world: PulsarWorld) -> None:
    world.world.latency = 0.001
    producer = world.producer(world.client(), "t")
    futures = submit(world, producer, b"1")
    world.world.run()
    for body in (b"2", b"3", b"4"):
        futures += submit(world, producer, body)
        world.world.run()
    world.world.advance(0.005)
    assert all(future.done() for future in futures)
    assert stored(world, "t") == [[b"1"], [b"2", b"3", b"4"]]


def test_linger_is_the_upper_bound(world: PulsarWorld) -> None:
    world.world.latency = 1.0
    producer = world.producer(world.client(), "t", linger=0.02)
    submit(world, producer, b"1")
    world.world.run()
    submit(world, producer, b"2")
    world.world.advance(0.01)
    submit(world, producer, b"3")
    assert producer.diagnose()["gathering"] == 2
    world.world.advance(0.011)
    assert producer.diagnose()["gathering"] == 0
    submit(world, producer, b"4")
    world.world.advance(0.015)
    assert producer.diagnose()["gathering"] == 1
    world.world.advance(5)
    assert stored(world, "t") == [[b"1"], [b"2", b"3"], [b"4"]]


def test_count_and_bytes_seal_at_once(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batch_max_messages=3, batch_max_bytes=100)
    submit(world, producer, *[b"%d" % number for number in range(7)])
    submit(world, producer, b"x" * 99, b"y" * 99, b"z" * 300)
    world.world.advance(1)
    assert [len(entry) for entry in stored(world, "t")[:2]] == [3, 3]
    assert everything(world, "t") == [b"%d" % n for n in range(7)] + [b"x" * 99, b"y" * 99, b"z" * 300]


def test_send_many_crosses_batches(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batch_max_messages=10)
    bodies: list[Any] = [b"%d" % number for number in range(25)]
    ids = world.sender(producer).send_many([*bodies, (b"k", "key")])
    assert [len(entry) for entry in stored(world, "t")] == [10, 10, 6]
    assert [(message_id.entry, message_id.batch_index) for message_id in ids[:11]] == [
        *((0, index) for index in range(10)),
        (1, 0),
    ]
    assert world.sender(producer).send_many([]) == []
    assert producer.published == 25


def test_a_reconnect_sends_again_in_order(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    world.control.drop("SEND", times=3)
    futures = submit(world, producer, b"1")
    world.world.run()
    for body in (b"2", b"3"):
        futures += submit(world, producer, body)
        world.world.advance(0.05)
    world.cut()
    world.world.run()
    futures += submit(world, producer, b"4")  # while away it gathers
    world.world.advance(5)
    assert [future.exception() for future in futures] == [None] * 4
    assert everything(world, "t") == [b"1", b"2", b"3", b"4"]
    assert producer.diagnose()["resent"] >= 3
    assert submit(world, producer, b"5")
    world.world.run()
    assert everything(world, "t")[-1] == b"5"


def test_a_receipt_out_of_order_makes_it_send_again(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching=False)
    world.control.drop("SEND")
    futures = submit(world, producer, b"lost", b"kept")
    world.world.advance(5)
    assert [future.exception() for future in futures] == [None, None]
    # "kept" had arrived before, so without deduplication it is there twice: at least once is what was promised
    assert everything(world, "t") == [b"kept", b"lost", b"kept"]


def test_what_the_broker_had_already_may_be_told_ahead_of_its_turn(world: PulsarWorld) -> None:
    """As 4.2.4 does where parts are sent again with deduplication: those before the last are stored anew, and their
    receipts take their time."""
    producer = world.producer(world.client(), "t", batching=False, chunking=True, chunk_size=100)
    world.world.latency = 5.0
    futures = submit(world, producer, bytes(150), bytes(150), b"new", b"newer")
    connection = producer.attachment.connection
    with producer.client.driver.enter():
        producer.on_receipt(1, -1, -1)
        producer.on_receipt(17, -1, -1)
        assert not any(future.done() for future in futures)
        producer.on_receipt(0, -1, -1)
        assert [future.done() for future in futures] == [True, True, False, False]
        assert producer.published == 1
        for number in (0, 1):  # of the parts stored anew
            producer.on_receipt(number, 7, number)
        producer.on_receipt(2, 7, 2)
        assert futures[2].result().entry == 2
        producer.on_receipt(3, 7, 3)
    assert (futures[0].result().entry, futures[3].result().entry, producer.counts["late"]) == (-1, 3, 2)
    assert producer.attachment.connection is connection


def test_the_send_timeout(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", send_timeout=2.0)
    world.control.drop("SEND", times=100)
    early = submit(world, producer, b"1")
    world.world.advance(1)
    late = submit(world, producer, b"2")
    world.world.advance(1.1)
    assert isinstance(early[0].exception(), DeadlineError)
    assert not late[0].done()
    world.world.advance(1)
    assert isinstance(late[0].exception(), DeadlineError)
    world.control.clear()
    submit(world, producer, b"3")
    world.world.advance(5)
    assert everything(world, "t")[-1] == b"3"


def test_a_late_receipt_is_counted(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", send_timeout=1.0)
    world.control.delay("SEND", 2.0)
    [future] = submit(world, producer, b"1")
    world.world.advance(3)
    assert isinstance(future.exception(), DeadlineError)
    assert future.exception().outcome_unknown
    assert producer.diagnose()["late"] == 1


@pytest.mark.parametrize("code", [ServerError.NotAllowedError, ServerError.ChecksumError])
def test_an_error_of_one_entry_fails_that_entry(world: PulsarWorld, code: ServerError) -> None:
    producer = world.producer(world.client(), "t", batching=False)
    world.control.answer("SEND", code, "this one not")
    refused, taken = submit(world, producer, b"1", b"2")
    world.world.run()
    assert (refused.exception().code, refused.exception().name) == (code, code.name)
    assert taken.exception() is None


def test_a_passing_error_is_sent_again(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    world.control.answer("SEND", ServerError.PersistenceError, "later")
    assert world.sender(producer).send(b"1").entry == 0


def test_a_terminated_topic_ends_the_producer(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching=False)
    world.control.answer("SEND", ServerError.TopicTerminatedError, "the end")
    futures = submit(world, producer, b"1", b"2")
    world.world.run()
    assert {type(future.exception()) for future in futures} == {BrokerError}
    with pytest.raises(BrokerError, match="the end"):
        world.sender(producer).send(b"3")
    with pytest.raises(BrokerError, match="the end"):
        world.sender(producer).send_many([b"3"])


def test_closing_flushes_and_names_what_is_left(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    futures = submit(world, producer, b"1", b"2")
    world.sender(producer).close()
    assert [future.exception() for future in futures] == [None, None]
    with pytest.raises(ClosedError):
        world.sender(producer).send(b"3")
    with pytest.raises(ClosedError):
        submit(world, producer, b"3")
    world.sender(producer).close()
    other = world.producer(client, "t", send_timeout=1.0)
    world.control.drop("SEND", times=5)
    [future] = submit(world, other, b"x")
    world.sender(other).close()
    assert isinstance(future.exception(), DeadlineError)


def test_who_sends_while_it_closes_is_refused_for_certain(world: PulsarWorld) -> None:
    world.world.latency = 0.01
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    first = submit(world, producer, b"1")
    closing = world.ask(client, lambda: run_steps(producer.close_steps()))
    before = closing.done
    for send in (world.sender(producer).send, lambda body: submit(world, producer, body)):
        with pytest.raises(ClosedError) as caught:
            send(b"2")
        assert not caught.value.outcome_unknown
    world.world.advance(1)
    assert (before, closing.done) == (False, True)
    assert first[0].exception() is None
    assert everything(world, "t") == [b"1"]


def test_what_was_written_and_has_no_receipt_when_it_ends_may_be_there(world: PulsarWorld) -> None:
    """Fenced off while it was away, it never learns what became of the last ones."""
    world.world.latency = 0.01
    producer = world.producer(world.client(), "t", access="exclusive", batching=False)
    world.control.cut("SEND", after=True)
    [future] = submit(world, producer, b"1")
    world.control.answer("PRODUCER", ServerError.ProducerFenced, "somebody else has the topic", times=10)
    world.world.advance(5)
    assert everything(world, "t") == [b"1"]
    error = future.exception()
    assert isinstance(error, BrokerError)
    assert (error.code, error.outcome_unknown) == (ServerError.ProducerFenced, True)
    with pytest.raises(BrokerError) as caught:
        submit(world, producer, b"2")
    assert not caught.value.outcome_unknown


def test_a_taken_name_is_refused_and_free_after_close(world: PulsarWorld) -> None:
    client = world.client()
    first = world.producer(client, "t", name="mine")
    with pytest.raises(BrokerError) as caught:
        world.producer(client, "t", name="mine")
    assert caught.value.code == ServerError.ProducerBusy
    world.sender(first).close()
    assert world.producer(client, "t", name="mine").name == "mine"


def test_a_producer_made_too_slowly_is_taken_back(world: PulsarWorld) -> None:
    client = world.client(operation_timeout=5)
    world.control.delay("PRODUCER", 7)
    with pytest.raises(DeadlineError):
        world.producer(client, "t", name="mine")
    world.world.advance(10)
    assert world.producer(client, "t", name="mine").name == "mine"


def test_sequence_ids(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", initial_sequence_id=41)
    world.sender(producer).send_many([b"a", b"b"])
    log = world.door.topics.make("t").log
    entry = world.impl.pulsar.Entry.from_stored(log.record(0))
    assert [message.sequence_id for message in world.impl.pulsar.decode_messages(entry)] == [42, 43]
    assert (entry.sequence_id, producer.published) == (42, 43)


def test_too_large_is_refused_here(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    futures = submit(world, producer, b"small", bytes(6 << 20), b"small again")
    world.world.advance(1)
    errors = [future.exception() for future in futures]
    assert [type(error) for error in errors] == [type(None), ConfigError, type(None)]


def test_callbacks_run_outside_once(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    told: list[Any] = []
    futures = submit(world, producer, b"1", b"2")
    futures[1].add_done_callback(told.append)
    world.world.run()
    futures[0].add_done_callback(lambda future: told.append(world.sender(producer).send(b"from inside")))
    world.world.run()
    assert told[0] == futures[1]
    assert told[1].entry == 1
    assert world.world.drivers[0].user_errors == []


def test_futures_block_only_where_blocking_is_possible(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    [future] = submit(world, producer, b"1")
    assert future.result(5).entry == 0
    world.control.drop("SEND", times=10)
    [future] = submit(world, producer, b"2")
    with pytest.raises(DeadlineError):
        future.result(0.5)
    [future] = submit(world, world.producer(world.client(blocking=False), "t"), b"3")
    with pytest.raises(MQError, match="cannot block"):
        future.result(0.5)


def test_flush_without_anything_is_done(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    assert world.ask(producer.client, producer.flush).done


@pytest.mark.parametrize("batching", [True, False])
def test_what_does_not_fit_waits_its_turn_in_order(world: PulsarWorld, batching: bool) -> None:
    world.world.latency = 0.001
    client = world.client(memory_limit=1000)
    producer = world.producer(client, "t", batching=batching, batch_max_bytes=400)
    slots: list[Slot[Any]] = []
    for number in range(40):
        slots.append(world.ask(client, lambda number=number: producer.send(prepare(b"%03d" % number + bytes(97)))))  # type: ignore[misc]
        assert client.budget.bytes <= 1000
    assert client.budget.waiting > 0
    many = world.ask(client, lambda: producer.send_many([b"%03d" % number + bytes(97) for number in range(40, 60)]))
    for slot in slots:
        world.world.result(slot)
    assert len(results(world.world.result(many))) == 20
    assert [body[:3] for body in everything(world, "t")] == [b"%03d" % number for number in range(60)]
    assert (client.budget.bytes, client.budget.items, client.budget.waiting) == (0, 0, 0)


def test_submit_waits_where_it_can(world: PulsarWorld) -> None:
    world.world.latency = 0.001
    client = world.client(memory_limit=1000)
    sender = world.sender(world.producer(client, "t", batch_max_bytes=400))
    futures = [sender.submit(bytes(100)) for _ in range(50)]
    assert [future.exception(5) for future in futures] == [None] * 50
    client = world.client(memory_limit=1000, blocking=False)
    sender = world.sender(world.producer(client, "t", batch_max_bytes=400))
    engine: Any = sender._engine
    submit(world, engine, *[bytes(100)] * 8)
    with pytest.raises(MQError, match="memory_limit"):
        sender.submit(bytes(100))


def test_who_waits_for_room_fails_with_the_producer(world: PulsarWorld) -> None:
    world.world.latency = 0.001
    client = world.client(memory_limit=500)
    producer = world.producer(client, "t", batch_max_bytes=400)
    world.control.answer("SEND", ServerError.TopicTerminatedError, "the end")
    slots = [world.ask(client, lambda: producer.send(prepare(bytes(100)))) for _ in range(20)]
    many = world.ask(client, lambda: producer.send_many([bytes(100)] * 20))
    world.world.advance(1)
    assert {type(slot.error) for slot in slots} == {BrokerError}
    assert isinstance(many.error, BrokerError) or {type(one) for one in results(many.result())} == {BrokerError}
    assert (client.budget.bytes, client.budget.items, client.budget.waiting) == (0, 0, 0)


def test_of_many_those_never_taken_fail_in_their_place(world: PulsarWorld) -> None:
    world.world.latency = 0.001
    client = world.client(memory_limit=500)
    producer = world.producer(client, "t", batch_max_bytes=400)
    world.control.answer("SEND", ServerError.TopicTerminatedError, "the end", skip=1)
    many = world.ask(client, lambda: producer.send_many([bytes(100)] * 20))
    world.world.advance(1)
    found = results(many.result())
    assert len(found) == 20
    kinds = [isinstance(outcome, BrokerError) for outcome in found]
    assert kinds == sorted(kinds)
    assert (kinds[0], kinds[-1]) == (False, True)


def test_prepare_names_the_cure() -> None:
    wrong: Any
    for wrong, cure in (("text", "encode"), ({"a": 1}, "json"), (5, "bytes-like")):
        with pytest.raises(TypeError, match=cure):
            prepare(wrong)
    assert prepare(b"x", b"\xff")[1:] == ("/w==", None, 0, None, -1, True)
    assert prepare_many([b"a", b"b"]) == [b"a", b"b"]
    assert [item[0] for item in prepare_many([b"a", bytearray(b"b"), (b"c", "k")])] == [b"a", b"b", b"c"]


def test_options_are_checked() -> None:
    for given in ({"batch_max_messages": 0}, {"linger": -1}, {"send_timeout": -1}):
        with pytest.raises(ConfigError):
            checked(ProducerOptions, given)


def test_results_keep_the_order_of_what_was_given(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching=False)
    world.control.answer("SEND", ServerError.NotAllowedError, "no", skip=1)
    slot: Slot[Any] = world.ask(producer.client, lambda: producer.send_many([b"1", b"2", b"3"]))
    found = results(world.world.result(slot))
    assert [isinstance(outcome, MQError) for outcome in found] == [False, True, False]


def test_what_has_no_outcome_is_counted(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching=False, max_pending=2, name="ours")
    world.control.drop("SEND", times=100)
    for body in (b"1", b"2", b"3"):
        world.ask(producer.client, lambda body=body: producer.send(prepare(body)))  # type: ignore[misc]
    assert (producer.unsettled, producer.gathers, producer.diagnose()["pending"]) == (3, False, 2)
    assert producer.diagnose()["name"] == "ours"


def test_a_topic_that_is_in_another_cluster(world: PulsarWorld) -> None:
    """What the broker does not answer any more is asked there: here, a cluster that has it, too."""
    world.world.listen(("green", 6650), world)
    client = world.client()
    producer = world.producer(client, "t")
    world.control.drop("PRODUCER", times=1)
    world.cut()
    world.world.advance(0.5)
    connection = producer.attachment.connection
    assert connection is not None
    with client.driver.enter():
        producer.on_migrated(connection, client.cluster("pulsar://green:6650"))
    world.world.advance(2)
    assert "green:6650" in [one["address"] for one in client.diagnose()["connections"]]
    assert world.sender(producer).send(b"x").entry == 0


def test_a_namespace_that_requires_encryption(world: PulsarWorld) -> None:
    world.rest("POST", "namespaces/public/default/encryptionRequired", True)
    before = world.world.mono
    with pytest.raises(ConfigError, match="requires encryption"):
        world.producer(world.client(), "t")
    assert world.world.mono - before < 1


def test_rows_travel_in_batches(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching=False)
    slot = world.ask(producer.client, lambda: producer.send_rows({}, 1))
    assert isinstance(slot.error, ConfigError)


def test_what_joins_needs_no_entry_only_on_its_loop(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    assert producer.express(prepare(b"x")) is None


def test_sealed_ones_open_when_they_have_a_key(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", encrypt=Encryption(["a"], {"a": pair("a").public}))
    assert world.sender(producer).send(b"x").entry == 0
    world.control.answer("CLOSE_PRODUCER", ServerError.MetadataError, "no")
    world.steps(client, producer.close_steps)
    world.steps(client, producer.close_steps)
    assert producer.attachment.state == "closed"
    asked: list[Any] = []

    def close_first(name: str, metadata: Any) -> Key:
        asked.append(name)
        return Key(pair("a").public)

    options = ProducerOptions(encrypt=Encryption(["a"], close_first))
    other = ProducerEngine(client, producer.topic, options)
    opening = world.ask(client, lambda: other.open(world.world.mono + 30))
    with client.driver.enter():
        other.abandon(ClosedError("too early"))
    world.world.run()
    assert isinstance(opening.error, ClosedError)
    assert asked == ["a"]
