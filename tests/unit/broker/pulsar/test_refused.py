"""The exception by which a command is refused."""

from __future__ import annotations

from mqclient.broker.pulsar.refused import Refused
from mqclient.pulsar.codes import ServerError


def test_it_holds_the_code_and_the_text() -> None:
    refused = Refused(ServerError.TopicNotFound, "no such topic")
    assert (refused.code, str(refused)) == (ServerError.TopicNotFound, "no such topic")
