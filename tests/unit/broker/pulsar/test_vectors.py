"""What real clients asked a real 4.2.4 is answered by the embedded broker as it was by the real one, frame by frame.

A recording is played in its order, every connection of it; answers are compared by kind, codes and fields, messages
byte for byte. Left out: what cannot be equal (names that a broker makes up, addresses, texts, times), and pings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqclient import _schema
from tests.support.pulsar_world import PulsarWorld, RawClient

VECTORS = Path(__file__).parents[3] / "vectors" / "pulsar"
SCENARIOS = sorted(path.stem for path in VECTORS.glob("*.json") if path.stem != "index")
NAMES = {number: name for name, number in _schema.enum("BaseCommand.Type").items()}
DIFFERENT = {
    "server_version",
    "max_message_size",
    "feature_flags",
    "proxy_through_service_url",
    "message",
    "error_message",
    "producer_name",
    "address",
    "connectedSince",
}


def described(scenario: str) -> list[dict[str, Any]]:
    """Its frames, without pings."""
    frames = json.loads((VECTORS / f"{scenario}.json").read_text())["frames"]
    return [frame for frame in frames if frame["type"] not in ("PING", "PONG")]


def data(frame: dict[str, Any]) -> bytes:
    recorded: bytes = (VECTORS / frame["file"]).read_bytes()
    return recorded[int(frame["offset"]) :][: int(frame["length"])]


def normal(codec: Any, event: Any) -> tuple[Any, ...]:
    """An answer without what differs by nature."""
    if event[0] == codec.MESSAGE:
        entry = event[1]
        where = entry.consumer_id, entry.ledger, entry.entry, entry.partition
        return "MESSAGE", *where, entry.redelivery_count, entry.ack_set, entry.consumer_epoch, entry.stored
    if event[0] == codec.SEND_RECEIPT:
        return ("SEND_RECEIPT", *event[1:5])
    name, told = event if isinstance(event[0], str) else (NAMES[event[0]], _schema.read_command(*event))
    fields = [(field.name, str(value)) for field, value in told.ListFields() if field.name not in DIFFERENT]
    return name, *fields


def ledgers(frames: list[dict[str, Any]]) -> dict[str, int]:
    """The ledger that each topic had, by its first receipt."""
    topics: dict[tuple[str, int], str] = {}
    found: dict[str, int] = {}
    for frame in frames:
        connection, fields = frame["file"].split(".")[1], frame["fields"]
        if frame["type"] == "PRODUCER":
            topics[connection, fields["producer_id"]] = fields["topic"]
        elif frame["type"] == "SEND_RECEIPT" and fields["message_id"]["ledgerId"] < 2**63:
            found.setdefault(topics[connection, fields["producer_id"]], fields["message_id"]["ledgerId"])
    return found


class Player:
    """Recordings on one world, one after the other."""

    def __init__(self, codec: Any, **settings: Any) -> None:
        self.world = PulsarWorld(codec, advertisedListeners="proxy:pulsar://localhost:16650", **settings)
        self.codec = codec.pulsar
        self.clients: dict[str, RawClient] = {}
        self.expected: dict[str, list[Any]] = {}

    def play(self, scenario: str, before: dict[int, Callable[[PulsarWorld], object]]) -> None:
        """`before`: what was done to the broker from outside before the frame of a number."""
        frames = [frame for frame in described(scenario) if frame["n"] <= UNTIL.get(scenario, frame["n"])]
        numbers = ledgers(frames)
        for frame in frames:
            client = self._client(scenario, frame["file"])
            if frame["n"] in before:
                before[frame["n"]](self.world)
                self.world.world.run()
            if frame["dir"] == "b2c":
                [event] = self.codec.FrameReader().feed(data(frame))
                self.expected[frame["file"].split(".b2c")[0]].append(normal(self.codec, event))
                continue
            client.write(data(frame))
            client.write(self.codec.PONG_FRAME)
            for topic in self.world.door.topics.each():
                if not topic.end:
                    topic.ledger = numbers.get(topic.text, topic.ledger)

    def _client(self, scenario: str, file: str) -> RawClient:
        connection = file.rpartition(".")[0].rpartition(".")[0]
        if connection not in self.clients:
            self.clients[connection] = RawClient(self.world, connect=False)
            self.expected[connection] = []
        return self.clients[connection]

    def compare(self, *, leave_out: frozenset[str] = frozenset()) -> None:
        for connection, client in self.clients.items():
            answers = [normal(self.codec, event) for event in client.events if event[0] not in (18, 19)]
            found, expected = (
                [one for one in told if one[0] not in leave_out] for told in (answers, self.expected[connection])
            )
            messages = [[one for one in told if one[0] == "MESSAGE"] for told in (found, expected)]
            assert messages[0] == messages[1], connection
            assert Counter(found) == Counter(expected), connection


def rest(method: str, path: str, body: Any = None) -> Callable[[PulsarWorld], object]:
    return lambda world: world.rest(method, path, body)


def others(world: PulsarWorld) -> None:
    """The topics that were there when patterns were recorded."""
    [frame] = [each for each in described("pattern_subscribe") if each["type"] == "GET_TOPICS_OF_NAMESPACE_RESPONSE"]
    base: Any = _schema.message("BaseCommand").FromString(data(frame)[8:])
    for name in base.getTopicsOfNamespaceResponse.topics:
        if "v-pat" not in name:
            world.door.topics.make(name)


def ask_for_credentials(world: PulsarWorld) -> None:
    world.door.ask_for_credentials()


def tokens() -> dict[int, str]:
    """What the client showed, by frame: each time a fresh token, signed with a key that was thrown away."""
    found: dict[int, str] = {}
    for frame in described("auth_challenge"):
        if frame["type"] in ("CONNECT", "AUTH_RESPONSE"):
            base: Any = _schema.message("BaseCommand").FromString(data(frame)[8:])
            shown = base.connect if frame["type"] == "CONNECT" else base.authResponse.response
            found[frame["n"]] = shown.auth_data.decode()
    return found


def taking(token: str) -> Callable[[PulsarWorld], object]:
    return lambda world: world.house.settings.update(pulsar_token=token)


def cut(world: PulsarWorld) -> None:
    """The client dropped its connection."""
    for session in list(world.door.sessions):
        if session.connected:
            session.connection_lost(None)


def two_transactions(world: PulsarWorld) -> None:
    for _ in range(2):
        world.door.topics.transactions.begin(0, 60_000)


V = "persistent/public/default"
SETTINGS: dict[str, dict[str, Any]] = {
    "auth_bad_token": {"pulsar_token": "another"},
    "failover_active_change": {"activeConsumerFailoverDelayTimeMillis": 1000},
}
FIRST: dict[str, list[Callable[[PulsarWorld], object]]] = {
    "dedup": [rest("PUT", "namespaces/public/dd"), rest("POST", "namespaces/public/dd/deduplication", True)],
    "schema_avro_json_string": [
        rest("PUT", "namespaces/public/schns"),
        rest("PUT", "namespaces/public/schns/schemaCompatibilityStrategy", "ALWAYS_COMPATIBLE"),
    ],
    "partitioned": [rest("PUT", f"{V}/v-part/partitions", 3)],
    "pattern_subscribe": [others],
    "java_txn_errors": [two_transactions],
}
BEFORE: dict[str, dict[int, Callable[[PulsarWorld], object]]] = {
    "auth_challenge": {
        **dict.fromkeys((11, 17, 26, 32, 38), ask_for_credentials),
        **{number: taking(token) for number, token in tokens().items()},
    },
    "failover_active_change": dict.fromkeys((17, 21), lambda world: world.world.advance(1.1)),
    "terminate_topic": {20: rest("POST", f"{V}/v-term/terminate"), 27: cut},
    "tombstone_and_compacted": {14: rest("PUT", f"{V}/v-cmp/compaction")},
    "unload_topic": {18: rest("PUT", f"{V}/v-unl/unload")},
}
AFTER = {"java_txn_abort": ["java_txn_commit"], "java_txn_read_committed": ["java_txn_commit", "java_txn_abort"]}
"""Recordings that went on where others had ended."""
UNTIL = {"terminate_topic": 34}
"""The third connection closes its consumer before the broker has said anything."""
LEFT_OUT = {
    "raw_consumer_stats": frozenset(("CONSUMER_STATS_RESPONSE",)),  # no rates; who is not there is answered
    "unload_topic": frozenset(("MESSAGE", "SEND_RECEIPT")),  # the real one goes on in another ledger
}
"""Differences that SKIPPED.md gives reasons for."""


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_answers(codec: Any, scenario: str) -> None:
    player = Player(codec, **SETTINGS.get(scenario, {}))
    for prepare in FIRST.get(scenario, []):
        prepare(player.world)
    for each in (*AFTER.get(scenario, []), scenario):
        player.play(each, BEFORE.get(each, {}))
    player.compare(leave_out=LEFT_OUT.get(scenario, frozenset()))
