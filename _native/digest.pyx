# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Checksums and key hashes; the surface is told in `mqclient/_native/digest.pyi`.

| part | what |
|---|---|
| digest/bytes.pxi | the bytes behind an argument |
| digest/checksums.pxi | CRC-32, CRC-32C (the work is in common/crc.h) |
| digest/hashes.pxi | murmur3, Java string hash, Boost hash |
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

include "digest/bytes.pxi"
include "digest/checksums.pxi"
include "digest/hashes.pxi"
