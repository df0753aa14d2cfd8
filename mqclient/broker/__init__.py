"""The embedded broker: RocketMQ and Pulsar in a box, for tests and first steps; a product of its own."""

from __future__ import annotations

from mqclient.broker.broker import EmbeddedBroker

__all__ = ["EmbeddedBroker"]
