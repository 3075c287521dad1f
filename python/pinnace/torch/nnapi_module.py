"""PyTorch's own NNAPI models: what torch.backends._nnapi.prepare.convert_model_to_nnapi made, live or saved.

Such a module holds a serialised NNAPI model, its weights, and TorchScript that fills in the sizes which were left
dynamic. The serialised form is parsed in C++. Imports torch only when asked to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pinnace import _core
from pinnace.arrays import to_numpy

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
        [to_numpy(weight) for weight in part.weights],
        [list(example.shape) for example in examples],
        list(part.inp_mem_fmts),
        list(part.out_mem_fmts),
        disabled_passes=options["disabled_passes"],
        check_passes=options["check_passes"],
        ops=options["ops"],
    )


__all__ = ["load_nnapi", "nnapi_part"]
