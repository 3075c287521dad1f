"""docs/finding_things.md: every link leads to a file, in which each name given behind the link stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/finding_things.md"


def answers(page: str) -> list[str]:
    """The items of the page's lists, and the paragraphs before them."""
    return [" ".join(part.split()) for part in re.split(r"^(?=- )|\n\n", page, flags=re.M) if "](" in part]


def wrong(page: str, folder: Path) -> list[str]:
    """Links that lead nowhere, and names that do not stand in the file that was linked before them.

    A name counts for a link if nothing but spaces stands between them. It has to stand there as a whole: a part of a
    longer name does not count.
    """
    found = []
    for answer in answers(page):
        for match in re.finditer(r"\[([^\]]+)\]\(([^)]+)\)((?: `[^`]+`)*)", answer):
            path = folder / match[2].partition("#")[0]
            if not path.is_file():
                found.append(f"{match[2]} is not there")
                continue
            content = path.read_text()
            for name in re.findall(r"`([^`]+)`", match[3]):
                if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", content):
                    found.append(f"{match[2]} has no {name}")
    return found


def test_every_link_leads_to_what_it_names() -> None:
    page = PAGE.read_text()
    assert not wrong(page, PAGE.parent)
    # Every answer names something to look for.
    for answer in answers(page):
        assert re.search(r"\]\([^)]+\) `", answer), answer
    assert len(answers(page)) > 25


def test_the_readme_leads_here() -> None:
    assert "](docs/finding_things.md)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- A: [a](a.cc) `one`, [a](a.cc) `two`.", []),
        ("- A: [b](b.cc) `one`", ["b.cc is not there"]),
        ("- A: [a](a.cc) `one` `three`", ["a.cc has no three"]),
        ("- A: [a](a.cc) is not `three`", []),
        ("- A: [a](a.cc) `wo` `on`", ["a.cc has no wo", "a.cc has no on"]),
    ],
)
def test_the_check_sees(text: str, says: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text("one two\n")
    assert wrong(text, tmp_path) == says
