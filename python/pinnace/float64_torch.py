"""PyTorch models in double precision, run by torch: exact values beside which rounding in float32 shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pinnace.source import Steps, _named, _tensors, _to_numpy
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
        layers: Callable[[Sequence[Array], set[str]], dict[str, Array]] | None = None,
    ) -> None:
        """make: a copy of the module that may be changed. arguments: a call's, from arrays. layers: of the source,
        which are then run in double precision too."""
        import torch

        self._make, self._arguments, self._layers = make, arguments, layers
        self.description = f"torch {torch.__version__} in float64"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs of one call."""
        return self.run_steps([inputs]).outputs[0]

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """As source.steps_of(). InvalidArgument: torch cannot run it in double precision."""
        import torch

        with _named(self.description), torch.no_grad(), _Default(), _double_mode():
            module = self._make()
            module.double()
            _widen_attributes(module)
            outputs = []
            for inputs in steps:
                args, kwargs = self._arguments([_wide(x) for x in inputs])
                outputs.append([_to_numpy(t).copy() for t in _tensors(module(*args, **kwargs))])
            return Steps(outputs, {name: _to_numpy(t).copy() for name, t in module.named_buffers()})

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values by name, where the source names them."""
        import torch

        if self._layers is None:
            return {}
        with _named(self.description), torch.no_grad(), _Default(), _double_mode():
            return self._layers([_wide(x) for x in inputs], names)


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


def _double_mode() -> Any:
    """A mode in which every operator computes in double precision, whatever type it is asked for.

    Reinterpretation of bits stays as it is. What has no code for doubles, as quantisation has not, runs on float32.
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
            try:
                return _pytree.tree_map(widen, func(*wide_args, **wide_kwargs))
            except (RuntimeError, AssertionError, TypeError):
                narrow_args, narrow_kwargs = _pytree.tree_map(narrow, (args, kwargs))
                return _pytree.tree_map(widen, func(*narrow_args, **narrow_kwargs))

    return Double()


__all__ = ["DoubleModule"]
