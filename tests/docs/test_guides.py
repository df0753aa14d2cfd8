"""The guides teach by programs: all blocks of a guide are run in their order, as one program, on a broker in a box."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from mqclient.broker import EmbeddedBroker
from tests.support.tree import ROOT, text

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME_SERVER = "127.0.0.1:9876"
SERVICE = "pulsar://127.0.0.1:6650"
GUIDES = ["docs/pulsar.md", "docs/rocketmq.md"]


@pytest.mark.parametrize("path", GUIDES)
def test_a_guide_runs_from_its_first_block_to_its_last(path: str) -> None:
    blocks = BLOCK.findall(text(path))
    assert len(blocks) > 5
    with EmbeddedBroker(doors=["rocketmq", "pulsar"], enablePropertyFilter=True) as broker:
        program = "\n".join(blocks).replace(NAME_SERVER, broker.name_server).replace(SERVICE, broker.pulsar_url)
        line = [sys.executable, "-c", program]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "code:25" not in done.stderr
