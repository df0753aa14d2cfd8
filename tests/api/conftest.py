"""What the tests of the faces share: coroutine tests run in a loop of their own; clients of each implementation."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from mqclient import _impl


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """The tests under async_/ are coroutines; the ones generated from them are not."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture(scope="session", params=["native", "pure"])
def impl(request: pytest.FixtureRequest) -> str:
    """The client's implementation, by name; the broker runs pure, so that a shared misreading shows up."""
    name: str = request.param
    try:
        _impl.select(name)
    except ImportError as error:
        pytest.skip(f"the {name} modules are not all built: {error}")
    return name
