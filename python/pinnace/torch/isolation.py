"""Inference in isolation: models of users are exported and run without a trace in them, or in torch's settings.

Imports torch only when asked to.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def isolated_inference(module: torch.nn.Module | None = None) -> Iterator[None]:
    """For a block that runs or exports a model: without gradients, and `module`, where one is given, in eval mode.

    Afterwards, also after an error or KeyboardInterrupt, all is as it was before: of the process the states of random
    numbers (torch's CPU generator, numpy, `random`) and torch's settings; of the module what _Snapshot keeps.
    """
    import torch

    settings = _Settings()
    snapshot = None if module is None else _Snapshot(module)
    try:
        if module is not None and hasattr(module, "training"):  # frozen TorchScript has no mode
            module.eval()
        with torch.no_grad():
            yield
    finally:
        if snapshot is not None:
            snapshot.restore()
        settings.restore()


class _Settings:
    """States of random numbers and settings of torch. A setting is written back only if it has changed."""

    def __init__(self) -> None:
        import torch

        self._random = random.getstate()
        self._numpy = np.random.get_state()  # noqa: NPY002 (what a user's module may draw from)
        self._torch = torch.random.get_rng_state()
        self._values = [(read(), read, write) for read, write in _settings()]

    def restore(self) -> None:
        import torch

        random.setstate(self._random)
        np.random.set_state(self._numpy)  # noqa: NPY002
        torch.random.set_rng_state(self._torch)
        for before, read, write in self._values:
            if read() != before:
                write(before)


def _settings() -> list[tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Pairs of functions that read a setting of torch's and write it."""
    import torch

    cudnn: Any = torch.backends.cudnn
    quantized: Any = torch.backends.quantized
    return [
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_default_device, torch.set_default_device),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            lambda v: torch.use_deterministic_algorithms(v[0], warn_only=v[1]),
        ),
        (lambda: cudnn.deterministic, lambda v: setattr(cudnn, "deterministic", v)),
        (lambda: cudnn.benchmark, lambda v: setattr(cudnn, "benchmark", v)),
        (lambda: quantized.engine, lambda v: setattr(quantized, "engine", v)),
        (lambda: torch.is_autocast_enabled("cpu"), lambda v: torch.set_autocast_enabled("cpu", v)),
        (lambda: torch.get_autocast_dtype("cpu"), lambda v: torch.set_autocast_dtype("cpu", v)),
        (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    ]


class _Snapshot:
    """What a module holds: the attributes of it and its submodules (mode, hooks, parameters, buffers and children are
    some of them), what is in lists, dicts, sets and objects of the user's classes that these hold, and the values of
    all tensors and arrays but parameters; of each tensor also requires_grad and grad.

    Parameters' values are not copied: torch.export puts others in their place while the module's code runs.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._undo: list[Callable[[], None]] = []
        seen: dict[int, Any] = {}  # by id; holds the values, so that no id is given again meanwhile
        left: list[Any] = [module]
        while left:
            value = left.pop()
            if id(value) not in seen and not isinstance(value, _LEAVES):
                seen[id(value)] = value
                left.extend(self._keep(value))

    def restore(self) -> None:
        for undo in self._undo:
            undo()

    def _keep(self, value: Any) -> list[Any]:
        """Remembers one value; what it holds."""
        import torch

        if isinstance(value, torch.Tensor):
            self._undo.append(_tensor_undo(value))
            return []
        if isinstance(value, np.ndarray):
            self._undo.append(partial(_restore_array, value, value.copy()))
            return []
        if isinstance(value, torch.Generator):
            self._undo.append(partial(_restore_generator, value, value.get_state()))
            return []
        if isinstance(value, np.random.Generator):
            self._undo.append(partial(setattr, value.bit_generator, "state", value.bit_generator.state))
            return []
        if isinstance(value, torch.jit.ScriptModule):
            return self._keep_script(value)
        if isinstance(value, dict):
            self._undo.append(partial(_restore_dict, value, list(value.items())))
            return list(value.values())
        if isinstance(value, (list, set, deque)):
            self._undo.append(partial(_restore_items, value, list(value)))
            return list(value)
        if isinstance(value, (tuple, frozenset)):
            return list(value)
        return self._keep_attributes(value)

    def _keep_attributes(self, value: Any) -> list[Any]:
        """Of a module, or an object of a class that is not Python's own: others use locks, threads and queues."""
        own = getattr(value, "__dict__", None)
        if type(own) is not dict or type(value).__module__.partition(".")[0] in sys.stdlib_module_names:
            return []
        self._undo.append(partial(_restore_dict, own, list(own.items())))
        return list(own.values())

    def _keep_script(self, script: Any) -> list[Any]:
        """TorchScript has its attributes in C++. A frozen one has no mode."""
        for part in script.modules():
            if hasattr(part, "training"):
                self._undo.append(partial(setattr, part, "training", part.training))
        return [*script.parameters(), *script.buffers()]


_LEAVES = (type(None), bool, int, float, complex, str, bytes, type, FunctionType, MethodType, ModuleType)


def _tensor_undo(tensor: torch.Tensor) -> Callable[[], None]:
    import torch

    leaf, requires_grad, grad = tensor.is_leaf, tensor.requires_grad, tensor.grad if tensor.is_leaf else None
    values: torch.Tensor | None = None
    if not isinstance(tensor, torch.nn.Parameter):
        with contextlib.suppress(RuntimeError, NotImplementedError):  # tensors of kinds without values to copy
            values = tensor.detach().clone()

    def undo() -> None:
        if values is not None and not _same(tensor.detach(), values):
            # Through .data, so that autograd does not take it for one more write by the user.
            if tensor.shape == values.shape and tensor.dtype == values.dtype:
                tensor.data.copy_(values)
            else:
                tensor.data = values
        if leaf and tensor.requires_grad != requires_grad:
            tensor.requires_grad_(requires_grad)
        if leaf and tensor.grad is not grad:
            tensor.grad = grad

    return undo


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether the elements have the same bits, as far as torch can compare them."""
    import torch

    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    try:
        return torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))
    except (RuntimeError, NotImplementedError):
        return False


def _restore_generator(generator: torch.Generator, state: torch.Tensor) -> None:
    generator.set_state(state)


def _restore_array(array: Any, values: Any) -> None:
    if array.shape == values.shape and array.dtype == values.dtype and array.flags.writeable:
        array[...] = values


def _restore_dict(own: dict[Any, Any], items: list[tuple[Any, Any]]) -> None:
    now = list(own.items())
    if len(now) == len(items) and all(a[0] is b[0] and a[1] is b[1] for a, b in zip(now, items, strict=True)):
        return
    kind = OrderedDict if isinstance(own, OrderedDict) else dict  # a class derived from them may refuse to be changed
    kind.clear(own)
    for key, value in items:
        kind.__setitem__(own, key, value)


def _restore_items(own: Any, items: list[Any]) -> None:
    now = list(own)
    if len(now) != len(items) or any(a is not b for a, b in zip(now, items, strict=True)):
        own.clear()
        (own.update if isinstance(own, set) else own.extend)(items)


__all__ = ["isolated_inference"]
