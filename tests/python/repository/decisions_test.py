"""docs/decisions/: each page has the same parts, and the index lists every page under its title."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs/decisions"
PAGES = sorted(FOLDER.glob("*/*.md"))


def test_each_page_has_its_parts() -> None:
    assert len(PAGES) > 40
    for page in PAGES:
        text = page.read_text()
        parts = re.findall(r"^\*\*([^*]+)\.\*\*", text, re.M)
        assert {"Context", "Decision"} <= set(parts), page.name
        change = re.search(r"^\*\*What would change it\.\*\* (.*)", text, re.M)  # left out where nothing would
        assert not change or not re.match(r"(Nothing|None|No )", change[1]), f"{page.name}: leave that part out"
        assert len(text.split()) < 500, f"{page.name} is two decisions"


def test_the_index_lists_every_page() -> None:
    titles = {str(page.relative_to(FOLDER)): page.read_text().splitlines()[0].removeprefix("# ") for page in PAGES}
    listed = re.findall(r"^- \[([^\]]+)\]\(([^)]+)\)$", (FOLDER / "README.md").read_text(), re.M)
    assert len(listed) == len(titles)
    assert {name: title for title, name in listed} == titles
