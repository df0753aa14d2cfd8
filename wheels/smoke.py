"""What a freshly installed wheel must be able to do; prints one line."""

from __future__ import annotations

import mqclient
from mqclient import _impl


def main() -> str:
    assert "site-packages" in mqclient.__file__, mqclient.__file__
    assert mqclient.__impl__ == "native", mqclient.__impl__
    remoting, pulsar = _impl.default.remoting, _impl.default.pulsar
    (frame,) = remoting.FrameReader().feed(remoting.encode_frame(105, 7, fields={"topic": "orders"}, body=b"x"))
    assert (frame.code, frame.opaque, frame.field("topic"), frame.body) == (105, 7, "orders", b"x")
    stored = remoting.encode_message(b"body", "orders", properties=remoting.encode_properties({"TAGS": "paid"}))
    (message,) = remoting.decode_messages(stored)
    assert (message.body, message.topic, message.tag) == (b"body", "orders", "paid")
    reader = pulsar.FrameReader()
    (event,) = reader.feed(pulsar.encode_send(1, 2, pulsar.encode_metadata("p", 2, 3), b"payload"))
    assert [found.body for found in pulsar.decode_messages(event[-1])] == [b"payload"]
    assert _impl.default.digest.crc32c(b"123456789") == 0xE3069283
    return f"native, {mqclient.__version__}, both protocols round trip"


if __name__ == "__main__":
    print(main())
