"""One program at one feature level of NNAPI: where its nodes are, and how far its outputs are from the CPU's.

A program, started anew for each level, because the library reads the level that it pretends to have only once:
argument 1 the .pnc file, 2 an .npz with inputs, 3 the level. Writes one JSON object.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def run_at_level(program: Path, inputs: Mapping[str, Any], level: int, folder: Path) -> dict[str, Any]:
    """What main() writes, from a process whose library pretends to have that level and no other."""
    file = folder / "inputs.npz"
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in inputs.items()}
    np.savez(file, **arrays)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]),
        "PINNACE_NNAPI_LEVEL": f"fl{level}",
        "PINNACE_NNAPI_WORK": "any",
    }
    command = [sys.executable, __file__, str(program), str(file), str(level)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1200, check=False)
    if done.returncode != 0:
        raise AssertionError(f"level {level}: ended with {done.returncode}: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main(program: str, inputs_file: str, level: str) -> None:
    import pinnace as pn
    from pinnace.agreement import agreement

    target = f"nnapi:fl{level}"
    inputs = dict(np.load(inputs_file))
    checked = pn.load(program).check(targets=[target]).nodes
    session = pn.Session(program, target=target)
    got = session.run(inputs)
    again = session.run(inputs)
    want = pn.Session(program, target="cpu").run(inputs)
    differences = {}
    for name, value in got.items():
        d = agreement(value, want[name])
        differences[name] = {"largest": d.largest, "relative": d.relative, "why": d.why}
    on_cpu = [row for row in session.placement if row.backend != "nnapi"]
    answer = {
        "supported": [node.node for node in checked if node.supported],
        "on_cpu": [row.node for row in on_cpu],
        "why": Counter(" ".join(row.why) for row in on_cpu),
        "on_nnapi": len(session.placement) - len(on_cpu),
        "differences": differences,
        "repeats": all(np.array_equal(got[name], again[name]) for name in got),
    }
    print(json.dumps(answer, default=float))


if __name__ == "__main__":
    main(*sys.argv[1:])
