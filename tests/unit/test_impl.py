"""The one door: what it gives by name, what it refuses, and how it chooses when nobody asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqclient import _impl


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As in a new interpreter: nothing chosen, nothing asked for."""
    monkeypatch.delitem(vars(_impl), "default", raising=False)
    monkeypatch.delenv("MQCLIENT_IMPL", raising=False)
    return monkeypatch


def test_a_name_gives_its_six_modules_once() -> None:
    pure = _impl.select("pure")
    assert [getattr(pure, name).__name__ for name in _impl.MODULES] == [
        f"mqclient._pure.{name}" for name in _impl.MODULES
    ]
    assert _impl.select("pure") is pure


def test_an_unknown_name_is_refused_with_the_known() -> None:
    with pytest.raises(ImportError, match="use 'native' or 'pure'"):
        _impl.select("fast")


def test_what_is_missing_is_refused_with_the_cure(fresh: pytest.MonkeyPatch) -> None:
    fresh.setattr(_impl, "_loaded", {})
    fresh.setattr(_impl, "MODULES", ("allocation", "missing"))
    with pytest.raises(ImportError, match=r"No module named 'mqclient\._native\.\w+'.*MQCLIENT_IMPL=pure"):
        _impl.select("native")


def test_the_environment_chooses(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("MQCLIENT_IMPL", "pure")
    assert _impl.default.name == "pure"


@pytest.mark.parametrize(("marked", "wanted"), [(True, "pure"), (False, "native")])
def test_unasked_it_is_native_unless_built_pure(
    fresh: pytest.MonkeyPatch, tmp_path: Path, marked: bool, wanted: str
) -> None:
    (tmp_path / "_native").mkdir()
    if marked:
        (tmp_path / "_native/PURE").touch()
    fresh.setattr(_impl, "__file__", str(tmp_path / "_impl.py"))
    asked: list[str] = []
    fresh.setattr(_impl, "select", asked.append)
    vars(_impl)["__getattr__"]("default")
    assert asked == [wanted]


def test_the_choice_is_made_once(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("MQCLIENT_IMPL", "pure")
    first = _impl.default
    fresh.setenv("MQCLIENT_IMPL", "fast")
    assert _impl.default is first


def test_nothing_else_is_invented() -> None:
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        vars(_impl)["__getattr__"]("other")


def test_what_needs_no_client_takes_what_is_there(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("MQCLIENT_IMPL", "pure")
    pure = _impl.usable()
    assert pure is _impl.default
    vars(_impl).pop("default")
    fresh.setenv("MQCLIENT_IMPL", "native")
    fresh.setattr(_impl, "_loaded", {"pure": pure})
    fresh.setattr(_impl, "MODULES", ("missing",))
    assert _impl.usable() is pure
