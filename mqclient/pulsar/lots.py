"""Owns what messages of one entry share beyond their topic, a transaction and a version of the schema, and telling the
broker of it first."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import LinkError, MQError
from mqclient.pulsar import requests
from mqclient.pulsar.outgoing import Special
from mqclient.pulsar.patience import patiently_steps

if TYPE_CHECKING:
    from mqclient.pulsar.attachment import Attachment
    from mqclient.pulsar.client import ClientEngine
    from mqclient.pulsar.names import TopicName
    from mqclient.pulsar.schema.base import SchemaInfo

Lot = Mapping[str, Any]
"""What the metadata of an entry says about all of its messages."""
PLAIN: Final[Lot] = MappingProxyType({})


class Told(Protocol):
    """The producer, of whose topic the broker is told."""

    topic: TopicName
    attachment: Attachment

    @property
    def name(self) -> str: ...


class Introductions:
    """A topic takes part in a transaction before anything of it is sent there, and a schema has a version.

    One introduction at a time: whoever comes meanwhile waits for it, so that messages stay in order.
    """

    __slots__ = ("_client", "_owner", "_turn", "_versions")

    def __init__(self, client: ClientEngine, owner: Told) -> None:
        self._client = client
        self._owner = owner
        self._turn: Slot[None] | None = None
        self._versions: dict[SchemaInfo, bytes | None] = {}

    def needed(self, message: Special) -> bool:
        """Whether the broker has to be told something first; an error if the transaction has ended."""
        if message.txn is not None:
            message.txn.check(self._client)
        return self._unknown(message)

    def lot(self, message: Any) -> Lot:
        """Of a message that was introduced."""
        if type(message) is not Special:
            return PLAIN
        found: dict[str, Any] = {}
        if message.txn is not None:
            found["txn"] = message.txn.id
        if message.schema is not None:
            found["schema_version"] = self._versions[message.schema]
        return found

    def steps(self, message: Any) -> Steps[None]:
        """Done when it is this message's turn, and the broker knows what it has to know. A transaction waits for the
        message from now on, until it has `ended`."""
        special = message if type(message) is Special else None
        if special is not None and special.txn is not None:
            special.txn.check(self._client)
            special.txn.began()
        try:
            while self._turn is not None:
                yield self._turn
            if special is not None and self._unknown(special):
                yield from self._introduce_steps(special)
        except MQError as error:
            if special is not None and special.txn is not None:
                special.txn.ended(error)
            raise

    def _unknown(self, message: Special) -> bool:
        if message.schema is not None and message.schema not in self._versions:
            return True
        return message.txn is not None and not message.txn.enlisted(str(self._owner.topic))

    def _introduce_steps(self, message: Special) -> Steps[None]:
        self._turn = Slot()
        try:
            if message.schema is not None and message.schema not in self._versions:
                self._versions[message.schema] = yield run_steps(self._version_steps(message.schema))
            if message.txn is not None:
                yield message.txn.enlist(str(self._owner.topic))
        finally:
            # Only then: by the end of this turn the message has its place in the line for room, or is added.
            self._client.driver.end_of_turn(self._next)

    def _next(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.complete(None)

    def _version_steps(self, schema: SchemaInfo) -> Steps[bytes | None]:
        """The version that the topic has of it, a new one if it may follow; bytes have none."""
        if schema.type is None:
            return None
        client, deadline = self._client, self._client.deadline()
        version: bytes = yield run_steps(patiently_steps(client, lambda: self._ask_steps(schema, deadline), deadline))
        return version

    def _ask_steps(self, schema: SchemaInfo, deadline: float) -> Steps[bytes]:
        owner = self._owner
        connection = owner.attachment.connection
        if connection is None or not owner.attachment.attached:
            raise LinkError(f"not connected to the broker of {owner.topic} at present")
        command = requests.get_or_create_schema(str(owner.topic), schema, owner.name)
        reply = yield connection.request(command, deadline)
        return bytes(reply.schema_version)
