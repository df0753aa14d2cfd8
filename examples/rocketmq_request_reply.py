"""Ask another service through RocketMQ and wait for its answer: one question, and with asyncio a hundred at once.

python examples/rocketmq_request_reply.py [NAME_SERVER]
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq import aio


def main(name_server: str) -> None:
    with rocketmq.Client(name_server) as client, client.admin() as admin, client.producer("threads") as producer:
        admin.create_topic("upper", queues=1)

        def answer(messages: Any) -> None:
            for message in messages:
                producer.reply(message, message.body.upper())

        with client.push_consumer("uppers", "upper", answer, start="first"):
            reply = producer.request(rocketmq.Message("upper", b"hello"), timeout=10)
        print("answer:", reply.body.decode())


async def main_asyncio(name_server: str) -> None:
    async with (
        aio.Client(name_server) as client,
        client.admin() as admin,
        client.producer("askers") as asker,
        client.producer("doublers") as doubler,
    ):
        await admin.create_topic("double", queues=2)

        async def answer(messages: Any) -> None:
            for message in messages:
                await doubler.reply(message, b"%d" % (2 * int(message.body)))

        async with client.push_consumer("doublers", {"double": "*"}, answer, start="first"):
            questions = [asker.request(aio.Message("double", b"%d" % number), timeout=10) for number in range(100)]
            replies = await asyncio.gather(*questions)
        print("answers:", sum(int(reply.body) for reply in replies))


def both(name_server: str) -> None:
    main(name_server)
    asyncio.run(main_asyncio(name_server))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        both(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["rocketmq"]) as broker:
            both(broker.name_server)
