"""RocketMQ over the remoting protocol, for 4.x and 5.x brokers."""
