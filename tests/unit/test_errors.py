"""The tree of errors: what callers can catch, what engines decide by, and that errors survive pickling."""

from __future__ import annotations

import pickle

import pytest

from mqclient import errors
from mqclient.pulsar import codes as pulsar
from mqclient.rocketmq import codes as rocketmq


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.ConfigError("x"), ValueError),
        (errors.DeadlineError("x"), TimeoutError),
        (errors.LinkError("x"), ConnectionError),
    ],
)
def test_errors_are_the_builtin_ones_too(error: errors.MQError, builtin: type[Exception]) -> None:
    assert isinstance(error, builtin)
    assert isinstance(error, errors.MQError)


def test_an_error_in_a_list_of_results_is_not_ok() -> None:
    assert errors.ClosedError("closed").ok is False


def test_about_adds_what_outer_layers_know_and_keeps_the_rest() -> None:
    error = errors.LinkError("gone").about(remote="a:1").about(request="send", outcome_unknown=True)
    assert (error.remote, error.request, error.outcome_unknown) == ("a:1", "send", True)
    assert (error.retriable, error.refresh_route) == (True, True)


def test_a_deadline_leaves_the_outcome_unknown() -> None:
    assert errors.DeadlineError("late").outcome_unknown


@pytest.mark.parametrize(
    ("error", "retriable", "refresh"),
    [
        (rocketmq.BrokerError(17, "no route"), True, True),
        (rocketmq.BrokerError(2, "busy"), True, False),
        (rocketmq.BrokerError(13, "illegal"), False, False),
        (rocketmq.BrokerError(424242, "of tomorrow"), False, False),
        (pulsar.BrokerError(6, "not ready"), True, True),
        (pulsar.BrokerError(25, "fenced"), False, False),
    ],
)
def test_the_code_decides_the_advice(error: errors.RemoteError, retriable: bool, refresh: bool) -> None:
    assert (error.retriable, error.refresh_route) == (retriable, refresh)


def test_a_remote_error_tells_code_name_place_and_remark() -> None:
    error = rocketmq.BrokerError(25, "the subscription is old", remote="10.0.0.1:10911", request="PULL_MESSAGE")
    assert str(error) == "code 25 SUBSCRIPTION_NOT_LATEST from 10.0.0.1:10911 to PULL_MESSAGE: the subscription is old"
    assert str(errors.RemoteError(7)) == "code 7"


def test_an_error_survives_the_way_back_from_a_worker_process() -> None:
    sent = pulsar.BrokerError(15, "terminated", remote="b:6650", request="PRODUCER").about(outcome_unknown=True)
    back = pickle.loads(pickle.dumps(sent))
    assert type(back) is pulsar.BrokerError
    assert str(back) == str(sent)
    assert back.outcome_unknown
