"""RocketMQ's side of the embedded broker: a name server and brokers; one file per family of requests."""
