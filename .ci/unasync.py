"""Writes the sync faces, and their tests, from the asyncio ones; `--check` only compares.

Tokens decide, so strings and comments are never hit by accident: `async` and `await` go, the names of NAMES change
and `aio_x` is `sync_x`, `Awaitable[T]` and `Opening[T]` become T, `Opening(x)` x. Docstrings follow DOCS, import lines
IMPORTS; a line that ends in `# unasync: drop` goes. The drivers of `mqclient/io` are no faces.
A rule that hits nothing in any source is an error: it would only confuse the next reader.
"""

from __future__ import annotations

import difflib
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAIRS = {
    "mqclient/rocketmq/**/aio*.py": ("/aio", "/sync"),
    "mqclient/pulsar/**/aio*.py": ("/aio", "/sync"),
    "tests/api/async_/**/*.py": ("/async_/", "/sync/"),
}
DROPPED = ("async", "await")
UNWRAPPED = {"Awaitable": "[", "Opening": "[("}
"""Names that go with the brackets behind them."""
MARK = "# unasync: drop"
NAMES = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "StopAsyncIteration": "StopIteration",
    "AsyncIterator": "Iterator",
    "AsyncDriver": "SyncDriver",
    "AsyncioDriver": "ThreadsDriver",
    "aio": "sync",
}
IMPORTS = {"mqclient.io.aio": "mqclient.io.threads"}
DOCS = {"async with ": "with ", "async for ": "for ", "await ": "", "asyncio": "sync", ".aio": ".sync"}


class Rules:
    """The tables above, and which of their entries were of use."""

    def __init__(self, names: dict[str, str], imports: dict[str, str], docs: dict[str, str]) -> None:
        self.names, self.imports, self.docs = names, imports, docs
        self.unused = {*names, *imports, *docs}

    def name(self, text: str) -> str:
        self.unused.discard(text)
        return f"sync_{text[4:]}" if text.startswith("aio_") else self.names.get(text, text)

    def replace(self, text: str, table: dict[str, str]) -> str:
        for old, new in table.items():
            if old in text:
                self.unused.discard(old)
                text = text.replace(old, new)
        return text


def convert(source: str, rules: Rules) -> str:
    """The sync text of an asyncio one; whatever no rule names stays as it is, to the blank."""
    lines = [line for line in source.splitlines(keepends=True) if not line.rstrip().endswith(MARK)]
    text = "".join(
        rules.replace(line, rules.imports) if line.startswith(("from ", "import ")) else line for line in lines
    )
    return "".join(pieces(text, rules))


def pieces(text: str, rules: Rules) -> Iterator[str]:
    """What stays of each token, with the blanks in front of it; blanks behind a dropped word go with it."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()]
    wrappers: list[int] = []  # for each open bracket: 1 if it belongs to an unwrapped name
    end, glue = 0, False
    for index, token in enumerate(tokens):
        start = starts[token.start[0] - 1] + token.start[1]
        gap, end = text[end:start], starts[token.end[0] - 1] + token.end[1]
        before = "" if glue else gap
        glue = False
        following = tokens[index + 1].string if index + 1 < len(tokens) else ""
        word = text[start:end]
        if token.type == tokenize.NAME and word in DROPPED:
            yield before
            glue = True
        elif token.type == tokenize.NAME and following and following in UNWRAPPED.get(word, ""):
            yield before
        elif word == "[":
            wrapped = index > 0 and "[" in UNWRAPPED.get(tokens[index - 1].string, "")
            wrappers.append(wrapped)
            yield before if wrapped else before + word
        elif word == "]":
            yield before if wrappers.pop() else before + word
        elif token.type == tokenize.NAME:
            yield before + rules.name(word)
        elif token.type == tokenize.STRING and word.endswith('"""'):
            yield before + rules.replace(word, rules.docs)
        else:
            yield before + word
    yield text[end:]


def tidy(text: str, name: str) -> str:
    """Shorter lines fit differently, and new names sort differently: the formatter has the last word."""
    for command in (["check", "-q", "--select", "I,F401", "--fix", "--exit-zero"], ["format", "-q"]):
        line = [sys.executable, "-m", "ruff", *command, "--stdin-filename", name, "-"]
        text = subprocess.run(line, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def settle(path: Path, wanted: str, check: bool) -> bool:
    """Whether the file is, or with `check` was already, what is wanted; what changes is told."""
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    name = path.relative_to(ROOT).as_posix()
    if wanted == found:
        return True
    if check:
        sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), name, "new"))
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(wanted, encoding="utf-8")
    print(f"wrote {name}")
    return True


def main(arguments: list[str]) -> int:
    rules, failed, sources = Rules(NAMES, IMPORTS, DOCS), 0, 0
    for pattern, (old, new) in PAIRS.items():
        for source in sorted(set(ROOT.glob(pattern)) - set(ROOT.glob("mqclient/io/*.py"))):
            sources += 1
            path = source.relative_to(ROOT).as_posix()
            target = ROOT / f"/{path}".replace(old, new).lstrip("/")
            head = f"# Generated by .ci/unasync.py from {path}: change it there.\n"
            wanted = tidy(head + convert(source.read_text(encoding="utf-8"), rules), target.name)
            failed |= not settle(target, wanted, "--check" in arguments)
    if sources and rules.unused:
        print(f"rules that hit nothing: {', '.join(sorted(rules.unused))}")
        failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
