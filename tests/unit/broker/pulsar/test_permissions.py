"""What a role may do: as a superuser, as a tenant's administrator, by what a namespace grants; and encryption."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from mqclient.broker.pulsar.http import Request
from mqclient.broker.pulsar.permissions import EITHER, allowed
from mqclient.broker.pulsar.policies import Policies
from mqclient.errors import ConfigError
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.names import TopicName
from tests.support.pulsar_world import PulsarWorld, RawClient

USERS = {"admin": "1", "anna": "2", "bert": "3", "chief": "4"}
GRANTS = "namespaces/public/default/permissions"
ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign"


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    settings: dict[str, Any] = {"pulsar_basic": USERS, "authorizationEnabled": "true", "superUserRoles": "admin, x"}
    made = PulsarWorld(codec, **settings)
    made.door.topics.policies.tenants["public"]["adminRoles"] = ["chief"]
    return made


def client(world: PulsarWorld, role: str) -> RawClient:
    raw = RawClient(world, connect=False)
    fields = {"auth_method_name": "basic", "auth_data": f"{role}:{USERS[role]}".encode()}
    raw.tell("CONNECT", client_version="raw", protocol_version=21, **fields)
    return raw


def rest(world: PulsarWorld, role: str, method: str, path: str, body: bytes = b"") -> int:
    told = base64.b64encode(f"{role}:{USERS[role]}".encode()).decode()
    request = Request(method, tuple(path.split("/")), headers={"authorization": f"Basic {told}"}, body=body)
    return world.door.rest.answer(request).status


def outcomes(raw: RawClient, number: int) -> list[Any]:
    """The error of each: partitions, lookup, producer, subscribe, topics of the namespace; None: none."""
    answers = [
        raw.ask("PARTITIONED_METADATA", topic="t")[1],
        raw.ask("LOOKUP", topic="t")[1],
        raw.ask("PRODUCER", topic="t", producer_id=number)[1],
        raw.subscribe(number, subscription=f"s{number}")[1],
        raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="public/default")[1],
    ]
    return [
        answer.error if "error" in answer.DESCRIPTOR.fields_by_name and answer.error else None for answer in answers
    ]


def test_what_clients_may(world: PulsarWorld) -> None:
    no = ServerError.AuthorizationError
    anna = client(world, "anna")
    assert outcomes(anna, 1) == [no] * 5
    refused = anna.ask("PRODUCER", topic="t", producer_id=2)[1]
    assert refused.message == "Client is not authorized to Produce"
    assert outcomes(client(world, "admin"), 1) == outcomes(client(world, "chief"), 2) == [None] * 5
    assert rest(world, "chief", "POST", f"admin/v2/{GRANTS}/anna", b'["produce"]') == 204
    assert outcomes(anna, 3) == [None, None, None, no, None]
    assert rest(world, "chief", "POST", f"admin/v2/{GRANTS}/anna", b'["consume"]') == 204
    assert outcomes(anna, 4) == [None, None, no, None, None]
    assert rest(world, "admin", "DELETE", f"admin/v2/{GRANTS}/anna") == 204
    assert outcomes(anna, 5) == [no] * 5
    coordinators = anna.ask("PARTITIONED_METADATA", topic=ASSIGN)[1]
    assert coordinators.partitions == 1
    unknown = anna.ask("PARTITIONED_METADATA", topic="persistent://nobody/here/t")[1]
    assert unknown.error == ServerError.TopicNotFound


@pytest.mark.parametrize(
    ("method", "path", "may"),
    [
        ("GET", "lookup/v2/topic/persistent/public/default/t", "bert"),
        ("GET", "admin/v2/persistent/public/default/t/partitions", "bert"),
        ("GET", "admin/v2/namespaces/public/default/topics", "bert"),
        ("GET", "admin/v2/namespaces/public/default/permissions", "chief"),
        ("PUT", "admin/v2/persistent/public/default/t/unload", "chief"),
        ("PUT", "admin/v2/persistent/public/default/made", "chief"),
        ("GET", "admin/v2/tenants", "admin"),
        ("PUT", "admin/v2/tenants/mine", "admin"),
        ("GET", "admin/v2/clusters", "admin"),
    ],
)
def test_what_may_be_called(world: PulsarWorld, method: str, path: str, may: str) -> None:
    world.door.topics.make("t")
    assert rest(world, "admin", "POST", f"admin/v2/{GRANTS}/bert", b'["produce", "consume"]') == 204
    order = ["anna", "bert", "chief", "admin"]
    allowed_from = order.index(may)
    assert [rest(world, role, method, path) == 403 for role in order] == [at < allowed_from for at in range(4)]


def test_what_can_be_granted(world: PulsarWorld) -> None:
    assert rest(world, "admin", "POST", f"admin/v2/{GRANTS}/anna", b'["fly"]') == 400
    assert rest(world, "admin", "POST", f"admin/v2/{GRANTS}/anna", b'"produce"') == 400
    policies = Policies({"superUserRoles": ["a"], "authorizationEnabled": True})
    assert allowed(policies, "a", "no/where", EITHER)
    assert not allowed(policies, "", "no/where", EITHER)
    assert allowed(Policies({}), "", "public/default", EITHER)


def test_where_everything_is_encrypted(codec: Any) -> None:
    world = PulsarWorld(codec)
    assert world.rest("POST", "namespaces/public/default/encryptionRequired", True) is None
    raw = RawClient(world)
    refused = raw.ask("PRODUCER", topic="t", producer_id=1)[1]
    assert (refused.error, refused.message) == (
        ServerError.MetadataError,
        "Encryption is required in persistent://public/default/t",
    )
    assert raw.ask("PRODUCER", topic="t", producer_id=2, encrypted=True)[0] == "PRODUCER_SUCCESS"
    metadata = codec.pulsar.encode_metadata("raw", 0, 1)
    raw.write(codec.pulsar.encode_send(2, 0, metadata, b"plain"))
    [(name, told)] = raw.events[1:]
    assert (name, told.error, told.message) == ("SEND_ERROR", ServerError.MetadataError, "Messages must be encrypted")
    began = world.world.mono
    with pytest.raises(ConfigError, match="give the producer encrypt=Encryption"):
        world.producer(world.client(), "t")
    assert world.world.mono - began < 1
    assert world.rest("DELETE", "namespaces/public/default/encryptionRequired") is None
    assert not world.door.topics.policies.value("encryptionRequired", TopicName.parse("t"))
