"""Every notebook runs to its end: one of them in a short run, all in a full one, which measures how long one waits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import run_notebooks
from slices import all_mode, rotating_slice

MOST_SECONDS = 180


@pytest.mark.parametrize("path", rotating_slice(run_notebooks.all_notebooks(), 0.25, "notebooks"), ids=lambda p: p.name)
def test_notebook_runs(path: Path) -> None:
    start = time.monotonic()
    run_notebooks.run(path)
    if all_mode():
        assert time.monotonic() - start < MOST_SECONDS


def test_failing_cell_is_an_error(tmp_path: Path) -> None:
    import nbformat

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("value = 1\nassert value == 2, 'it is not'")])
    nbformat.write(book, tmp_path / "a.ipynb")
    with pytest.raises(Exception, match="it is not"):
        run_notebooks.run(tmp_path / "a.ipynb")
