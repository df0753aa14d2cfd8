"""What operators ask with mqadmin, the tool of a real 5.5.0, is answered by our clients as by Java's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqclient import rocketmq
from tests.real.fixtures import ON_ROCKETMQ
from tests.real.operators import mqadmin
from tests.real.rocketmq import RealRocketMQ
from tests.support.seen import Seen, unique

pytestmark = ON_ROCKETMQ
COUNT = 8


def eventually(holds: Callable[[], bool], within: float = 60.0) -> None:
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, "not so in time"
        time.sleep(0.02)


def made(client: rocketmq.Client, queues: int = 1) -> str:
    topic = unique("operated")
    with client.admin() as admin:
        admin.create_topic(topic, queues=queues)
    return topic


def rows(text: str, first: str) -> list[list[str]]:
    """The columns of the lines that begin with this word."""
    return [line.split() for line in text.splitlines() if line.startswith(first)]


def _part(text: str, title: str) -> str:
    """From this title to the next."""
    return text.partition(title)[2].partition("\n\n")[0]


def test_mqadmin_sees_members_producers_messages_and_traces(real_rocketmq: RealRocketMQ, tmp_path: Path) -> None:
    server, group, makers = real_rocketmq.name_server, unique("seen"), unique("makers")
    seen, stuck, go_on = Seen(), threading.Event(), threading.Event()

    def a_handler_that_is_stuck(messages: Any) -> None:
        seen(messages)
        if messages[0].body == b"last":
            stuck.set()
            go_on.wait(120)

    with rocketmq.Client(server) as client:
        topic, me = made(client), client.client_id
        producer = client.producer(makers, message_trace=True)
        consumer = client.push_consumer(
            group, topic, a_handler_that_is_stuck, start="first", batch=1, message_trace=True
        )
        receipts = [producer.send(rocketmq.Message(topic, b"%d" % n, keys=[f"key-{n}"])) for n in range(COUNT)]
        eventually(lambda: len(seen.bodies) == COUNT)
        producer.send(rocketmq.Message(topic, b"last"))
        assert stuck.wait(30)
        first = receipts[0]
        eventually(lambda: _traced(client, first.message_id))
        connection, status, stacks, progress, producers, direct, by_key, trace = mqadmin(
            tmp_path / "operator",
            server,
            f"consumerConnection -g {group}",
            f"consumerStatus -g {group} -i {me}",
            f"consumerStatus -g {group} -s -i {me}",
            f"consumerProgress -g {group} -s true",
            f"producerConnection -g {makers} -t {topic}",
            f"queryMsgById -i {first.offset_id} -g {group} -d {me} -t {topic}",
            f"queryMsgByKey -k key-3 -t {topic}",
            f"queryMsgTraceById -i {first.message_id}",
        )
        go_on.set()
        consumer.close()
    assert f"{me}" in connection
    assert "PYTHON" in connection
    assert "CONSUME_PASSIVELY" in connection
    assert f"Topic: {topic} " in status
    assert {row[1] for row in rows(_part(status, "#Consumer MQ Detail#"), topic)} == {"broker-a", "broker-b"}
    assert "jstack" not in status
    assert "a_handler_that_is_stuck" in stacks
    diffs = rows(progress, topic)
    assert sum(int(row[3]) for row in diffs) == COUNT + 1
    assert {row[5] for row in diffs} == {me.partition("@")[0]}
    assert me in producers
    assert "consumeResult=CR_SUCCESS" in direct
    assert rows(by_key, receipts[3].message_id)
    assert rows(trace, "Pub")[0][1] == makers
    assert rows(trace, "Pub")[0][-1] == "success"
    assert {row[1] for row in rows(trace, "Sub")} == {group}
    assert {row[-1] for row in rows(trace, "Sub")} == {"success"}


def _traced(client: rocketmq.Client, message_id: str) -> bool:
    """Whether the trace topic has both: that it was sent, and that it was consumed."""
    with client.admin() as admin:
        found = admin.messages_by_key("RMQ_SYS_TRACE_TOPIC", message_id)
    text = b"".join(message.body for message in found)
    return b"Pub\x01" in text and b"SubAfter\x01" in text


def test_mqadmin_moves_our_groups(real_rocketmq: RealRocketMQ, tmp_path: Path) -> None:
    server, group, copy, seen = real_rocketmq.name_server, unique("moved"), unique("copy"), Seen()
    with rocketmq.Client(server) as client, client.admin() as admin, client.producer(unique("p")) as producer:
        topic = made(client)
        for number in range(COUNT):
            assert producer.send(rocketmq.Message(topic, b"%d" % number)).ok
        with (
            client.push_consumer(group, topic, seen, start="first"),
            client.push_consumer(copy, topic, Seen(), start="last"),  # it has to be there
        ):
            eventually(lambda: len(seen.bodies) == COUNT)
            eventually(lambda: all(ends["committed"] == ends["max"] for ends in admin.offsets(topic, group).values()))
            reset, cloned = mqadmin(
                tmp_path / "operator",
                server,
                f"resetOffsetByTime -g {group} -t {topic} -s 0",
                f"cloneGroupOffset -s {group} -d {copy} -t {topic} -o true",
            )
            for queue in admin.offsets(topic):  # wakes the pulls that are held
                producer.send(rocketmq.Message(topic, b"new"), queue=queue)
            eventually(lambda: len(seen.bodies) == 2 * COUNT + 2)
        assert [row[-1] for row in rows(reset, "broker-")] == ["0", "0"]
        assert "clone group offset success" in cloned
        assert all(ends["committed"] is not None for ends in admin.offsets(topic, copy).values())
