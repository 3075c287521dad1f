"""PyTorch models in double precision, run by torch: exact values beside which rounding in float32 shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from pinnace.arrays import to_numpy
from pinnace.sources.base import Steps, source_errors
from pinnace.sources.rounding import Rounding
from pinnace.sources.torch_tensors import output_tensors
from pinnace.torch.held_buffers import replace_held
from pinnace.torch.isolation import isolated_inference
from pinnace.types import Array

if TYPE_CHECKING:
    import torch

Arguments = Callable[[Sequence[Array]], tuple[tuple[Any, ...], dict[str, Any]]]


class DoubleModule:
    """A module, live or of an exported program, whose floats of all kinds are float64: weights, inputs, and what its
    own code makes or casts to a narrower type.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        arguments: Arguments,
        layers: Callable[[Sequence[Array], set[str], AbstractContextManager[Any]], dict[str, Array]] | None = None,
    ) -> None:
        """make: a copy of the module that may be changed. arguments: a call's, from arrays. layers: inner values of the
        source by name, computed within the mode that is given."""
        import torch

        self._make, self._arguments, self._layers = make, arguments, layers
        self._rounding: Rounding | None = None
        self.description = f"torch {torch.__version__} in float64"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs of one call."""
        return self.run_steps([inputs]).outputs[0]

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """As base.steps_of(). InvalidArgument: torch cannot run it in double precision."""
        with source_errors(self.description), isolated_inference():
            module = self._make()  # without the mode, in which a copied buffer would not fit its own storage
            narrow = [(part._buffers, name) for part in module.modules() for name in part._buffers]
            before = [own[name] for own, name in narrow]
            module.double()
            after = [own[name] for own, name in narrow]
            replace_held(
                module, [(a, b) for a, b in zip(before, after, strict=True) if a is not None and b is not None]
            )
            _widen_attributes(module)
            outputs = []
            with _Default(), _double_mode(self._rounding):
                for inputs in steps:
                    args, kwargs = self._arguments([_wide(x) for x in inputs])
                    outputs.append([to_numpy(t).copy() for t in output_tensors(module(*args, **kwargs))])
            return Steps(outputs, {name: to_numpy(t).copy() for name, t in module.named_buffers()})

    def rounded(self, rounding: Rounding) -> DoubleModule:
        """The module with rounding errors at every operator that rounds."""
        made = DoubleModule(self._make, self._arguments, self._layers)
        made._rounding = rounding
        return made

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values by name, where the source names them."""
        if self._layers is None:
            return {}
        with source_errors(self.description), isolated_inference(), _Default():
            return self._layers([_wide(x) for x in inputs], names, _double_mode())


class _Default:
    """Tensors that code makes without saying of what type are float64 within the block."""

    def __enter__(self) -> None:
        import torch

        self._before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)

    def __exit__(self, *_: object) -> None:
        import torch

        torch.set_default_dtype(self._before)


def _wide(x: Array) -> Array:
    return x.astype(np.float64) if str(x.dtype) in ("float32", "float16", "bfloat16") else x


def _widen_attributes(module: Any) -> None:
    """Tensors that are neither parameters nor buffers."""
    import torch

    for part in module.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor) and value.dtype in _wider():
                setattr(part, name, value.to(_wider()[value.dtype]))


def _wider() -> dict[torch.dtype, torch.dtype]:
    import torch

    return {
        **dict.fromkeys((torch.float32, torch.float16, torch.bfloat16), torch.float64),
        **dict.fromkeys((torch.complex64, torch.complex32), torch.complex128),
    }


