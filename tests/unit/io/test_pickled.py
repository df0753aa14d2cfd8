"""What a pickle brought is made at its first use, once, and what cannot travel says so."""

from __future__ import annotations

import pickle
import threading
import time
from typing import Any

import pytest

from mqclient.io.pickled import Lazily


class Face(Lazily):
    """Notes how often it was made."""

    made = 0

    def __init__(self, name: str) -> None:
        self._recipe = (name,)
        self._make(name)

    def _make(self, name: str) -> None:
        time.sleep(0.01)  # so that others come meanwhile
        type(self).made += 1
        self._driver, self._engine = "driver", name

    @property
    def name(self) -> Any:
        return self._engine


class Fixed(Lazily):
    """Has no recipe."""


def test_it_is_made_when_it_is_used_and_only_once() -> None:
    data = pickle.dumps(Face("a"))
    Face.made = 0
    face = pickle.loads(data)
    assert Face.made == 0
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(face.name)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found, Face.made) == (["a"] * 4, 1)
    assert pickle.loads(pickle.dumps(face)).name == "a"


def test_what_is_not_there_is_not_there() -> None:
    face = pickle.loads(pickle.dumps(Face("a")))
    with pytest.raises(AttributeError, match="'Face' has no attribute 'sned'"):
        _ = face.sned
    with pytest.raises(AttributeError):
        _ = Fixed()._engine  # type: ignore[attr-defined]


def test_what_cannot_travel_says_so() -> None:
    with pytest.raises(TypeError, match="a Fixed cannot be pickled: make another one in the other process"):
        pickle.dumps(Fixed())
    with pytest.raises(NotImplementedError):
        Fixed()._make()
