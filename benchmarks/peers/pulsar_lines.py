"""What each line of the comparison does, with the official client and with ours; run in a process of its own.

`python -m benchmarks.peers.pulsar_lines CLIENT LINE URL TOPIC COUNT BODY` prints the round as JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

Round = dict[str, float]
CHUNK = 20_000
PENDING = 20_000


@dataclass(frozen=True)
class Line:
    """How many messages a round of each client has, over a real broker at most `real`; `batch` is what the server's
    entries hold."""

    official: int
    ours: int
    sends: bool = False
    batch: int = 1000
    rounds: int = 3
    real: int = 1_000_000

    def count(self, client: str) -> int:
        return self.official if client == "official" else self.ours

    def entries(self, body: int) -> int:
        """How many messages the server's entries hold: of 100 B 1,000, of 1 KiB 100."""
        return min(self.batch, 102_400 // body)


LINES = {
    "receive": Line(200_000, 800_000),
    "receive_many": Line(200_000, 1_600_000),
    "listener": Line(60_000, 800_000),
    "async_for": Line(20_000, 600_000),
    "receive_unbatched": Line(100_000, 300_000, batch=0, real=50_000),
    "receive_beside_busy": Line(3_000, 100_000),
    "send_many": Line(200_000, 2_000_000, sends=True),
    "submit_result": Line(40_000, 400_000, sends=True),
    "submit_callback": Line(40_000, 400_000, sends=True),
    "submit_unbatched": Line(40_000, 40_000, sends=True),
    "async_100": Line(10_000, 100_000, sends=True),
    "async_1000": Line(20_000, 200_000, sends=True),
    "send_1": Line(4_000, 4_000, sends=True, rounds=7),
    "send_8": Line(16_000, 16_000, sends=True, rounds=7),
    "send_beside_busy": Line(500, 500, sends=True, rounds=7),
}


def measured(work: Callable[[], Any], count: int) -> Round:
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    taken = work()
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = {"rate": count / seconds, "cpu_us": cpu / count * 1e6}
    if isinstance(taken, list):
        found["p50_us"] = statistics.median(taken) * 1e6
    return found


def timed(send: Callable[[], Any], count: int) -> list[float]:
    """The seconds of each."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        send()
        taken.append(time.perf_counter() - began)
    return taken


def in_threads(send: Callable[[], Any], count: int, threads: int = 8) -> list[float]:
    """Each thread's share; one that sent fewer is an error."""
    shares: list[list[float]] = []
    workers = [threading.Thread(target=lambda: shares.append(timed(send, count // threads))) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [len(share) for share in shares] == [count // threads] * threads, "a thread died"
    return [one for share in shares for one in share]


def beside_busy(work: Callable[[], Any]) -> Any:
    """While another Python thread burns processor time."""
    stop = threading.Event()

    def burn() -> None:
        while not stop.is_set():
            sum(range(1000))

    burner = threading.Thread(target=burn, daemon=True)
    burner.start()
    try:
        return work()
    finally:
        stop.set()
        burner.join()


def counted(count: int) -> tuple[Callable[..., None], threading.Event]:
    """A callback, and the event that it was called so often."""
    seen, done = [0], threading.Event()

    def callback(*_: Any) -> None:
        seen[0] += 1
        if seen[0] == count:
            done.set()

    return callback, done


async def by_tasks(send: Callable[[], Awaitable[Any]], count: int, tasks: int) -> None:
    async def one() -> None:
        for _ in range(count // tasks):
            await send()

    await asyncio.gather(*[one() for _ in range(tasks)])


# ---- the official client


class Official:
    """`pulsar-client`: has no types, and is there only for this comparison."""

    def __init__(self, url: str, topic: str, count: int, body: bytes) -> None:
        self.pulsar = import_module("pulsar")
        self.url, self.topic, self.count, self.body = url, topic, count, body
        self.quiet = self.pulsar.ConsoleLogger(self.pulsar.LoggerLevel.Error)

    def producer(self, batching: bool = True) -> Any:
        self.client = self.pulsar.Client(self.url, logger=self.quiet)
        return self.client.create_producer(
            self.topic,
            block_if_queue_full=True,
            max_pending_messages=PENDING,
            batching_enabled=batching,
            batching_max_messages=1000,
            batching_max_allowed_size_in_bytes=131072,
        )

    def consumer(self, **options: Any) -> Any:
        self.client = self.pulsar.Client(self.url, logger=self.quiet)
        return self.client.subscribe(self.topic, "billing", receiver_queue_size=1000, **options)

    def _finish(self, found: Round) -> Round:
        self.client.close()
        return found

    def receive(self) -> Round:
        consumer = self.consumer()

        def work() -> None:
            for _ in range(self.count):
                consumer.acknowledge(consumer.receive(30_000))

        return self._finish(measured(work, self.count))

    receive_unbatched = receive

    def receive_beside_busy(self) -> Round:
        consumer = self.consumer()

        def work() -> None:
            for _ in range(self.count):
                consumer.acknowledge(consumer.receive(30_000))

        return self._finish(measured(lambda: beside_busy(work), self.count))

    def receive_many(self) -> Round:
        consumer = self.consumer(batch_receive_policy=self.pulsar.ConsumerBatchReceivePolicy(1000, -1, 100))

        def work() -> None:
            taken = 0
            while taken < self.count:
                for message in consumer.batch_receive():
                    consumer.acknowledge(message)
                    taken += 1

        return self._finish(measured(work, self.count))

    def listener(self) -> Round:
        callback, done = counted(self.count)

        def on_message(consumer: Any, message: Any) -> None:
            consumer.acknowledge(message)
            callback()

        def work() -> None:
            self.consumer(message_listener=on_message)
            assert done.wait(120)

        return self._finish(measured(work, self.count))

    def async_for(self) -> Round:
        async def work() -> Round:
            client = import_module("pulsar.asyncio").Client(self.url, logger=self.quiet)
            consumer = await client.subscribe(self.topic, "billing", receiver_queue_size=1000)
            began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
            for _ in range(self.count):
                await consumer.acknowledge(await consumer.receive())
            found = since(began, before, self.count)
            await client.close()
            return found

        return asyncio.run(work())

    def send_many(self) -> Round:
        producer = self.producer()

        def work() -> None:
            for _ in range(self.count):
                producer.send_async(self.body, None)
            producer.flush()

        return self._finish(measured(work, self.count))

    def submit_callback(self, batching: bool = True) -> Round:
        producer = self.producer(batching)
        callback, done = counted(self.count)

        def work() -> None:
            for _ in range(self.count):
                producer.send_async(self.body, callback)
            producer.flush()
            assert done.wait(60)

        return self._finish(measured(work, self.count))

    submit_result = submit_callback

    def submit_unbatched(self) -> Round:
        producer = self.producer(False)

        def work() -> None:
            for _ in range(self.count):
                producer.send_async(self.body, None)
            producer.flush()

        return self._finish(measured(work, self.count))

    def asynchronous(self, tasks: int) -> Round:
        async def work() -> Round:
            client = import_module("pulsar.asyncio").Client(self.url, logger=self.quiet)
            producer = await client.create_producer(self.topic, max_pending_messages=PENDING)
            began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
            await by_tasks(lambda: producer.send(self.body), self.count, tasks)
            found = since(began, before, self.count)
            await client.close()
            return found

        return asyncio.run(work())

    def async_100(self) -> Round:
        return self.asynchronous(100)

    def async_1000(self) -> Round:
        return self.asynchronous(1000)

    def send_1(self) -> Round:
        producer = self.producer(False)
        return self._finish(measured(lambda: timed(lambda: producer.send(self.body), self.count), self.count))

    def send_8(self) -> Round:
        producer = self.producer(False)
        return self._finish(measured(lambda: in_threads(lambda: producer.send(self.body), self.count), self.count))

    def send_beside_busy(self) -> Round:
        producer = self.producer(False)
        work: Callable[[], Any] = lambda: beside_busy(lambda: timed(lambda: producer.send(self.body), self.count))  # noqa: E731
        return self._finish(measured(work, self.count))


def since(began: float, before: resource.struct_rusage, count: int) -> Round:
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"rate": count / seconds, "cpu_us": cpu / count * 1e6}


# ---- ours


class Ours:
    """`mqclient.pulsar`, its options those of the other one; asyncio lines with the defaults."""

    def __init__(self, url: str, topic: str, count: int, body: bytes) -> None:
        from mqclient import pulsar

        self.pulsar = pulsar
        self.url, self.topic, self.count, self.body = url, topic, count, body

    def _with_consumer(self, work: Callable[[Any], Any]) -> Round:
        with self.pulsar.Client(self.url) as client:
            consumer = client.consumer(self.topic, "billing", receiver_queue=1000)
            return measured(lambda: work(consumer), self.count)

    def _with_producer(self, work: Callable[[Any], Any], batching: bool = True) -> Round:
        with self.pulsar.Client(self.url) as client:
            producer = client.producer(self.topic, batching=batching)
            return measured(lambda: work(producer), self.count)

    def _receive(self, consumer: Any) -> None:
        receive, ack = consumer.receive, consumer.ack
        for _ in range(self.count):
            ack(receive(30))

    def receive(self) -> Round:
        return self._with_consumer(self._receive)

    receive_unbatched = receive

    def receive_beside_busy(self) -> Round:
        return self._with_consumer(lambda consumer: beside_busy(lambda: self._receive(consumer)))

    def receive_many(self) -> Round:
        def work(consumer: Any) -> None:
            taken = 0
            while taken < self.count:
                messages = consumer.receive_many(1000, 30)
                consumer.ack(messages)
                taken += len(messages)

        return self._with_consumer(work)

    def listener(self) -> Round:
        """Returning acknowledges."""
        callback, done = counted(self.count)

        def work() -> None:
            client.consumer(self.topic, "billing", receiver_queue=1000, listener=callback)
            assert done.wait(120)

        with self.pulsar.Client(self.url) as client:
            return measured(work, self.count)

    def async_for(self) -> Round:
        from mqclient.pulsar import aio

        async def work() -> Round:
            async with aio.Client(self.url) as client:
                consumer = await client.consumer(self.topic, "billing", receiver_queue=1000)
                began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
                left = self.count
                async for message in consumer:
                    await consumer.ack(message)
                    left -= 1
                    if not left:
                        break
                return since(began, before, self.count)

        return asyncio.run(work())

    def send_many(self) -> Round:
        def work(producer: Any) -> None:
            for _ in range(self.count // CHUNK):
                results = producer.send_many([self.body] * CHUNK)
                assert all(result.ok for result in results)

        return self._with_producer(work)

    def submit_result(self) -> Round:
        def work(producer: Any) -> None:
            for _ in range(self.count // CHUNK):
                for future in [producer.submit(self.body) for _ in range(CHUNK)]:
                    future.result()

        return self._with_producer(work)

    def submit_callback(self) -> Round:
        callback, done = counted(self.count)

        def work(producer: Any) -> None:
            for _ in range(self.count):
                producer.submit(self.body).add_done_callback(callback)
            producer.flush()
            assert done.wait(60)

        return self._with_producer(work)

    def submit_unbatched(self) -> Round:
        def work(producer: Any) -> None:
            for _ in range(self.count):
                producer.submit(self.body)
            producer.flush()

        return self._with_producer(work, batching=False)

    def asynchronous(self, tasks: int) -> Round:
        from mqclient.pulsar import aio

        async def work() -> Round:
            async with aio.Client(self.url) as client:
                producer = await client.producer(self.topic)
                began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
                await by_tasks(lambda: producer.send(self.body), self.count, tasks)
                return since(began, before, self.count)

        return asyncio.run(work())

    def async_100(self) -> Round:
        return self.asynchronous(100)

    def async_1000(self) -> Round:
        return self.asynchronous(1000)

    def send_1(self) -> Round:
        return self._with_producer(lambda producer: timed(lambda: producer.send(self.body), self.count), False)

    def send_8(self) -> Round:
        return self._with_producer(lambda producer: in_threads(lambda: producer.send(self.body), self.count), False)

    def send_beside_busy(self) -> Round:
        def work(producer: Any) -> Any:
            return beside_busy(lambda: timed(lambda: producer.send(self.body), self.count))

        return self._with_producer(work, False)


OFFICIAL = {line for line in LINES if hasattr(Official, line)}
OURS = {line for line in LINES if hasattr(Ours, line)}


def fill(url: str, topic: str, count: int, body: bytes, batch: int) -> None:
    """On a broker that does not stream by itself: a subscription, and the messages that it will get."""
    from mqclient import pulsar

    with pulsar.Client(url) as client:
        client.consumer(topic, "billing").close()
        with client.producer(topic, batching=batch > 0, batch_max_messages=batch or 1) as producer:
            for start in range(0, count, CHUNK):
                producer.send_many([body] * min(CHUNK, count - start))


def main() -> None:
    client, line, url, topic, count, size = sys.argv[1:]
    body = b"x" * int(size)
    lines: Any = (Official if client == "official" else Ours)(url, topic, int(count), body)
    print(json.dumps(getattr(lines, line)()), flush=True)


if __name__ == "__main__":
    main()
