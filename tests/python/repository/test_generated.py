"""Generated files are what their generator writes now: docs/operators.md, docs/imports.md, docs/python_api.md, README's
table, the extension's stub.
"""

from __future__ import annotations

import generate_docs


def test_generated_files_are_up_to_date(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("sys.argv", ["generate_docs.py", "--check"])
    assert generate_docs.main() == 0


def test_the_page_of_imports_lists_what_the_importers_take() -> None:
    """By examples that were converted elsewhere in these tests, and by what the importers refuse."""
    page = generate_docs.imports_page()
    taken, refused = page.split("Refused by name: ")
    for name in ("Conv", "LSTM", "Split", "If"):
        assert f"`{name}`" in taken
    for name in ("`conv2d`", "`topk`", "`nms`", "`cond`", "`view_as_real`"):
        assert name in refused
    assert "RandomNormal" not in taken
    assert "RandomNormal" in refused
    assert "`as_tensors`" not in page
    assert max(len(line) for line in page.splitlines() if not line.startswith("|")) <= 120
