"""Compiles proto/*.proto into the descriptor sets of mqclient/_schema; --check only says if they are up to date."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
SCHEMA = ROOT / "mqclient" / "_schema"


def compiler() -> list[str]:
    """grpcio-tools' protoc if it is installed here, else one on the path."""
    if importlib.util.find_spec("grpc_tools") is not None:
        return [sys.executable, "-m", "grpc_tools.protoc"]
    found = shutil.which("protoc")
    if found is None:
        sys.exit("gen_schema needs a protoc: pip install grpcio-tools")
    return [found]


def compiled(source: Path) -> bytes:
    """The descriptor set of one file without positions, in one canonical form whatever compiled it."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set.binpb"
        command = [*compiler(), f"-I{PROTO}", "--include_imports", f"--descriptor_set_out={target}", source.name]
        subprocess.run(command, check=True, cwd=PROTO)
        found = FileDescriptorSet.FromString(target.read_bytes())
    return found.SerializeToString(deterministic=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a set is not what its text says")
    check = parser.parse_args().check
    stale = 0
    for source in sorted(PROTO.glob("*.proto")):
        target = SCHEMA / f"{source.stem}.binpb"
        data = compiled(source)
        if target.exists() and target.read_bytes() == data:
            continue
        stale += 1
        if check:
            print(f"{target.relative_to(ROOT)} is not what {source.name} says: run .ci/gen_schema.py")
        else:
            target.write_bytes(data)
            print(f"wrote {target.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
