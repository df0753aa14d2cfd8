"""What the schema says is what a type checker knows: mypy reads this file, and it runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, get_args

from typing_extensions import assert_type

from mqclient.broker import EmbeddedBroker
from mqclient.pulsar import Message, aio, sync, typed
from mqclient.pulsar.schema import STRING, Avro


@dataclass
class Order:
    number: int


def test_a_message_says_its_kind(codec: Any) -> None:
    """Annotations are looked at while a program runs, too, by dataclasses and frameworks."""
    kind = codec.pulsar.Message
    assert (kind[Order].__origin__, kind[Order].__args__) == (kind, (Order,))
    for made in (sync.Consumer[Order], sync.Producer[Order], aio.Reader[Order]):
        assert get_args(made) == (Order,)


def test_both_faces_are_of_their_schema() -> None:
    assert typed.T.__name__ == "T"
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as broker:
        with sync.Client(broker.pulsar_url) as client:
            producer = client.producer("orders", schema=Avro(Order))
            assert_type(producer, sync.Producer[Order])
            producer.send(Order(1), key="a")
            assert_type(producer.with_schema(STRING), sync.Producer[str])
            consumer = client.consumer("orders", "s", schema=Avro(Order), start="earliest")
            assert_type(consumer, sync.Consumer[Order])
            message = consumer.receive(10)
            assert_type(message, Message[Order])
            assert_type(message.value, Order)
            assert message.value.number == 1
            table = client.table_view("orders", schema=Avro(Order))
            assert_type(table["a"], Order)
            assert_type(table.items(), list[tuple[str, Order]])
            plain = client.reader("orders", start="earliest")
            assert_type(plain, sync.Reader[Any])
            assert_type(plain.receive(10).body, bytes)
        asyncio.run(under_asyncio(broker.pulsar_url))


async def under_asyncio(url: str) -> None:
    async with aio.Client(url) as client:
        async with client.producer("words", schema=STRING) as producer:
            assert_type(producer, aio.Producer[str])
            await producer.send("word")
        async with client.reader("words", start="earliest", schema=STRING) as reader:
            async for message in reader:
                assert_type(message.value, str)
                assert message.value == "word"
                break
