"""The pytest plugin gives a broker to other people's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

THEIRS = """
from mqclient import pulsar, rocketmq

def test_both_protocols(mq_broker):
    with rocketmq.Client(mq_broker.name_server) as client, client.producer("p") as producer:
        assert producer.send(rocketmq.Message("orders", b"x")).ok
    with pulsar.Client(mq_broker.pulsar_url) as client, client.producer("orders") as producer:
        assert producer.send(b"x")
"""


def test_a_project_of_its_own_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_theirs.py").write_text(THEIRS)
    monkeypatch.chdir(tmp_path)
    named = ["-p", "no:mqclient", "-p", "mqclient.testing"]  # where mqclient is installed, pytest finds it by itself
    arguments = ["-q", *named, "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "test_theirs.py"]
    assert pytest.main(arguments) == pytest.ExitCode.OK
