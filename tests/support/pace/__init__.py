"""Waiting in tests of both faces: `aio` in what is written, `sync` in what is generated from it."""
