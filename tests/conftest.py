"""What every test gets: both implementations as `codec`, the tier as `scale`, and an output that says what was tested
and what was left out.
"""

from __future__ import annotations

import gc
import os
import platform
import shutil
import signal
import socket
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest

import mqclient
from mqclient._impl import MODULES, Impl, select

pytest_plugins = ["tests.real.fixtures"]
hypothesis.settings.register_profile(  # two cores, shared: the clock proves nothing
    "mqclient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("mqclient")
SCALES = ("test", "ci", "soak")
ASKED = os.environ.get("MQCLIENT_IMPL", "")
IMPLS = ("pure",) if ASKED == "pure" else ("native", "pure")


def is_native(module: ModuleType) -> bool:
    """Native is really native: nothing that Python itself could have compiled."""
    return Path(module.__file__ or "").suffix in (".so", ".pyd")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scale", choices=SCALES, default="test", help="counts and durations: seconds, minutes, or full")
    parser.addoption("--only-scaled", action="store_true", help="only what `make test` left out or did in small")


def pytest_configure() -> None:
    """A shell ignores Ctrl-C for what it runs in the background, and so would every process that a test starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    place = Path(mqclient.__file__).parent
    return f"mqclient: {' and '.join(IMPLS)} modules from {place}, scale {config.getoption('--scale')}, {python}"


def left_out(scale: str) -> Iterator[tuple[str, str]]:
    """Marker and reason of what this run has no means or no time for."""
    if scale == "test":
        yield "ci", "runs from --scale=ci up (.ci/run)"
    if scale != "soak":
        yield "soak", "runs with --scale=soak only (make soak)"
    if shutil.which("java") is None:
        yield "spark", "no JDK found"


def is_scaled(item: pytest.Item) -> bool:
    """It is no test of `make test`, or does more in a larger tier."""
    marked = any(item.get_closest_marker(name) for name in ("ci", "soak", "real"))
    return marked or "scale" in getattr(item, "fixturenames", ())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Of the 15,000 items and all that belongs to them nothing is garbage: nobody need look, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--only-scaled"):
        config.hook.pytest_deselected(items=[item for item in items if not is_scaled(item)])
        items[:] = [item for item in items if is_scaled(item)]
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    for marker, reason in left_out(config.getoption("--scale")):
        for item in items:
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish(session: pytest.Session) -> None:
    """pytest-xdist and pytest must fit: groups that are passed over in silence boot every broker in every worker."""
    if getattr(session.config.option, "loadgroup", False):
        lost = [
            item.nodeid for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid
        ]
        if lost:
            raise pytest.UsageError(f"pytest-xdist does not keep groups together, such as that of {lost[0]}")


@pytest.fixture(scope="session", autouse=True)
def _no_such_names() -> Iterator[None]:
    """Names under .invalid, of which there are none, are answered here: asking a network's DNS can take seconds."""
    ask = socket.getaddrinfo

    def answer(host: Any, *rest: Any, **options: Any) -> Any:
        if str(host).endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return ask(host, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", answer)
        yield


@pytest.fixture(scope="session")
def scale(request: pytest.FixtureRequest) -> str:
    """The tier asked for: "test", "ci" or "soak"."""
    value: str = request.config.getoption("--scale")
    return value


@pytest.fixture(scope="session", params=IMPLS)
def codec(request: pytest.FixtureRequest) -> Impl:
    """Each implementation in turn: a namespace of the six modules."""
    impl = select(request.param)
    for module in MODULES:
        found = getattr(impl, module)
        assert is_native(found) == (request.param == "native"), f"{found.__file__} is not {request.param}"
    return impl
