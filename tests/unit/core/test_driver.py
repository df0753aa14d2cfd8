"""The shapes that engines see: every driver has them, addresses print as people write them."""

from __future__ import annotations

from mqclient.core.driver import Address, AsyncDriver, SyncDriver
from mqclient.io.aio import AsyncioDriver
from mqclient.io.threads import ThreadsDriver
from tests.support.fake_driver import AsyncFace, FakeDriver


def test_addresses_print_as_people_write_them() -> None:
    assert str(Address("broker-1", 10911)) == "broker-1:10911"
    assert str(Address("::1", 6650)) == "[::1]:6650"


def test_the_drivers_have_the_shape() -> None:
    # Checked by mypy; here the names are, so that a rename is seen without it as well.
    sync: list[type[SyncDriver]] = [ThreadsDriver, FakeDriver]
    future: list[type[AsyncDriver]] = [AsyncioDriver]
    asked = {name for name in vars(SyncDriver) if not name.startswith("_")}
    for driver in [*sync, *future]:
        assert asked <= set(dir(driver)), driver
    assert {"wait", "close"} <= set(vars(AsyncFace))
