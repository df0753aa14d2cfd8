"""TLS and signed requests towards real 5.5.0 brokers: let in with the right keys, refused with a reason otherwise."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from mqclient import rocketmq
from mqclient.config import TLS
from mqclient.errors import LinkError
from mqclient.rocketmq.codes import BrokerError
from tests.real.fixtures import ON_ROCKETMQ
from tests.real.rocketmq import RealRocketMQ

pytestmark = ON_ROCKETMQ
IMPLS = ["native", "pure"]
ACL_2 = """
authenticationEnabled=true
authenticationProvider=org.apache.rocketmq.auth.authentication.provider.DefaultAuthenticationProvider
authenticationMetadataProvider=org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider
initAuthenticationUser={"username":"root","password":"rootsecret1"}
innerClientAuthenticationCredentials={"accessKey":"root","secretKey":"rootsecret1"}
authorizationEnabled=true
authorizationProvider=org.apache.rocketmq.auth.authorization.provider.DefaultAuthorizationProvider
authorizationMetadataProvider=org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider
"""


def round_trip(client: rocketmq.Client) -> None:
    """By every kind of request: topic made, sent in all ways, pulled, pushed, committed."""
    topic = f"secured-{uuid.uuid4().hex[:8]}"
    with client.admin() as admin:
        admin.create_topic(topic, queues=1)
    with client.producer("p") as producer:
        producer.send(rocketmq.Message(topic, b"one", tag="t"), timeout=10)
        producer.send_oneway(rocketmq.Message(topic, b"oneway"))
        assert all(one.ok for one in producer.send_many([rocketmq.Message(topic, b"many") for _ in range(10)]))
        assert producer.submit(rocketmq.Message(topic, "ü".encode(), keys=["ü"])).result(10).ok
    got: list[Any] = []
    with client.pull_consumer("reader", topic, start="first") as consumer:
        while len(got) < 13:
            got += consumer.receive_many(13, timeout=10)
        consumer.commit()
    assert {message.body for message in got} == {b"one", b"oneway", b"many", "ü".encode()}


@pytest.mark.parametrize("impl", IMPLS)
def test_tls_checks_the_other_side_unless_it_is_told_not_to(real_rocketmq: RealRocketMQ, impl: str) -> None:
    with (
        rocketmq.Client(real_rocketmq.name_server, impl=impl, tls=TLS()) as careful,
        pytest.raises(LinkError, match="certificate verify failed"),
    ):
        careful.ping()
    with rocketmq.Client(real_rocketmq.name_server, impl=impl, tls=TLS(insecure_trust_anyone=True)) as careless:
        round_trip(careless)


@pytest.fixture(name="guarded", scope="module")
def guarded_fixture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRocketMQ]:
    if "rocketmq" not in str(request.config.getoption("--real", "")).split(","):
        pytest.skip("needs a real broker: run `make real`")
    with RealRocketMQ(tmp_path_factory.mktemp("acl"), brokers=1, options=ACL_2) as cluster:
        yield cluster


@pytest.mark.parametrize("impl", IMPLS)
def test_signed_requests_are_let_in_and_others_told_why_not(guarded: RealRocketMQ, impl: str) -> None:
    with rocketmq.Client(guarded.name_server, impl=impl, auth=rocketmq.acl("root", "rootsecret1")) as client:
        round_trip(client)
    for wrong in (None, rocketmq.acl("root", "guessed"), rocketmq.acl("nobody", "x")):
        with rocketmq.Client(guarded.name_server, impl=impl, auth=wrong) as client, client.producer("p") as producer:
            with pytest.raises(BrokerError) as caught:
                producer.send(rocketmq.Message("any", b"x"), timeout=10)
            assert caught.value.code == 16
            assert "auth=" in str(caught.value)
            assert "guessed" not in str(caught.value)
