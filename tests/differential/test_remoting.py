"""The embedded broker and real ones are asked the same, and their replies are compared field by field.

A difference is a bug of the embedded broker, or it stands in `ALLOWED` with its reason; an entry there that is no
difference any more fails too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import read_body
from tests.differential import scripts
from tests.differential.remoting import Script, Step, differences
from tests.real.fixtures import ON_ROCKETMQ, Boot
from tests.unit.broker.remoting.raw import Raw

pytestmark = ON_ROCKETMQ

ALLOWED = {
    r"4\.9\.7/.*/body/\d+/properties/(TRACE_ON|MSG_REGION|UNIQ_KEY|CLUSTER)": "5.x adds these to what it stores",
    r"4\.9\.7/code_25/.*/fields/(groupSysFlag|topicSysFlag)": "5.x tells them with each pull",
    r"4\.9\.7/code_25/beat.*/fields/IS_SU(B_CHANGE|PPORT_HEART_BEAT_V2)": "5.x answers beats with them",
    r"4\.9\.7/code_25/(none registered|not subscribed any more)/remark": "the address of the help page moved since",
    r"5\.5\.0/sends/(delayed|timed)/fields/queueOffset": "the offset in a queue that all delayed messages share",
    r"4\.9\.7/pushed_reset/.*/fields/queueId": "5.x tells it with each push",
}
"""A pattern of paths, `generation/script/step/field`, and why the embedded broker is different there: it is of today's
generation, whatever it is compared with."""
NOT_SUPPORTED = re.compile(r" request type \d+ not supported")

TODAY = [
    scripts.sends,
    scripts.pulls,
    scripts.offsets,
    scripts.code_25,
    scripts.equal_ids,
    scripts.membership,
    scripts.locks,
    scripts.server_side_reset,
    scripts.administration,
]
OLD_FORM = [scripts.pushed_reset, scripts.broadcasting_reset]
PUSHES: dict[str, dict[str, Any]] = {"patched": {"mqcloud_patch": True}, "4.9.7": {"server_side_reset": False}}
CASES = [
    *(pytest.param("5.5.0", script, {"enablePropertyFilter": True}, id=f"5.5.0-{script.__name__}") for script in TODAY),
    *(
        pytest.param(name, script, settings, id=f"{name}-{script.__name__}")
        for name, settings in PUSHES.items()
        for script in OLD_FORM
    ),
    pytest.param("4.9.7", scripts.code_25, {}, id="4.9.7-code_25"),
]


def addresses(codec: Any, name_server: str) -> str:
    """Where broker-a is."""
    with Raw(codec, name_server) as raw:
        table = read_body(raw.ask(Request.GET_BROKER_CLUSTER_INFO).body)["brokerAddrTable"]
    (address,) = table["broker-a"]["brokerAddrs"].values()
    return str(address)


def said(script: Callable[[Script], None], codec: Any, name_server: str) -> dict[str, Step]:
    with Script(codec, addresses(codec, name_server), name_server) as conversation:
        script(conversation)
        return conversation.steps


@pytest.mark.parametrize(("generation_name", "script", "settings"), CASES)
def test_the_same_is_answered(
    request: pytest.FixtureRequest,
    codec: Impl,
    generation_name: str,
    script: Callable[[Script], None],
    settings: dict[str, Any],
) -> None:
    if "rocketmq" not in str(request.config.getoption("--real")).split(","):
        pytest.skip("--real=rocketmq was not asked for")
    boot: Boot = request.getfixturevalue("booted")
    real = said(script, codec.remoting, boot(generation_name).name_server)
    with EmbeddedBroker(doors=["rocketmq"], impl=codec, **settings) as broker:
        embedded = said(script, codec.remoting, broker.name_server)
    assert list(real) == list(embedded)
    found = {f"{generation_name}/{script.__name__}/{at}": values for at, values in differences(real, embedded).items()}
    left_out = {step for step, note in embedded.items() if NOT_SUPPORTED.fullmatch(str(note.get("remark")))}
    found = {at: values for at, values in found.items() if at.split("/")[2] not in left_out}  # they stand in SKIPPED.md
    unexplained = {at: values for at, values in found.items() if not any(re.fullmatch(p, at) for p in ALLOWED)}
    assert not unexplained, "\n".join(
        f"{at}:\n  real     {one!r}\n  embedded {two!r}" for at, (one, two) in unexplained.items()
    )
