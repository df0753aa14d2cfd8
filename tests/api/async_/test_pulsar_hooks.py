"""Hooks and the trace of messages, on the embedded and the real broker."""

from __future__ import annotations

from typing import Any

from mqclient.core.slot import Wake
from mqclient.pulsar import TraceContext, aio, traceparent
from tests.support.pulsar_cluster import PulsarCluster

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Meter:
    """Counts and times, as metrics do."""

    def __init__(self, client: aio.Client, wanted: int) -> None:
        self.sent: list[Any] = []
        self.consumed: list[Any] = []
        self._wanted = wanted
        self._driver: Any = client._driver
        self._wake = Wake()

    def after_send(self, sent: Any) -> None:
        self.sent.append(sent)

    def after_consume(self, consumed: Any) -> None:
        self.consumed.append(consumed)
        if len(self.consumed) == self._wanted:
            with self._driver.enter():
                self._wake.complete(None)

    async def enough(self) -> None:
        await self._driver.wait(self._wake, self._driver.deadline(30))


async def test_hooks_see_entries_and_calls_and_messages_carry_the_trace(
    pulsar: PulsarCluster, topic: str, impl: str
) -> None:
    seen: list[tuple[bytes, str | None]] = []
    async with aio.Client(pulsar.url, impl=impl) as client:
        meter = Meter(client, 13)

        async def handle(message: Any) -> None:
            seen.append((message.body, traceparent.get()))

        hooks = [TraceContext(), meter]
        async with (
            client.consumer(topic, "s", listener=handle, hooks=hooks),
            client.producer(topic, hooks=hooks) as producer,
        ):
            token = traceparent.set(PARENT)
            await producer.send(b"0")
            await producer.send_many([b"%d" % number for number in range(1, 13)])
            traceparent.reset(token)
            await meter.enough()
    assert [body for body, _ in seen] == [b"%d" % number for number in range(13)]
    assert len({trace for _, trace in seen}) == 13
    assert all(trace is not None and trace[:36] == PARENT[:36] for _, trace in seen)
    assert sum(len(sent.message_ids) for sent in meter.sent) == 13
    assert all(sent.status == "STORED" and sent.seconds > 0 and sent.size and sent.broker for sent in meter.sent)
    assert all(one.group == "s" and one.error is None and one.seconds >= 0 for one in meter.consumed)
