"""Session(fallback=False): nodes run on targets that were asked for, or the session is refused with every one that
would not, each once, as check() counts them."""

from __future__ import annotations

import numpy as np
import pinnace as pn
import pytest
from pinnace import _core

TEXT = """graph "g" {
  input %x : f32[4,8]
  const %axis : i64[] = {1}
  const %wide : f64[8] = {1,2,3,4,5,6,7,8}
  %a : f32[4,8] = relu(%x)
  %b : f32[4,8] = cum_sum(%a, %axis)
  %c : f64[4,8] = cast(%b) {to="f64"}
  %d : f64[4,8] = mul(%c, %wide)
  %e : f32[4,8] = cast(%d) {to="f32"}
  %y : f32[4,8] = sigmoid(%e)
  output "y" %y
}"""


@pytest.fixture(scope="module")
def program() -> pn.Program:
    return pn.Program(_core.Model.parse(TEXT, ["all"]).build(["cpu"]))


def refused(program: pn.Program, *targets: str) -> set[str]:
    """Nodes that none of the targets takes, as check() has it."""
    report = pn.load(program.to_bytes()).check(targets)
    rows = [{row.node for row in report.refused() if row.target == target} for target in targets]
    return set.intersection(*rows)


def test_a_target_that_was_asked_for_is_no_fallback(program: pn.Program) -> None:
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    want = pn.Session(program, "cpu").run({"x": x})["y"]
    assert refused(program, "nnapi:27")
    for target in ("nnapi:27,cpu", ["nnapi:27", "softmetal", "cpu"]):
        session = pn.Session(program, target, fallback=False)
        np.testing.assert_allclose(session.run({"x": x})["y"], want, rtol=1e-5)
        assert len({row.backend for row in session.placement}) > 1


@pytest.mark.parametrize("targets", [("nnapi:27",), ("softmetal",), ("nnapi:27", "softmetal"), ("softmetal", "nnapi")])
def test_each_node_is_refused_once(program: pn.Program, targets: tuple[str, ...]) -> None:
    names = refused(program, *targets)
    assert names
    with pytest.raises(pn.Unsupported) as refusal:
        pn.Session(program, ",".join(targets), fallback=False)
    assert {problem.node for problem in refusal.value.nodes} == names
    assert len(refusal.value.nodes) == len(names)
    asked = " or ".join(target.partition(":")[0] for target in targets)
    assert str(refusal.value).startswith(
        f"{len(names)} of {len(program.nodes)} nodes cannot run on {asked} and fallback"
    )
    for target in targets:
        assert f"{target.partition(':')[0]} does not take" in refusal.value.nodes[0].rule
