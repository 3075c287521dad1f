"""PyTorch's own NNAPI models: what torch.backends._nnapi.prepare.convert_model_to_nnapi made, live or saved.

Such a module holds a serialised NNAPI model, its weights, and TorchScript that fills in the sizes which were left open.
The serialised form is parsed in C++. Imports torch only when asked to.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pinnace import _core
from pinnace.nnapi import nnapi_library_path
from pinnace.session import as_tensor
from pinnace.source import _named
from pinnace.types import Array

if TYPE_CHECKING:
    import torch

_PARTS = ("ser_model", "weights", "inp_mem_fmts", "out_mem_fmts", "shape_compute_module")


def nnapi_part(script: torch.jit.ScriptModule) -> Any | None:
    """The NnapiModule in a converted module: itself, or its child `mod`; None for any other TorchScript."""
    for candidate in (script, getattr(script, "mod", None)):
        if candidate is not None and all(hasattr(candidate, part) for part in _PARTS):
            return candidate
    return None


def load_nnapi(part: Any, examples: Sequence[torch.Tensor], options: Mapping[str, Any]) -> _core.Model:
    """For the examples' shapes. CorruptFile: byte and rule; InvalidArgument: shapes that the model does not have."""
    import torch

    if len(examples) != len(part.inp_mem_fmts):
        raise _core.InvalidArgument(
            f"example_inputs has {len(examples)} tensors, the model takes {len(part.inp_mem_fmts)}"
        )
    serialized = part.ser_model.clone()
    if serialized.dtype == torch.uint8:  # as older versions stored it
        serialized = serialized.view(torch.int32)
    try:
        part.shape_compute_module.prepare(serialized, list(examples))
    except Exception as error:
        raise _core.InvalidArgument(f"the model's own code cannot work with these shapes: {error}") from error
    return _core.Model.load_torch_nnapi(
        serialized.numpy(),
        [_stored(weight) for weight in part.weights],
        [list(example.shape) for example in examples],
        list(part.inp_mem_fmts),
        list(part.out_mem_fmts),
        disabled_passes=options["disabled_passes"],
        check_passes=options["check_passes"],
        ops=options["ops"],
    )


def _copied(script: Any) -> Any:
    """A copy to run: a module that has run once holds a compilation, with which torch cannot save it any more."""
    import io

    import torch

    buffer = io.BytesIO()
    try:
        torch.jit.save(script, buffer)
    except RuntimeError:  # it has run
        return script
    buffer.seek(0)
    jit: Any = torch.jit  # untyped in torch's own stubs
    return jit.load(buffer)


def _stored(tensor: torch.Tensor) -> Array:
    tensor = tensor.detach().contiguous()
    return np.asarray((tensor.int_repr() if tensor.is_quantized else tensor).numpy())


class NnapiSource:
    """A converted module as the reference: PyTorch's runtime drives the packaged NNAPI library."""

    def __init__(self, script: torch.jit.ScriptModule, examples: Sequence[torch.Tensor]) -> None:
        """`examples` say which inputs are quantised, and how. Unsupported: there is no library."""
        import torch

        self._library = nnapi_library_path()
        self._script = _copied(script)
        self._examples = list(examples)
        self.steps = [1.0 if t.is_quantized else 0.0 for t in self._examples]
        self.description = f"torch {torch.__version__} (NNAPI)"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order; quantised ones as the integers they store."""
        import torch

        from pinnace.source import _tensors

        # PyTorch asks the loader for the name, which is found where an object of that name is loaded already.
        ctypes.CDLL(self._library, mode=ctypes.RTLD_GLOBAL)
        arguments = []
        for value, example in zip(inputs, self._examples, strict=True):
            tensor = as_tensor(value)
            if example.is_quantized:
                tensor = torch._make_per_tensor_quantized_tensor(tensor, example.q_scale(), example.q_zero_point())
            arguments.append(tensor)
        with _named(self.description), torch.no_grad():
            made = self._script(*arguments) if hasattr(self._script, "mod") else self._script(arguments)
        return [_stored(t) for t in _tensors(made)]

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """None: NNAPI shows no inner values."""
        return {}


__all__ = ["NnapiSource", "load_nnapi", "nnapi_part"]
