"""What a data folder holds at one moment, as SIGKILL would leave it: a copy made while its broker goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

from mqclient.broker import EmbeddedBroker


def crashed(broker: EmbeddedBroker, to: Path) -> Path:
    """A copy of the running broker's folder. What was answered is in there: it is written before the answer leaves."""
    assert broker.house.data is not None
    shutil.copytree(broker.house.data.folder, to)
    return to
