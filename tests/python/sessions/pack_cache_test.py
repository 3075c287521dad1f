"""The cache of packed weights from Python: on by default, off by an argument or a variable; and processes at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import nn

WORKER = """
import json, sys
import numpy as np, pinnace as pn
order = json.loads(sys.argv[1])
said = []
for net in order["nets"]:
    session = pn.Session(net, threads=1, **order.get("options", {}))
    y = next(iter(session.run({"input": np.load(order["input"])}).values()))
    said.append([session.plan.constant_bytes, float(np.abs(y).sum()), float(y.ravel()[0])])
    del session
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("nets")
    x = torch.randn(1, 64, 12, 12)
    np.save(folder / "x.npy", x.numpy())
    paths = []
    for k in range(2):
        net = nn.Sequential(nn.Conv2d(64, 256, 3), nn.ReLU(), nn.Conv2d(256, 256, 3)).eval()
        paths.append(str(folder / f"{k}.pnc"))
        pn.load(net, (x,)).build(verify=False).save(paths[-1])
    return paths, str(folder / "x.npy")


def start(cache: Path | str, **order: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "PINNACE_CACHE": str(cache), **order.pop("environment", {})}
    command = [sys.executable, "-c", WORKER, json.dumps(order)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[list[float]]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    said: list[list[float]] = json.loads(out)
    return said


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_second_start_packs_nothing(nets: tuple[list[str], str], tmp_path: Path) -> None:
    files, x = nets
    first = finish(start(tmp_path / "cache", nets=files, input=x))
    assert all(packed > 1 << 20 for packed, *_ in first)
    assert len(entries(tmp_path / "cache")) == 2
    second = finish(start(tmp_path / "cache", nets=files, input=x))
    assert all(packed < 1 << 16 for packed, *_ in second)
    assert [row[1:] for row in second] == [row[1:] for row in first], "bit for bit"


def test_it_can_be_turned_off(nets: tuple[list[str], str], tmp_path: Path) -> None:
    files, x = nets
    cache = tmp_path / "cache"
    finish(start(cache, nets=files, input=x, options={"pack_cache": False}))
    finish(start(cache, nets=files, input=x, environment={"PINNACE_CACHE_MB": "0"}))
    finish(start(cache, nets=files, input=x, environment={"PINNACE_CACHE": ""}))
    assert not cache.exists()
    finish(start(cache, nets=files, input=x))
    (packed, *_), _ = finish(start(cache, nets=files, input=x, options={"pack_cache": False}))
    assert packed > 1 << 20


def test_processes_share_a_folder(nets: tuple[list[str], str], tmp_path: Path) -> None:
    files, x = nets
    cache = tmp_path / "cache"
    running = [start(cache, nets=files[k % 2 :] + files[: k % 2], input=x) for k in range(4)]
    said = [sorted(row[1:] for row in finish(process)) for process in running]
    assert all(rows == said[0] for rows in said)
    names = entries(cache)
    assert len(names) == 2
    assert all(name.startswith("packed-") and name.endswith(".pnc") for name in names)
    assert all(packed < 1 << 16 for packed, *_ in finish(start(cache, nets=files, input=x)))


def test_no_room_costs_time_only(nets: tuple[list[str], str], tmp_path: Path) -> None:
    files, x = nets
    want = finish(start("", nets=files, input=x))
    for folder in ("/proc/no such folder", tmp_path / "file"):
        (tmp_path / "file").write_text("in the way")
        got = finish(start(folder, nets=files, input=x))
        assert [row[1:] for row in got] == [row[1:] for row in want]
