"""Jobs that any number of workers share, each lent for a while to whoever asks (POP, 5.x brokers).

python examples/rocketmq_pop.py [NAME_SERVER]
"""

from __future__ import annotations

import asyncio
import sys

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.errors import DeadlineError
from mqclient.rocketmq import aio

COUNT = 6


def main(name_server: str) -> None:
    with rocketmq.Client(name_server) as client:
        with client.admin() as admin:
            admin.create_topic("jobs", queues=1)
        with client.producer("planner") as producer:
            producer.send_many([rocketmq.Message("jobs", b"job %d" % number) for number in range(COUNT)])
        with client.pop_consumer("workers", "jobs", invisible=30.0) as worker:
            job = worker.receive(timeout=10)
            print("a long one:", job.body.decode())
            job = worker.change_invisible(job, 120)  # more time; nobody else gets it meanwhile
            worker.ack(job)
            done = 1
            while done < COUNT:
                jobs = worker.receive_many(10, timeout=5)
                worker.ack(jobs)
                done += len(jobs)
            print(f"threads: {done} done")


async def main_asyncio(name_server: str) -> None:
    async def work(number: int) -> int:
        """Ten workers at once, in one process or in many: nobody owns a queue."""
        done = 0
        async with aio.Client(name_server) as client, client.pop_consumer("others", "jobs") as worker:
            try:
                while True:
                    await worker.ack(await worker.receive(timeout=1.0))
                    done += 1
            except DeadlineError:
                return done

    print(f"asyncio: {sum(await asyncio.gather(*[work(number) for number in range(10)]))} done")


def both(name_server: str) -> None:
    main(name_server)
    asyncio.run(main_asyncio(name_server))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        both(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["rocketmq"]) as broker:
            both(broker.name_server)
