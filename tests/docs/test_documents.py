"""What documents show is run: their sessions give what they say, and the links between files lead somewhere."""

from __future__ import annotations

import doctest
import re

import pytest

from tests.support.tree import ROOT, files, nothing, text

DOCUMENTS = [path for path in files("*.md") if path == "README.md" or path.startswith("docs/")]
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if ">>> " in text(path)])
def test_sessions_in_documents_tell_the_truth(path: str) -> None:
    session = doctest.DocTestParser().get_doctest(text(path).replace("```", ""), {}, path, path, 0)
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session)
    assert result.attempted > 0
    assert result.failed == 0


def test_links_between_documents_lead_somewhere() -> None:
    found = ((path, link) for path in DOCUMENTS for link in LINK.findall(text(path)))
    nothing(f"{path} -> {link}" for path, link in found if not (ROOT / path).parent.joinpath(link).exists())


def test_the_commands_of_the_readme_exist() -> None:
    named = set(re.findall(r"\bmake (\w+)", text("README.md")))
    known = set(re.findall(r"^(\w+):", text("Makefile"), re.MULTILINE))
    assert named
    nothing(sorted(named - known))
