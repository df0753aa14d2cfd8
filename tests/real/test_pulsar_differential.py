"""One script of Pulsar commands, said frame by frame to the embedded broker and to a real one: the answers are compared
field by field. What may differ stands in `DIFFERENT` and in SKIPPED.md.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from uuid import uuid4

import pytest

from mqclient import _impl, _schema
from mqclient.broker import EmbeddedBroker
from tests.real.fixtures import ON_PULSAR
from tests.real.pulsar import RealPulsar

pytestmark = ON_PULSAR

CODEC = _impl.select("pure").pulsar
KINDS = _schema.enum("BaseCommand.Type")
NAMES = {number: name for name, number in KINDS.items()}
EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED = range(4)
TEXTS = {"server_version", "message", "error_message", "producer_name"}
DIFFERENT = TEXTS | {"address", "connectedSince", "feature_flags"}
"""Texts and names that each broker makes up, times, and features that we do not announce."""
RATES = {"msgRateOut", "msgThroughputOut", "msgRateRedeliver", "msgRateExpired", "messageAckRate"}
QUIET = 0.4
"""Seconds without a frame after which a broker has said all it has to say."""


class Peer:
    """A connection that says what it is told, and writes down what it hears."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("pulsar://").partition(":")
        self._socket = socket.create_connection((host, int(port)), 30)
        self._reader = CODEC.FrameReader()
        self._ids = count(1)
        self.heard: list[Any] = []
        self.ask("CONNECT", "CONNECTED", client_version="differential", protocol_version=21)

    def close(self) -> None:
        self._socket.close()

    def tell(self, kind: str, **fields: Any) -> None:
        made: Any = _schema.command(KINDS[kind])
        self.write(CODEC.encode_command(KINDS[kind], made(**fields).SerializeToString()))

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def ask(self, kind: str, *answers: str, **fields: Any) -> Any:
        """Say it, and wait for an answer of this kind, or for ERROR."""
        made: Any = _schema.command(KINDS[kind])
        if "request_id" in made.DESCRIPTOR.fields_by_name:
            fields["request_id"] = next(self._ids)
        already = len(self.heard)
        self.tell(kind, **fields)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for name, told in self.heard[already:]:
                if name in (*answers, "ERROR"):
                    return told
            self._listen(deadline - time.monotonic())
        raise AssertionError(f"{kind} was not answered")

    def hear(self, messages: int = 0) -> None:
        """Listen until so many messages have come, then until it is quiet."""
        deadline = time.monotonic() + 30
        while sum(name == "MESSAGE" for name, _ in self.heard) < messages and time.monotonic() < deadline:
            self._listen(deadline - time.monotonic())
        while self._listen(QUIET):
            pass

    def _listen(self, seconds: float) -> bool:
        """Whether something came in time."""
        self._socket.settimeout(max(seconds, 0.01))
        try:
            data = self._socket.recv(1 << 16)
        except TimeoutError:
            return False
        for event in self._reader.feed(data):
            if event[0] == CODEC.PING:
                self.write(CODEC.PONG_FRAME)
            elif event[0] != CODEC.PONG:
                cold = len(event) == 2 and isinstance(event[1], bytes)
                told = _schema.read_command(*event) if cold else event[1:]
                self.heard.append((NAMES[event[0]], told))
        if not data:
            self.heard.append(("END", ()))
        return bool(data)


