"""Property text: the rules of the sheet, by both twins."""

from __future__ import annotations

from types import ModuleType

import pytest

from mqclient._impl import Impl
from mqclient.errors import ConfigError


@pytest.fixture
def remoting(codec: Impl) -> ModuleType:
    return codec.remoting


def test_properties_text(remoting: ModuleType) -> None:
    decode = remoting.decode_properties
    assert decode(b"a\x01b\x02c\x01d") == {"a": "b", "c": "d"}
    assert decode(b"a\x01\x02\x01b\x02c\x02\x02d\x01e\x01f\x02") == {"d": "e\x01f"}
    assert decode(b"a\x01\xff\x02a\x01last") == {"a": "last"}
    assert decode(b"x\x01" + b"y" * 40000) == {"x": "y" * 40000}
    for wrong in ({"": "a"}, {"a": ""}, {"a\x01": "b"}, {"a": "\x02"}, {"a": "x" * 32766}):
        with pytest.raises(ConfigError):
            remoting.encode_properties(wrong)
    with pytest.raises(TypeError):
        remoting.encode_properties({"a": 1})
