"""Samples of the remoting protocol: the sheet's own bytes, and a stored message made by hand."""

from __future__ import annotations

from types import ModuleType
from typing import Any

SHEET_JSON = bytes.fromhex(
    "000000810000007d7b22636f6465223a3130352c226578744669656c6473223a7b22746f706963223a2254227d2c22666c6167223a302c226c"
    "616e6775616765223a22505954484f4e222c226f7061717565223a312c2273657269616c697a655479706543757272656e74525043223a224a"
    "534f4e222c2276657273696f6e223a3437397d"
)
SHEET_BINARY = bytes.fromhex("000000250100002100690301df0000000100000000000000000000000c0005746f7069630000000154")
SHEET_ELEMENT = bytes.fromhex("0000001f000000000000000000000000000000026162000754414753014102")
SHEET_MESSAGE = bytes.fromhex(
    "00000065daa320a758932aac000000030000000000000000000000070000000000000400000000000000018bcfe568000a00000900009c4000"
    "00018bcfe568050a00000100002a9f0000000000000000000000000000000268690154000754414753014102"
)


def message(remoting: ModuleType, body: bytes = b"body", topic: str = "T", **options: Any) -> bytes:
    mapping = options.pop("mapping", {})
    encoded: bytes = remoting.encode_message(body, topic, properties=remoting.encode_properties(mapping), **options)
    return encoded
