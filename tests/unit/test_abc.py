"""The narrow views: which faces have them is checked by mypy; here, that the names are there without it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from mqclient import abc
from mqclient.pulsar import sync as pulsar
from mqclient.rocketmq.remoting import sync as remoting

SENDERS: list[type[abc.Sender[Any, Any]]] = [pulsar.Producer, remoting.Producer]
RECEIVERS: list[type[abc.Receiver[Any]]] = [pulsar.Consumer, pulsar.Reader, remoting.PullConsumer]
ACKERS: list[type[abc.Acker[Any]]] = [pulsar.Consumer]
SEEKABLE: list[type[abc.Seekable[datetime]]] = [pulsar.Consumer, pulsar.Reader]


@pytest.mark.parametrize(
    ("view", "faces"),
    [(abc.Sender, SENDERS), (abc.Receiver, RECEIVERS), (abc.Acker, ACKERS), (abc.Seekable, SEEKABLE)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_faces_have_what_the_view_promises(view: type, faces: list[type]) -> None:
    asked = {name for name in vars(view) if not name.startswith("_")}
    assert asked
    for face in faces:
        assert asked <= set(dir(face)), face
        assert view not in face.__mro__, "a view is no base class"


def test_a_remoting_consumer_is_no_acker() -> None:
    assert not hasattr(remoting.PullConsumer, "ack")
