"""The shapes of hooks: what is told can be read by name, and a class of the right shape is a hook."""

from __future__ import annotations

from typing import Any

from mqclient.hooks import AfterSend, BeforeSend, Sent


class Both:
    """A hook of both kinds."""

    def before_send(self, message: Any, properties: dict[str, str]) -> None:
        properties["seen"] = str(message)

    def after_send(self, sent: Sent) -> None:
        assert sent.error is None


def test_one_object_may_be_both() -> None:
    before: BeforeSend = Both()
    after: AfterSend = Both()
    added: dict[str, str] = {}
    before.before_send("m", added)
    after.after_send(Sent("topic", "group", ["id"], 1, 0.5, "broker:1", "SEND_OK", None))
    assert added == {"seen": "m"}


def test_what_is_told_has_names() -> None:
    sent = Sent("topic", "group", ["id"], 1, 0.5, "broker:1", "SEND_OK", None)
    assert (sent.topic, sent.seconds, sent.message_ids) == ("topic", 0.5, ["id"])
