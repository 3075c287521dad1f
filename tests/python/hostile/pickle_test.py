"""Programs, sessions and comparisons are pickled and copied, and damaged pickles are refused by typed errors."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
from pinnace.session import session_from_pickle

GRAPH = """graph "g" {
  symbol n 1..8
  input %x : f32[n, 2]
  state "sum" %before : f32[2] next %after = {0, 0}
  const %axes : i64[1] = {0}
  %part : f32[2] = reduce_sum(%x, %axes) {keepdims=0}
  %after : f32[2] = add(%before, %part)
  output "y" %after
}"""


@pytest.fixture(scope="module")
def program() -> pn.Program:
    """A running sum over the rows of all inputs so far."""
    return pn.Program(pn._core.Model.parse(GRAPH, [], False, []).build(["cpu"]))


def rows(count: int) -> dict[str, Any]:
    return {"x": np.ones((count, 2), np.float32)}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_program_is_pickled_as_its_bytes(program: pn.Program, protocol: int) -> None:
    data = pickle.dumps(program, protocol)
    assert program.to_bytes() in data or protocol < 3, "protocols before 3 spell bytes as text"
    again = pickle.loads(data)
    assert again.to_bytes() == program.to_bytes()
    assert pn.Session(again, "cpu").run(rows(3))["y"].tolist() == [3, 3]


def test_the_bytes_may_travel_outside_of_the_pickle(program: pn.Program) -> None:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(program, 5, buffer_callback=buffers.append)
    assert len(data) < 200
    assert bytes(buffers[0]) == program.to_bytes()
    assert pickle.loads(data, buffers=[bytearray(buffers[0])]).to_bytes() == program.to_bytes()


def test_a_program_of_a_file_is_pickled_with_its_weights(program: pn.Program, tmp_path: Path) -> None:
    program.save(tmp_path / "sum.pnc")
    data = pickle.dumps(pn.Program.open(tmp_path / "sum.pnc", on_use=True))
    (tmp_path / "sum.pnc").unlink()
    assert pickle.loads(data).to_bytes() == program.to_bytes()


def test_copies_of_a_program_are_itself(program: pn.Program) -> None:
    assert copy.copy(program) is program
    assert copy.deepcopy({"a": program})["a"] is program


def test_every_damaged_byte_of_a_program_is_refused(program: pn.Program, rng: np.random.Generator) -> None:
    data, plain = pickle.dumps(program), program.to_bytes()
    start = data.index(plain)
    for at in (0, 8, len(plain) - 1, *rng.integers(0, len(plain), 20).tolist()):
        damaged = bytearray(data)
        damaged[start + at] ^= 1 << int(rng.integers(0, 8))
        with pytest.raises((pn.CorruptFile, pn.Unsupported)):  # Unsupported: a version that this build does not know
            pickle.loads(bytes(damaged))
    damaged = bytearray(data)
    damaged[start + len(plain) // 2] ^= 1
    with pytest.raises(pn.CorruptFile) as caught:
        pickle.loads(bytes(damaged))
    assert caught.value.rule.startswith("F-")


@pytest.mark.parametrize("content", ["text", None, 7, [1, 2]])
def test_a_program_that_holds_no_bytes_is_refused(program: pn.Program, content: object) -> None:
    make, _ = program.__reduce_ex__(2)
    with pytest.raises(pn.CorruptFile, match=r"not the bytes of a \.pnc file"):
        make(content)


def test_a_session_is_pickled_with_arguments_and_states(program: pn.Program) -> None:
    session = pn.Session(program, ["cpu"], 1, "fp32", False, keep=["part"], plan_cache=3)
    session.run(rows(2))
    again = pickle.loads(pickle.dumps(session))
    assert (again.target, again.threads, again.precision, again.fallback, again.plan_cache) == (
        "cpu",
        1,
        "fp32",
        False,
        3,
    )
    assert list(again.outputs) == list(session.outputs)
    assert again.state["sum"].tolist() == [2, 2]
    assert again.run(rows(3))["y"].tolist() == [5, 5]
    assert session.state["sum"].tolist() == [2, 2], "the first one is untouched"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_of_a_session_go_ways_of_their_own(program: pn.Program, duplicate: Any) -> None:
    session = pn.Session(program, "cpu")
    session.run(rows(2))
    again = duplicate(session)
    assert again.program is program
    again.run(rows(1))
    assert (session.state["sum"].tolist(), again.state["sum"].tolist()) == ([2, 2], [3, 3])


def test_damaged_sessions_are_refused(program: pn.Program) -> None:
    _, (_, arguments, states) = pn.Session(program, "cpu").__reduce__()
    wrong: list[tuple[Any, Any, Any]] = [
        (b"", arguments, states),
        (program, [], states),
        (program, arguments, None),
        (program, {**arguments, "colour": "red"}, states),
        (program, arguments, {}),
        (program, arguments, {**states, "other": states["sum"]}),
        (program, arguments, {"sum": np.zeros(3, np.float32)}),
        (program, arguments, {"sum": np.zeros(2, np.float64)}),
        (program, arguments, {"sum": "text"}),
    ]
    for parts in wrong:
        with pytest.raises(pn.CorruptFile, match="pickle of a Session"):
            session_from_pickle(*parts)
    with pytest.raises(pn.InvalidArgument):
        session_from_pickle(program, {**arguments, "target": "abacus"}, states)
    data = pickle.dumps(pn.Session(program, "cpu"))
    damaged = bytearray(data)
    damaged[data.index(program.to_bytes()) + 100] ^= 1
    with pytest.raises(pn.CorruptFile):
        pickle.loads(bytes(damaged))


def test_a_comparison_is_pickled_as_plain_data(program: pn.Program) -> None:
    comparison = pn.compare(program, program, [rows(2), rows(3)])
    assert comparison.graph is not None
    for again in (pickle.loads(pickle.dumps(comparison)), copy.deepcopy(comparison), copy.copy(comparison)):
        assert again == comparison
        assert (again.to_json(), again.to_html()) == (comparison.to_json(), comparison.to_html())
    assert b"_core" not in pickle.dumps(comparison), "nothing of the extension"