def _double_mode(rounding: Rounding | None = None) -> Any:
    """A mode in which every operator computes in double precision, whatever type it is asked for.

    Reinterpretation of bits stays as it is. What has no code for doubles, as quantisation has not, runs on float32.
    rounding: what operators that round are given and give has its errors.
    """
    import torch
    from torch.utils import _python_dispatch, _pytree

    wider = _wider()
    kept = {torch.ops.aten.view.dtype}

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(wider[value.dtype]) if value.dtype in wider else value
        return wider.get(value, value) if isinstance(value, torch.dtype) else value

    def narrow(value: Any) -> Any:
        return value.float() if isinstance(value, torch.Tensor) and value.dtype == torch.float64 else value

    base: Any = _python_dispatch.TorchDispatchMode

    class Double(base):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if "_assert_tensor_metadata" in func.name():
                return None
            if func in kept:
                return func(*args, **kwargs)
            wide_args, wide_kwargs = _pytree.tree_map(widen, (args, kwargs))
            rounds = rounding is not None and _rounds(func)
            if rounding is not None and rounds:
                declared = zip(wide_args, func._schema.arguments, strict=False)
                wide_args = tuple(_rounded_operand(rounding, argument, of) for argument, of in declared)
            try:
                made = _pytree.tree_map(widen, func(*wide_args, **wide_kwargs))
                return _rounded_results(rounding, func, made, wide_args) if rounding is not None and rounds else made
            except (RuntimeError, AssertionError, TypeError):
                narrow_args, narrow_kwargs = _pytree.tree_map(narrow, (args, kwargs))
                return _pytree.tree_map(widen, func(*narrow_args, **narrow_kwargs))

    mode = Double()
    mode.widen = widen  # for weights, whose types conv2d checks before a mode sees it
    return mode


# Operators of ATen that give elements of what they read, compare them or take them to integers, in any overload.
EXACT = {
    "_to_copy", "abs", "amax", "amin", "arange", "argmax", "argmin", "argsort", "bitwise_and", "bitwise_not",
    "bitwise_or", "bucketize", "cat", "ceil", "clamp", "clamp_max", "clamp_min", "clone", "constant_pad_nd", "copy",
    "embedding", "empty", "empty_like", "eq", "equal", "fill", "flip", "floor", "full", "full_like", "gather", "ge",
    "gt", "hardtanh", "index", "index_copy", "index_put", "index_select", "isfinite", "isinf", "isnan", "le",
    "lift_fresh", "lift_fresh_copy", "logical_and", "logical_not", "logical_or", "lt", "masked_fill",
    "masked_scatter", "masked_select", "max", "max_pool1d", "max_pool2d", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_with_indices", "maximum", "min", "minimum", "ne", "neg", "new_empty", "new_full", "new_ones",
    "new_zeros", "nonzero", "one_hot", "ones", "ones_like", "pixel_shuffle", "pixel_unshuffle", "relu", "repeat",
    "repeat_interleave", "replication_pad1d", "replication_pad2d", "roll", "round", "scalar_tensor", "scatter",
    "searchsorted", "sgn", "sign", "slice_scatter", "sort", "stack", "topk", "tril", "triu", "trunc",
    "unique_consecutive", "upsample_nearest1d", "upsample_nearest2d", "where", "zeros", "zeros_like",
}  # fmt: skip


def _rounds(func: Any) -> bool:
    """Whether an operator does: not one that moves or compares, nor one that gives a view."""
    name = func._schema.name.rpartition("::")[2]
    views = any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
    return not views and name not in EXACT and name.removesuffix("_") not in EXACT


def _is_double(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.dtype == torch.float64 and not value.is_quantized


def _rounded_operand(rounding: Rounding, argument: Any, declared: Any) -> Any:
    """A tensor, or a list of them; what the operator writes into is left alone."""
    import torch

    if declared.alias_info is not None:
        return argument
    if isinstance(argument, list | tuple):
        return type(argument)(_rounded_operand(rounding, a, declared) for a in argument)
    if not _is_double(argument):
        return argument
    plain = argument.detach().numpy()
    changed = rounding.operand(plain)
    return argument if changed is plain else torch.from_numpy(changed)


def _rounded_results(rounding: Rounding, func: Any, made: Any, arguments: Any) -> Any:
    """What is no other name of an argument."""
    import torch
    from torch.utils import _pytree

    if any(r.alias_info is not None for r in func._schema.returns):
        return made
    operands = [t.detach().numpy() for t in _pytree.tree_flatten(arguments)[0] if _is_double(t)]

    def rounded(value: Any) -> Any:
        if not _is_double(value):
            return value
        plain = value.detach().numpy()
        changed = rounding.result(plain, operands)
        return value if changed is plain else torch.from_numpy(changed)

    return _pytree.tree_map(rounded, made)


__all__ = ["DoubleModule"]
