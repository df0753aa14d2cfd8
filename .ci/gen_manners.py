"""Prints docs/manners.md: where RocketMQ and Pulsar are not used alike, and why. `--check`: only says if it is old."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs" / "manners.md"
HEAD = """# Same manners

Where a verb means the same in RocketMQ and in Pulsar it has the same name, argument order, timeout and error behaviour:
`send`, `send_many`, `submit`, `flush`, `receive`, `receive_many`, `ack`, `close`, context managers, `diagnose`; `body`,
`properties`, `topic`, `message_id` of a message; `.ok` of an outcome. `tests/conformance` runs one scenario in both, on
the embedded broker and on real ones. What differs, differs for a reason (this page is printed from the tests):

| Verb | RocketMQ | Pulsar | Why |
|---|---|---|---|
"""
TAIL = """
Also:

"""


def page() -> str:
    from tests.conformance.differences import MANNERS, SIGNATURES
    from tests.conformance.signatures import differences

    rows = [f"| `{one.verb}` | `{one.rocketmq}` | `{one.pulsar}` | {SIGNATURES[one.verb]} |" for one in differences()]
    return (
        HEAD
        + "\n".join(rows)
        + "\n"
        + TAIL
        + "\n".join(f"- **{what}:** {why}." for what, why in MANNERS.items())
        + "\n"
    )


def main() -> int:
    found = page()
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != found:
            print(f"{PAGE.relative_to(ROOT)} is old: run python .ci/gen_manners.py")
            return 1
        return 0
    PAGE.write_text(found, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
