"""Operators that the importer does not know: decomposed by torch, alone, and reported; or refused, all in one error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import Tensor, nn


class Unmapped(nn.Module):
    """aten.trapezoid has no mapping and a decomposition; hardswish has both."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.hardswish(self.fc(x)) * torch.trapezoid(x)[:, None]


def test_only_the_unknown_operator_is_decomposed_and_reported() -> None:
    torch.manual_seed(0)
    module, x = Unmapped().eval(), torch.randn(7, 5)
    model = pn.load(module, (x,))
    assert model.notes == ["decomposed by torch: aten.trapezoid.dx"]
    ops = [node.op for node in model.nodes]
    assert "hard_swish" in ops or any(node.op == "gemm" for node in model.nodes), ops
    # Taken apart with everything else, hardswish would be five nodes; it is one, or inside the product before it.
    assert not {"clip", "hard_sigmoid"} & set(ops), ops
    session = pn.Session(model.build(), target="cpu")
    with torch.no_grad():
        want = module(x)
    got = next(iter(session.run({"x": x.numpy()}).values()))
    torch.testing.assert_close(torch.from_numpy(np.array(got)), want)


def test_a_saved_archive_is_decomposed_too(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(Unmapped().eval(), (torch.randn(7, 5),)), path)
    assert pn.load(str(path)).notes == ["decomposed by torch: aten.trapezoid.dx"]


class Experts(nn.Module):
    """Rows sorted by expert, as mixtures of experts have them before grouped_mm."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 8, 16).bfloat16())  # the only type that torch exports it with

    def forward(self, x: Tensor, which: Tensor) -> Tensor:
        ordered, order = torch.sort(which)
        counts = torch.histc(ordered.float(), bins=4, min=0, max=3)
        offs = counts.cumsum(0, dtype=torch.int32)
        return nn.functional.grouped_mm(x[order].bfloat16(), self.weight, offs=offs).float()


def test_experts_compute_all_rows_and_their_own_are_chosen() -> None:
    torch.manual_seed(0)
    module, x = Experts().eval(), torch.randn(7, 8)
    model = pn.load(module, (x, torch.tensor([3, 0, 3, 1, 0, 3, 1])))
    (note,) = model.notes
    assert note.startswith("a mixture of experts (aten._grouped_mm.default): each expert computes all rows")
    session = pn.Session(model.build(), target="cpu")
    for which in ([3, 0, 3, 1, 0, 3, 1], [2] * 7, [0, 1, 2, 3, 3, 2, 1]):
        with torch.no_grad():
            want = module(x, torch.tensor(which))
        got = next(iter(session.run({"x": x, "which": torch.tensor(which)}).values()))
        torch.testing.assert_close(torch.from_numpy(np.array(got)), want, rtol=1e-2, atol=1e-2)


class Histogram(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.histc(x, bins=7, min=-1, max=2), torch.histc(x.nan_to_num(0, 3, -3), bins=5)


def test_a_histogram_counts_an_edge_in_the_bin_that_torch_does() -> None:
    edges = torch.linspace(-1, 2, 8)
    x = torch.cat([edges, edges.nextafter(torch.tensor(9.0)), edges.nextafter(torch.tensor(-9.0)), torch.randn(40)])
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 2.0, -1.0]).repeat(13)[:64]
    session = pn.Session(pn.load(Histogram(), x).build(), target="cpu")
    for value in (x, x * 0.999, special, torch.full((64,), 0.7)):
        for got, want in zip(session.run({"x": value}).values(), Histogram()(value), strict=True):
            assert np.array_equal(got, want.numpy())


class Beyond(nn.Module):
    def forward(self, x: Tensor) -> Any:
        q = torch.geqrf(x)[0]  # the first one without a decomposition
        values = nn.functional.rrelu(x, training=True)  # the second one, after a decomposition
        return torch.trapezoid(x) @ q + values + torch.special.bessel_j0(x)  # the third one


def test_what_cannot_be_decomposed_is_refused_in_one_error() -> None:
    with pytest.raises(pn.ConversionError) as caught:
        pn.load(Beyond(), (torch.randn(4, 4),))
    found = {problem.op: problem for problem in caught.value.nodes}
    assert set(found) == {
        "aten.geqrf.default",
        "aten.rrelu_with_noise_functional.default",
        "aten.special_bessel_j0.default",
    }
    lines = Path(__file__).read_text().splitlines()
    for op, text in (("geqrf", "the first one"), ("rrelu", "the second one"), ("bessel_j0", "the third one")):
        problem = next(p for name, p in found.items() if op in name)
        line = next(i for i, content in enumerate(lines, 1) if text in content)
        assert problem.source == f"{__file__}:{line}"
        assert problem.rule == "operator not mapped"
        assert f"aten.{'special_' if 'bessel' in op else ''}{op}" in str(caught.value)
