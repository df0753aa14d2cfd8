"""What `mqclient.pulsar` offers by name, imported when asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mqclient import _impl, pulsar
from tests.support.tree import ROOT


def test_every_public_name_is_there() -> None:
    assert all(getattr(pulsar, name) is not None for name in pulsar.__all__)
    assert pulsar.MessageId is _impl.default.pulsar.MessageId
    assert pulsar.Client.__module__ == "mqclient.pulsar.sync"
    assert pulsar.token("t").method == "token"
    with pytest.raises(AttributeError, match="Clients"):
        pulsar.Clients  # noqa: B018


def test_the_package_alone_loads_no_face() -> None:
    code = "import sys, mqclient.pulsar; print(sorted(name for name in sys.modules if 'sync' in name or 'aio' in name))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
