"""Recurrent layers on packed sequences: exported on padded ones, with the outputs and states of packed ones."""

from __future__ import annotations

from typing import Any

import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from pinnace.torch.packed_sequences import NOTE
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Packed(nn.Module):
    def __init__(self, layer: nn.Module, batch_first: bool, is_sorted: bool, given: bool = False) -> None:
        super().__init__()
        self.layer = layer
        self.batch_first = batch_first
        self.is_sorted = is_sorted
        self.given = given

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=self.batch_first, enforce_sorted=self.is_sorted)
        hx = None
        if self.given:
            size = (2, x.shape[0 if self.batch_first else 1], 5)
            hx = (torch.full(size, 0.3), torch.full(size, -0.7))
        made, state = self.layer(packed, hx)
        y, again = pad_packed_sequence(made, batch_first=self.batch_first, padding_value=-2.0)
        return y, again, state


LAYERS: dict[str, nn.Module] = {
    "lstm": nn.LSTM(4, 5, batch_first=True),
    "lstm, both directions": nn.LSTM(4, 5, bidirectional=True, batch_first=True),
    "lstm, two layers, both directions": nn.LSTM(4, 5, num_layers=2, bidirectional=True, bias=False, batch_first=True),
    "lstm with a projection": nn.LSTM(4, 5, proj_size=2, batch_first=True),
    "lstm with a projection, two layers, both directions": nn.LSTM(
        4, 5, num_layers=2, bidirectional=True, proj_size=3, bias=False, batch_first=True
    ),
    "gru": nn.GRU(4, 5, batch_first=True),
    "gru, two layers, both directions": nn.GRU(4, 5, num_layers=2, bidirectional=True, batch_first=True),
    "rnn, both directions": nn.RNN(4, 5, bidirectional=True, batch_first=True),
    "rnn of relu": nn.RNN(4, 5, nonlinearity="relu", batch_first=True),
}


def hold(module: nn.Module, session: pn.Session, x: Tensor, lengths: Tensor) -> None:
    with torch.no_grad():
        wanted = torch.utils._pytree.tree_leaves(module(x, lengths))
    got = session.run({"x": x, "lengths": lengths})
    assert len(got) == len(wanted)
    for value, want in zip(got.values(), wanted, strict=True):
        assert_agree(value, want.numpy())


@pytest.mark.parametrize("name", LAYERS)
def test_outputs_and_states_are_those_of_packed_sequences(name: str) -> None:
    torch.manual_seed(0)
    module = Packed(LAYERS[name], batch_first=True, is_sorted=False).eval()
    lengths = torch.tensor([4, 7, 1])
    model = pn.load(module, (torch.randn(3, 7, 4), lengths))
    assert model.notes == [NOTE]
    session = pn.Session(model.build(), target="cpu")
    hold(module, session, torch.randn(3, 7, 4), lengths)
    hold(module, session, torch.randn(3, 7, 4), torch.tensor([7, 2, 3]))


def test_sorted_with_time_first_and_states_that_are_given() -> None:
    torch.manual_seed(0)
    module = Packed(nn.LSTM(4, 5, bidirectional=True), batch_first=False, is_sorted=True, given=True).eval()
    session = pn.Session(pn.load(module, (torch.randn(7, 3, 4), torch.tensor([7, 4, 2]))).build(), target="cpu")
    hold(module, session, torch.randn(7, 3, 4), torch.tensor([7, 7, 1]))


@pytest.mark.parametrize("name", ["lstm, both directions", "gru"])
def test_a_dynamic_batch(name: str) -> None:
    torch.manual_seed(0)
    module = Packed(LAYERS[name], batch_first=True, is_sorted=False).eval()
    example = (torch.randn(3, 7, 4), torch.tensor([4, 7, 1]))
    program = pn.load(module, example, {"x": {0: "batch"}, "lengths": {0: "batch"}}).build(verify=False)
    session = pn.Session(program, target="cpu")
    hold(module, session, torch.randn(5, 7, 4), torch.tensor([4, 7, 1, 2, 6]))


def test_nodes_have_the_lines_of_the_module() -> None:
    module = Packed(LAYERS["lstm"], batch_first=True, is_sorted=False).eval()
    model = pn.load(module, (torch.randn(3, 7, 4), torch.tensor([4, 7, 1])))
    sources = {str(node.source) for node in model.build(verify=False).nodes}
    assert not any("packed_sequences.py" in source for source in sources)
    assert any("packed_sequences_test.py" in source for source in sources)


def test_torchs_functions_are_its_own_again() -> None:
    functions: Any = torch._VF
    before = (set(vars(functions)), nn.RNNBase.check_forward_args)
    pn.load(Packed(LAYERS["gru"], True, False).eval(), (torch.randn(3, 7, 4), torch.tensor([4, 7, 1])))
    assert (set(vars(functions)), nn.RNNBase.check_forward_args) == before
