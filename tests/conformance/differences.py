"""What the two protocols do not take alike, and why: `.ci/gen_manners.py` prints it as docs/manners.md."""

from __future__ import annotations

from typing import Final

SIGNATURES: Final = {
    "Client.ping": "RocketMQ asks a name server and has its 3 s; Pulsar's connecting has a timeout of the client's own",
    "Client.producer": "a RocketMQ producer belongs to a group and sends to any topic; a Pulsar producer, to one",
    "Producer.send": "a RocketMQ message names its topic, so it is an object; Pulsar's is a body and its belongings. "
    "Without `timeout` a Pulsar send has the producer's `send_timeout`",
    "Producer.send_arrow": "the topic, as above; a call of Pulsar's ends when every row has a receipt",
    "Producer.send_many": "as `send`",
    "Producer.submit": "as `send`",
    "Consumer.ack": "what was popped is acknowledged by a request that can be late; Pulsar's acknowledgements go "
    "in groups, and `ack_confirmed` waits for the broker's word",
    "Consumer.receive_many": "a pop lends at most 32 messages; Pulsar's window is 1,000",
    "Reader.batches": "a RocketMQ pull brings as many as are asked for; an entry of Pulsar is as large as it was sent",
    "Reader.receive_batch": "as `batches`",
    "Reader.receive_many": "the usual pull of RocketMQ, the usual window of Pulsar",
    "Reader.seek": "RocketMQ's places are numbers of one queue, Pulsar's are message ids or times of a topic",
}
"""By verb; the signatures themselves are read off the classes."""

MANNERS: Final = {
    "What a group is": "in RocketMQ the members of a group share its topics' queues, or pop from them; in Pulsar a "
    "subscription belongs to a topic, and its type says who gets what",
    "What comes again": "what was popped comes again when the time is over for which it was lent; what a Pulsar "
    "consumer has not acknowledged comes again when it is closed",
    "The key of `send`": "in RocketMQ it chooses the queue and is not sent (`keys=` of the message are); in Pulsar "
    "it is part of the message, and chooses the partition",
    "An empty body": "RocketMQ brokers fail on it, so it is refused; Pulsar tells it from None, a null value",
}
"""What no signature shows."""
