"""Makes docs/demo.svg, the README's picture, from a real run of `make demo` in a terminal (needs tmux and rich)."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
SESSION = "mqclient-demo-picture"
WIDTH, HEIGHT = 112, 40
PERMITS_ARE_SHOWN = "subscription ledger"


def tmux(*words: str) -> str:
    return subprocess.run(["tmux", *words], check=True, capture_output=True, text=True).stdout


def main() -> None:
    command = f"cd {ROOT} && TERM=xterm-256color {sys.executable} -m mqclient.cli demo; sleep 60"
    tmux("new-session", "-d", "-s", SESSION, "-x", str(WIDTH), "-y", str(HEIGHT), command)
    try:
        end = time.monotonic() + 60
        while PERMITS_ARE_SHOWN not in tmux("capture-pane", "-t", SESSION, "-p"):
            if time.monotonic() > end:
                sys.exit("the demo did not come to its Pulsar part")
            time.sleep(0.2)
        time.sleep(2.5)
        screen = tmux("capture-pane", "-t", SESSION, "-p", "-e").strip("\n")
    finally:
        tmux("kill-session", "-t", SESSION)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(screen))
    svg = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="make demo"), flags=re.DOTALL)  # fetch no fonts
    (ROOT / "docs" / "demo.svg").write_text(svg)


if __name__ == "__main__":
    main()
