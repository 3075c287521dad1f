#!/usr/bin/env python3
"""Runs notebooks from the first cell to the last; a cell that raises fails the notebook. Files are left as they are.

Run as a script it takes all of notebooks/, or those named. Tests call run() on one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
# A cell that builds and verifies a model takes seconds; ten minutes is a hang.
CELL_TIMEOUT_S = 600


def all_notebooks() -> list[Path]:
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def run(path: Path) -> None:
    """Raises nbclient's CellExecutionError, whose text shows the cell and its traceback."""
    import nbformat
    from nbclient import NotebookClient

    # The kernel is another process: it finds the package of this tree as this one does.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]).rstrip(":")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all")
    paths = parser.parse_args().notebooks or all_notebooks()
    failed = 0
    for path in paths:
        start = time.monotonic()
        try:
            run(path)
        except Exception as error:
            failed += 1
            print(f"{path.name}: FAILED\n{error}", flush=True)
        else:
            print(f"{path.name}: ok, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{len(paths) - failed} passed, {failed} failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
