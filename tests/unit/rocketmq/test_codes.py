"""RocketMQ's codes against numbers seen on the wire."""

from __future__ import annotations

from mqclient.rocketmq.codes import SENT_BY_BROKERS, VERSION, BrokerError, Language, Request, Response


def test_numbers_that_recordings_show() -> None:
    assert (Request.SEND_MESSAGE_V2, Request.PULL_MESSAGE, Request.HEART_BEAT) == (310, 11, 34)
    assert (Response.SUBSCRIPTION_NOT_LATEST, Response.PULL_OFFSET_MOVED) == (25, 21)
    assert int(Language.PYTHON) == 3


def test_what_brokers_ask_of_clients() -> None:
    assert {int(code) for code in SENT_BY_BROKERS} == {39, 40, 220, 221, 307, 309, 326}


def test_our_version_gets_routes_as_standard_json_and_a_goodbye() -> None:
    assert VERSION >= 476


def test_advice_stands_for_known_answers_only() -> None:
    assert set(BrokerError.advice) <= set(Response)
    assert Response.SUCCESS not in BrokerError.advice


def test_who_is_denied_is_told_the_cure_whatever_the_generation() -> None:
    old = BrokerError(Response.SYSTEM_ERROR, "org.apache.rocketmq.acl.common.AclException: No acl config for nobody")
    today = BrokerError(Response.NO_PERMISSION, "not allowed")
    for error in (old, today):
        assert error.meaning == Response.NO_PERMISSION
        assert "auth=rocketmq.acl" in str(error)
        assert (error.retriable, error.refresh_route) == BrokerError.advice[Response.NO_PERMISSION]
    busy = BrokerError(Response.SYSTEM_ERROR, "disk full")
    assert (busy.meaning, busy.retriable, "auth=" in str(busy)) == (Response.SYSTEM_ERROR, True, False)
