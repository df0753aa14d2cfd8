"""Records tests/vectors/ecies.json: data keys as Java wraps them for owners of elliptic curves' keys.

python tests/vectors/ecies_record/record.py path/of/bcprov.jar, with a JDK and openssl on the PATH; prints the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

CURVES = ("prime256v1", "secp384r1", "secp521r1")
KEY = bytes(range(32)).hex()


def run(*line: str) -> str:
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def case(curve: str, folder: Path, jar: str) -> dict[str, str]:
    private, public = folder / "private", folder / "public"
    run("openssl", "ecparam", "-name", curve, "-genkey", "-out", str(private))
    run("openssl", "ec", "-in", str(private), "-pubout", "-out", str(public))
    program = str(Path(__file__).with_name("Wrap.java"))
    wrapped = run("java", "-cp", jar, program, str(public), KEY).strip()
    return {"curve": curve, "private": private.read_text(), "key": KEY, "wrapped": wrapped}


def main() -> None:
    about = {
        "made_by": "ECIES of BouncyCastle 1.84 with IESParameterSpec(null, null, 128), as Pulsar's Java client 4.2.4 "
        "asks for it; by ecies_record/record.py",
        "keys": "made for this file alone",
    }
    with TemporaryDirectory() as folder:
        cases = [case(curve, Path(folder), sys.argv[1]) for curve in CURVES]
    print(json.dumps({"about": about, "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
