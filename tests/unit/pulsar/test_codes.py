"""Pulsar's enumerations against the protocol's numbers."""

from __future__ import annotations

from mqclient.pulsar.codes import BrokerError, LookupType, ServerError, SubType

FATAL = {
    "AuthenticationError",
    "AuthorizationError",
    "ConsumerBusy",
    "ChecksumError",
    "TopicNotFound",
    "TopicTerminatedError",
    "ProducerBusy",
    "IncompatibleSchema",
    "ConsumerAssignError",
    "NotAllowedError",
    "ProducerFenced",
}


def test_numbers_of_the_protocol() -> None:
    assert [error.value for error in ServerError] == list(range(26))
    assert (SubType.Exclusive, SubType.Shared, SubType.Failover, SubType.Key_Shared) == (0, 1, 2, 3)
    assert (LookupType.Redirect, LookupType.Connect, LookupType.Failed) == (0, 1, 2)


def test_what_both_reference_clients_hold_fatal_is_not_retried() -> None:
    assert not {name for name in FATAL if BrokerError(ServerError[name]).retriable}


def test_a_topic_served_elsewhere_is_looked_up_again() -> None:
    error = BrokerError(ServerError.ServiceNotReady)
    assert error.retriable
    assert error.refresh_route
