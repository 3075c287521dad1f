"""Sessions share a program's weights: four of them on a network of 100 MB take hardly more memory than one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pinnace as pn
import torch
from torch import Tensor, nn

ROWS, WIDTH = 400_000, 64

# Prints the private memory of the process in KiB before the program, after one session and after four, and the states.
SESSIONS = """
import re, sys
from pathlib import Path
import numpy as np, pinnace as pn

def private():
    return re.search(r"^Pss_Anon:\\s+(\\d+)", Path("/proc/self/smaps_rollup").read_text(), re.M)[1]

x = np.array([[0, 50_000, 399_999]])
wanted = None
print(private())
program = pn.Program.open(sys.argv[1])
sessions = []
for n in range(4):
    sessions.append(pn.Session(program, target="cpu"))
    got = sessions[-1].run({"words": x})["head"]
    assert wanted is None or (got == wanted).all()
    wanted = got
    if n in (0, 3):
        print(private())
print(len(sessions[0].state))
"""


class Words(nn.Module):
    """Writes in place to what an embedding returned, which is no write to the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(ROWS, WIDTH)
        self.head = nn.Linear(WIDTH, 8)

    def forward(self, words: Tensor) -> dict[str, Tensor]:
        return {"head": self.head(self.table(words).relu_())}


def test_four_sessions_take_hardly_more_than_one(tmp_path: Path) -> None:
    path = tmp_path / "words.pnc"
    pn.load(Words().eval(), torch.tensor([[0, 50_000, 399_999]])).build().save(path)
    done = subprocess.run(
        [sys.executable, "-c", SESSIONS, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    before, one, four, states = map(int, re.findall(r"\d+", done.stdout))
    assert states == 0
    table = ROWS * WIDTH * 4 // 1024  # KiB
    assert one - before < 0.1 * table
    assert four - one < 0.02 * table
