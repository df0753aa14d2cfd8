"""A rate is kept, without bursts after a rest."""

from __future__ import annotations

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.pace import Pace


def test_a_rate_is_kept_and_rest_is_not_saved_up() -> None:
    pace = Pace(4.0)
    assert [pace.take(1, 10.0) for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]
    assert [pace.take(2, 20.0), pace.take(1, 20.0)] == [0.0, 0.5]


@pytest.mark.parametrize("rate", [0, -1.0])
def test_no_rate_at_all(rate: float) -> None:
    with pytest.raises(ConfigError, match="more than 0"):
        Pace(rate)