class Script:
    """One run: a topic of its own, what was heard, with ledgers by their order."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.topic = f"persistent://public/default/differential-{uuid4().hex[:8]}"
        self.peers: list[Peer] = []
        self.notes: list[Any] = []
        self._ledgers: dict[int, int] = {}

    def peer(self) -> Peer:
        peer = Peer(self.url)
        self.peers.append(peer)
        return peer

    def own(self, peer: Peer, *topics: str) -> None:
        """A real broker serves topics only after somebody looked them up."""
        for topic in (self.topic, *topics):
            peer.ask("LOOKUP", "LOOKUP_RESPONSE", topic=topic)
        peer.heard.clear()

    def note(self, what: str) -> None:
        """What every peer has heard since the last note, order kept for messages, not between kinds."""
        for number, peer in enumerate(self.peers):
            found = [self._normal(name, told) for name, told in peer.heard]
            peer.heard.clear()
            self.notes.append((what, number, sorted(found, key=lambda one: (one[0] != "MESSAGE", repr(one)))))

    def _normal(self, name: str, told: Any) -> tuple[Any, ...]:
        if name == "MESSAGE":
            entry = told[0]
            where = entry.consumer_id, self.ledger(entry.ledger), entry.entry, entry.partition
            return name, *where, entry.redelivery_count, entry.ack_set, entry.consumer_epoch, bytes(entry.payload)
        if name == "SEND_RECEIPT":
            return name, told[0], told[1], self.ledger(told[2]), told[3]
        if isinstance(told, tuple):
            return (name, *told)
        fields = [(field.name, self._value(value)) for field, value in told.ListFields()]
        return name, *(pair for pair in fields if pair[0] not in DIFFERENT | RATES)

    def _value(self, value: Any) -> Any:
        if getattr(getattr(value, "DESCRIPTOR", None), "name", "") == "MessageIdData":
            return self.ledger(value.ledgerId), value.entryId, value.partition, value.batch_index
        return str(value)

    def ledger(self, number: int) -> int:
        if number in (-1, 2**64 - 1):
            return -1
        return self._ledgers.setdefault(number, len(self._ledgers))

    def real_ledger(self) -> int:
        return next(iter(self._ledgers))

    def produce(self, peer: Peer) -> None:
        """Three plain entries and two batches of three; keys in all."""
        peer.ask("PRODUCER", "PRODUCER_SUCCESS", topic=self.topic, producer_id=1, producer_name="p")
        for number in range(5):
            bodies = [b"%d" % number] if number in (0, 2, 3) else [b"%d%c" % (number, letter) for letter in b"abc"]
            builder = CODEC.BatchBuilder()
            for body in bodies:
                builder.add(body, "k")
            payload, size = (bodies[0], 0) if len(bodies) == 1 else builder.seal()
            stamp = 1_000_000 + number
            metadata = CODEC.encode_metadata("p", number, stamp, num_messages=size, partition_key="k")
            peer.write(CODEC.encode_send(1, number, metadata, payload, num_messages=size))
        peer.hear()

    def subscribe(self, peer: Peer, kind: int, consumer_id: int = 0, **fields: Any) -> Any:
        given = {"subscription": "s", "consumer_name": f"c{consumer_id}", "initialPosition": 1, **fields}
        return peer.ask("SUBSCRIBE", "SUCCESS", topic=self.topic, subType=kind, consumer_id=consumer_id, **given)


def life_of_a_subscription(script: Script, kind: int) -> None:
    peer = script.peer()
    script.own(peer)
    script.produce(peer)
    script.note("produced")
    script.subscribe(peer, kind)
    script.subscribe(peer, kind)
    script.note("subscribed twice")
    peer.write(CODEC.encode_flow(0, 2))
    peer.hear(2)
    script.note("two permits")
    peer.write(CODEC.encode_flow(0, 50))
    peer.hear(3)
    script.note("many permits")
    ledger = script.real_ledger()
    peer.write(CODEC.encode_ack(0, [(ledger, 0)], request_id=91))
    peer.write(CODEC.encode_ack(0, [(ledger, 1, [0b101], 3)], request_id=92))
    peer.hear()
    script.note("acknowledged one, and one of three")
    peer.tell("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=0)
    peer.hear(4)
    script.note("everything again")
    if kind in (SHARED, KEY_SHARED):
        peer.tell("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=0, message_ids=[{"ledgerId": ledger, "entryId": 2}])
        peer.hear(1)
        script.note("one again")
    else:
        peer.write(CODEC.encode_ack(0, [(ledger, 2)], cumulative=True, request_id=93))
        peer.hear()
        script.note("acknowledged up to 2")
    peer.ask("CONSUMER_STATS", "CONSUMER_STATS_RESPONSE", consumer_id=0)
    peer.ask("GET_LAST_MESSAGE_ID", "GET_LAST_MESSAGE_ID_RESPONSE", consumer_id=0)
    script.note("asked")
    positions: list[tuple[int, dict[str, Any]]] = [
        (2, {"message_id": {"ledgerId": ledger, "entryId": 3}}),
        (3, {"message_publish_time": 1_000_002}),
        (5, {"message_id": {"ledgerId": 2**64 - 1, "entryId": 2**64 - 1}}),
    ]
    for left, position in positions:
        peer.ask("SEEK", "SUCCESS", consumer_id=0, **position)
        script.subscribe(peer, kind)
        peer.write(CODEC.encode_flow(0, 50))
        peer.hear(left)
        script.note(f"sought {sorted(position)}")
    peer.ask("CLOSE_CONSUMER", "SUCCESS", consumer_id=0)
    script.subscribe(peer, kind)
    peer.ask("UNSUBSCRIBE", "SUCCESS", consumer_id=0)
    peer.ask("CLOSE_CONSUMER", "SUCCESS", consumer_id=0)
    peer.ask("CLOSE_PRODUCER", "SUCCESS", producer_id=1)
    script.note("unsubscribed")


def refusals(script: Script, kind: int) -> None:
    peer, other = script.peer(), script.peer()
    modes = f"{script.topic}-modes"
    script.own(peer, modes)
    script.subscribe(peer, kind)
    script.subscribe(peer, (kind + 1) % 4, consumer_id=1)
    script.subscribe(peer, kind, consumer_id=2, subscription="")
    script.subscribe(peer, kind, consumer_id=3, subscription="new", read_compacted=kind in (SHARED, KEY_SHARED))
    peer.ask("PARTITIONED_METADATA", "PARTITIONED_METADATA_RESPONSE", topic="persistent://public/none/x")
    peer.ask("LOOKUP", "LOOKUP_RESPONSE", topic="persistent://a/b", advertised_listener_name="")
    peer.ask("GET_SCHEMA", "GET_SCHEMA_RESPONSE", topic=script.topic)
    peer.ask("SEEK", "SUCCESS", consumer_id=77, message_publish_time=1)
    peer.ask("UNSUBSCRIBE", "SUCCESS", consumer_id=77)
    peer.ask("GET_LAST_MESSAGE_ID", "GET_LAST_MESSAGE_ID_RESPONSE", consumer_id=77)
    peer.ask("CLOSE_CONSUMER", "SUCCESS", consumer_id=77)
    peer.ask("CLOSE_PRODUCER", "SUCCESS", producer_id=77)
    script.note("refused")
    for mode in (1, 0, 1, 3):
        peer.ask("PRODUCER", "PRODUCER_SUCCESS", topic=modes, producer_id=10 + mode, producer_access_mode=mode)
    other.write(CODEC.encode_flow(0, 1))
    other.ask("GET_SCHEMA", "GET_SCHEMA_RESPONSE", topic=script.topic)
    script.note("access")


def run(url: str, play: Callable[[Script, int], None], kind: int) -> list[Any]:
    script = Script(url)
    try:
        play(script, kind)
    finally:
        for peer in script.peers:
            peer.close()
    return script.notes


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedBroker]:
    settings: dict[str, Any] = {"activeConsumerFailoverDelayTimeMillis": 1000}
    with EmbeddedBroker(doors=["pulsar"], impl="pure", **settings) as broker:
        yield broker


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED])
@pytest.mark.parametrize("play", [life_of_a_subscription, refusals])
def test_the_same_answers(
    embedded: EmbeddedBroker, real_pulsar: RealPulsar, play: Callable[[Script, int], None], kind: int
) -> None:
    ours, theirs = run(embedded.pulsar_url, play, kind), run(real_pulsar.url, play, kind)
    for mine, real in zip(ours, theirs, strict=True):
        if mine[0] == "sought ['message_id']":  # the real one remembers parts of batches over a seek: see SKIPPED.md
            mine, real = without_parts(mine), without_parts(real)
        assert mine == real, mine[0]


def without_parts(note: Any) -> Any:
    """A note whose messages are told without their ack sets."""
    what, number, found = note
    return what, number, [(*one[:6], *one[7:]) if one[0] == "MESSAGE" else one for one in found]
