# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""Checksums, key hashes, and files of checked frames; the surface is told in `mqclient/_native/digest.pyi`.

| part | what |
|---|---|
| digest/bytes.pxi | the bytes behind an argument |
| digest/checksums.pxi | CRC-32, CRC-32C (the work is in common/crc.h) |
| digest/hashes.pxi | murmur3, Java string hash, Boost hash |
| digest/files.pxi | frames and records of a data folder |
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from common.writebuf cimport *

include "digest/bytes.pxi"
include "digest/checksums.pxi"
include "digest/hashes.pxi"
include "digest/files.pxi"
