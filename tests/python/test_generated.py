"""Generated files are what their generator writes now: docs/operators.md, README's table, the extension's stub."""

from __future__ import annotations

import generate_docs


def test_generated_files_are_up_to_date(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("sys.argv", ["generate_docs.py", "--check"])
    assert generate_docs.main() == 0
