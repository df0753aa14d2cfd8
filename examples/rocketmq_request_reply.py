"""Ask another service through RocketMQ and wait for its answer; with asyncio, a hundred questions at once.

python examples/rocketmq_request_reply.py [NAME_SERVER]
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq import aio


async def main(name_server: str) -> None:
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


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(sys.argv[1]))
    else:
        with EmbeddedBroker(doors=["rocketmq"]) as broker:
            asyncio.run(main(broker.name_server))
