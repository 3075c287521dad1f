"""Weights packed for instruction sets, from Python: what build(targets=...) stores, what is used, what others say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import nn

X = torch.linspace(-1, 1, 16 * 20 * 20).reshape(1, 16, 20, 20)


@pytest.fixture(scope="module")
def model() -> pn.Model:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 8, 1), nn.Flatten(), nn.Linear(3200, 6)
    )
    return pn.load(net.eval(), (X,))


def run(session: pn.Session) -> np.ndarray[Any, Any]:
    (y,) = session.run({"input": X.numpy()}).values()
    return y


def test_an_instruction_set_is_stored_and_used(model: pn.Model, tmp_path: Path) -> None:
    program = model.build(targets=["cpu:sse2"])
    assert [p.target for p in program.payloads] == ["cpu:sse2"] * 3
    assert program.metadata["targets"] == "cpu:sse2"
    program.save(tmp_path / "net.pnc")
    session = pn.Session(tmp_path / "net.pnc", target="cpu:sse2", require_payload=True)
    assert session.plan.constant_bytes == 0
    assert {row.notice for row in session.placement} == {""}
    plain = pn.Session(model.build(), target="cpu:sse2")
    assert plain.plan.constant_bytes > 0
    assert np.array_equal(run(session), run(plain))


def test_a_target_without_an_instruction_set_stores_nothing(model: pn.Model) -> None:
    assert model.build(targets=["cpu"], verify=False).payloads == []


def test_instruction_sets_that_this_machine_may_lack_are_stored_and_unknown_ones_refused(model: pn.Model) -> None:
    program = model.build(targets=["cpu:avx512_vnni", "cpu:neon_dotprod"])
    assert {p.target for p in program.payloads} == {"cpu:avx512_vnni", "cpu:neon_dotprod"}
    assert program.metadata["verified.cpu:neon_dotprod"].startswith("no: ")
    with pytest.raises(pn.Unsupported, match="not an instruction set of x86-64"):
        pn.Session(program, target="cpu:neon_dotprod")
    with pytest.raises(pn.InvalidArgument, match="no instruction set known here"):
        model.build(targets=["cpu:mmx"])


def test_packed_for_another_instruction_set_is_a_notice_or_an_error(model: pn.Model) -> None:
    program = model.build(targets=["cpu:avx512_vnni"], verify=False)
    session = pn.Session(program, target="cpu:sse2")
    rows = [row for row in session.placement if row.op in ("conv", "gemm")]
    assert {row.notice for row in rows} == {
        "packed at load: the file has weights packed for cpu:avx512_vnni, this runs as cpu:sse2"
    }
    with pytest.raises(pn.Unsupported, match="a payload is required, and the file has no packed weights for cpu:sse2"):
        pn.Session(program, target="cpu:sse2", require_payload=True)


def test_damage_is_found_by_those_who_read_it(model: pn.Model, tmp_path: Path) -> None:
    path = tmp_path / "net.pnc"
    for targets in (["cpu"], ["cpu:sse2"]):
        program = model.build(targets=targets, verify=False)
        data = bytearray(program.to_bytes())
        data[len(data) // 2] ^= 1  # of weights, or of a payload
        path.write_bytes(data)
        with pytest.raises(pn.CorruptFile):
            pn.Program.open(path)
        with pytest.raises(pn.CorruptFile) as caught:
            pn.Session(path, target="cpu:sse2")
        assert caught.value.rule == ("F-50" if targets == ["cpu"] else "F-13")
        assert pn.Program.open(path, verify_hashes=False).inputs
