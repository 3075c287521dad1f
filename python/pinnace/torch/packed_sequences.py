"""Packed sequences (pack_padded_sequence) for torch.export. Their batch sizes per step depend on values, which it
cannot trace; within packed_as_padded() recurrent layers compute on the padded sequences, whose shapes are known.

Imports torch only when asked to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

NOTE = "packed sequences are computed as padded ones: what is padded again is as long as what was packed"
# Added to what a sigmoid is of: 1 - sigmoid(80) is 0 in float32, and sigmoid(-80) is 2e-35.
SATURATED = 80.0


class _Lengths:
    """What stands for a PackedSequence's batch_sizes: how long each sequence of a padded batch is."""

    def __init__(self, lengths: torch.Tensor, steps: Any) -> None:
        self.lengths, self.steps = lengths, steps
        self.device = lengths.device

    def __getitem__(self, index: int) -> Any:
        if index != 0:
            raise IndexError("only the first batch size is known while a module is exported")
        return self.lengths.shape[0]

    def size(self, dim: int = 0) -> Any:
        return self.steps


@contextlib.contextmanager
def packed_as_padded(notes: list[str]) -> Iterator[None]:
    """For a block that exports: torch's functions that pack, pad again and run recurrent layers on packed sequences are
    replaced. `data` of a PackedSequence has all steps of all sequences, in this block, the padded ones too.

    They are the process's: to be entered within isolated_inference(), of which one block runs at a time. notes: is told
    once if anything is packed.
    """
    import torch

    functions: Any = torch._VF
    kind: Any = torch.nn.RNNBase
    check = kind.check_forward_args

    def pack(x: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, Any]:
        if NOTE not in notes:
            notes.append(NOTE)
        x = x.transpose(0, 1) if batch_first else x
        return x.flatten(0, 1), _Lengths(lengths, x.shape[0])

    def pad(
        data: torch.Tensor, sizes: Any, batch_first: bool, padding_value: float, total_length: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = data.reshape(sizes.steps, sizes.lengths.shape[0], *data.shape[1:])
        inside = _inside(sizes)
        x = torch.where(inside.reshape(*inside.shape, *[1] * (x.dim() - 2)), x, padding_value)
        if total_length is not sizes.steps:
            rest = x.new_full((total_length - sizes.steps, *x.shape[1:]), padding_value)
            x = torch.cat([x, rest])
        return (x.transpose(0, 1) if batch_first else x), sizes.lengths

    def checked(self: Any, x: Any, hidden: Any, batch_sizes: Any) -> None:
        if not isinstance(batch_sizes, _Lengths):
            check(self, x, hidden, batch_sizes)

    def layer(name: str) -> Callable[..., Any]:
        plain = getattr(functions, name)

        def chosen(x: torch.Tensor, second: Any, *rest: Any) -> Any:
            return _layers(name, x, second, *rest) if isinstance(second, _Lengths) else plain(x, second, *rest)

        return chosen

    made = {name: layer(name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")}
    made |= {"_pack_padded_sequence": pack, "_pad_packed_sequence": pad}
    vars(functions).update(made)
    kind.check_forward_args = checked
    try:
        yield
    finally:
        kind.check_forward_args = check
        for name in made:
            vars(functions).pop(name, None)


def _inside(sizes: Any) -> torch.Tensor:
    """[T, B]: whether a step is one of the sequence."""
    import torch

    inside: torch.Tensor = torch.arange(sizes.steps, device=sizes.device)[:, None] < sizes.lengths
    return inside


def _layers(
    name: str,
    data: torch.Tensor,
    sizes: Any,
    hx: Any,
    weights: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[torch.Tensor, ...]:
    """As torch's function of that name on packed sequences: y [T * B, D * H], h [L * D, B, H], and c for an LSTM,
    of which a projection makes y and h narrower than H.

    Steps behind a sequence's end come after all of its own: what they compute reaches no others. The backward direction
    reads each sequence from its own last step on.
    """
    import torch

    directions, is_lstm = 2 if bidirectional else 1, name == "lstm"
    each = len(weights) // (num_layers * directions)
    x = data.reshape(sizes.steps, sizes.lengths.shape[0], *data.shape[1:])
    step = torch.arange(sizes.steps, device=x.device)[:, None]
    inside, last = _inside(sizes), (sizes.lengths - 1)[None]
    backward = torch.where(inside, last - step, step)

    def steps_of(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return values.gather(0, index[:, :, None].expand(-1, -1, values.shape[-1]))

    final: list[list[torch.Tensor]] = [[], []]
    for layer in range(num_layers):
        made = []
        for direction in range(directions):
            place = layer * directions + direction
            own = list(weights[each * place : each * (place + 1)])
            given = steps_of(x, backward) if direction else x
            initial = [state[place : place + 1] for state in (hx if is_lstm else [hx])]
            y = _one_layer(name, given, initial, own, has_biases)[0]
            final[0].append(steps_of(y, last))
            if is_lstm:
                final[1].append(_last_cell(given, inside, initial, own, has_biases))
            made.append(steps_of(y, backward) if direction else y)
        x = torch.cat(made, -1)
    return (x.flatten(0, 1), *(torch.cat(states) for states in final if states))


def _one_layer(
    name: str, x: torch.Tensor, initial: list[torch.Tensor], weights: list[torch.Tensor], has_biases: bool
) -> Any:
    import torch

    function: Any = getattr(torch._C._VariableFunctions, name)
    state = initial if name == "lstm" else initial[0]
    return function(x, state, weights, has_biases, 1, 0.0, False, False, False)


def _last_cell(
    x: torch.Tensor, inside: torch.Tensor, initial: list[torch.Tensor], weights: list[torch.Tensor], has_biases: bool
) -> torch.Tensor:
    """c [1, B, H] after each sequence's own steps: one more feature closes the input gate and opens the forget gate
    behind them, so that c stays. Where nobody reads c, the layer that computes it is dead code."""
    import torch

    behind = torch.where(inside, 0.0, 1.0).to(x.dtype)[:, :, None]
    hidden = weights[0].shape[0] // 4
    gates = weights[0].new_zeros((4, hidden, 1))
    gates[0], gates[1] = -SATURATED, SATURATED
    wider = torch.cat([weights[0], gates.flatten(0, 1)], 1)
    made: torch.Tensor = _one_layer("lstm", torch.cat([x, behind], -1), initial, [wider, *weights[1:]], has_biases)[2]
    return made


__all__ = ["NOTE", "packed_as_padded"]
