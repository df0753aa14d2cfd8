"""Real RocketMQ and real Pulsar, booted on free ports for the tests that ask for them (`--real=rocketmq,pulsar`)."""
