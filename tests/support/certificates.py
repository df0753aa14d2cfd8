"""Certificates for tests of TLS: an authority of our own and a server's certificate for 127.0.0.1 and localhost."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest


class Certificates(NamedTuple):
    """Paths of PEM files."""

    authority: str
    certificate: str
    key: str


def make(folder: Path) -> Certificates:
    """Made by the openssl program, for a day; the test is skipped, aloud, where there is none."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl program to make certificates")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # Python 3.13 insists
    openssl(*f"req -x509 -keyout ca.key -out ca.pem -days 1 -subj /CN=authority {' '.join((*key, *usage))}".split())
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    sign = "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -extfile names -out server.pem"
    openssl(*sign.split())
    return Certificates(*(str(folder / name) for name in ("ca.pem", "server.pem", "server.key")))
