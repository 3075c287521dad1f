"""Inference in isolation: models of users are exported and run without a trace in them, or in torch's settings.

Imports torch only when asked to.
"""

from __future__ import annotations

import contextlib
import copy
import os
import random
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

MOST_ENTRIES = 10_000  # of a container whose entries are looked into
# Of a buffer whose values are copied. torch.export computes with constants of one element, and a buffer that a plain
# object holds is one to it: code that counts in place there would count in the user's module.
MOST_OF_BUFFER = 16
MOST_BYTES = 1 << 26  # of a tensor or array in a plain attribute whose values are copied
# Packages whose objects run or feed a module (optimizers, data sets, loaders, trainers) and are no part of it.
_AROUND = {"accelerate", "datasets", "lightning", "lightning_fabric", "numpy", "pandas", "pytorch_lightning", "torch"}
_running = {"lock": threading.RLock()}
# A child that is forked while another thread is in a block has the lock as it was, with nobody to release it.
os.register_at_fork(after_in_child=lambda: _running.update(lock=threading.RLock()))


@contextlib.contextmanager
def isolated_inference(module: torch.nn.Module | None = None) -> Iterator[None]:
    """For a block that runs or exports a model: without gradients, not in inference mode, and `module`, where one is
    given, in eval mode and without inference tensors.

    Afterwards, also after an error or KeyboardInterrupt, what the block changed is as it was before: of the process the
    states of random numbers (torch's CPU generator, numpy, `random`) and torch's settings; of the module what
    _keep_module() names. What cannot be put back raises when all else is.

    One block runs at a time; a thread may have one inside another. Other threads of the application should meanwhile
    neither change these settings nor draw of these random numbers: that cannot be told from what the block does, and
    is undone too.
    """
    import torch

    with _running["lock"], contextlib.ExitStack() as undo:
        undo.callback(_Settings().restore)
        if module is not None:
            _keep_module(module, undo)
        undo.enter_context(torch.inference_mode(False))
        undo.enter_context(torch.no_grad())
        if module is not None:
            _replace_inference_tensors(module)
            set_eval(module)
        yield


def set_eval(module: torch.nn.Module) -> None:
    """eval() of the module, where it has a mode: frozen TorchScript has none. The modules that torch.export and PT2E
    make refuse eval(), because their graph is that of one mode: of these the flag alone is set."""
    if not hasattr(module, "training"):
        return
    try:
        module.eval()
    except NotImplementedError:
        for part in module.modules():
            part.training = False


def is_inference(tensor: torch.Tensor) -> bool:
    """Whether it was made in inference mode: torch neither counts writes into it nor exports it."""
    try:
        return tensor.is_inference()
    except (RuntimeError, ValueError):  # a lazy module's, without values so far
        return False


# ---------------------------------------------------------------------------------------------------------- the process


class _Settings:
    """States of random numbers and settings of torch. Each is written back only if it has changed."""

    def __init__(self) -> None:
        import torch

        self._random = random.getstate()
        self._numpy = np.random.get_state()  # noqa: NPY002 (what a user's module may draw from)
        self._torch = torch.random.get_rng_state()
        self._values: list[tuple[str, Any]] = []
        self._rows = _settings()
        for name, (read, _) in self._rows.items():
            with contextlib.suppress(Exception):  # torch may lack it, or refuse to read it
                self._values.append((name, read()))

    def restore(self) -> None:
        with contextlib.ExitStack() as undo:
            undo.callback(self._restore_random)
            # Twice: while one setting of precision is changed, torch may refuse to read another.
            for name, before in 2 * self._values[::-1]:
                undo.callback(self._restore_value, name, before)

    def _restore_value(self, name: str, before: Any) -> None:
        read, write = self._rows[name]
        try:
            changed = read() != before
        except Exception:  # as in __init__
            return
        if changed:
            write(before)

    def _restore_random(self) -> None:
        import torch

        if random.getstate() != self._random:
            random.setstate(self._random)
        now = np.random.get_state()  # noqa: NPY002
        if not all(np.array_equal(a, b) for a, b in zip(now, self._numpy, strict=True)):
            np.random.set_state(self._numpy)  # noqa: NPY002
        if not torch.equal(torch.random.get_rng_state(), self._torch):
            torch.random.set_rng_state(self._torch)


_PRECISIONS = [("generic", "all"), *((b, op) for op in ("all", "matmul", "conv", "rnn") for b in ("cuda", "mkldnn"))]


def _settings() -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """By name: functions that read a setting and write it, in the order in which they are put back."""
    import torch

    backends: Any = torch.backends
    core: Any = torch._C

    def of(owner: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
        return (lambda: getattr(owner, name)), (lambda value: setattr(owner, name, value))

    def precision(backend: str, operators: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
        return (
            lambda: core._get_fp32_precision_getter(backend, operators),
            lambda value: core._set_fp32_precision_setter(backend, operators, value),
        )

    def default_device() -> Any:
        context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
        return None if context is None else context.device

    return {
        "numpy's errors": (np.geterr, lambda value: np.seterr(**value)),
        "grad": (torch.is_grad_enabled, torch.set_grad_enabled),
        "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
        # None: nobody has set one. A device that is set, the CPU too, is looked at by every call of torch's.
        "default device": (default_device, torch.set_default_device),
        "threads": (torch.get_num_threads, torch.set_num_threads),
        # These three write some of those below them, of which the first is the default of the others.
        "matmul precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        "tf32, cuda": of(backends.cuda.matmul, "allow_tf32"),
        "tf32, cudnn": of(backends.cudnn, "allow_tf32"),
        **{f"fp32 precision, {place[0]} {place[1]}": precision(*place) for place in _PRECISIONS},
        "deterministic algorithms": (
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
        ),
        "cudnn": of(backends.cudnn, "enabled"),
        "cudnn.deterministic": of(backends.cudnn, "deterministic"),
        "cudnn.benchmark": of(backends.cudnn, "benchmark"),
        "mkldnn": of(backends.mkldnn, "enabled"),
        "quantized.engine": of(backends.quantized, "engine"),
        "autocast": (
            lambda: torch.is_autocast_enabled("cpu"),
            lambda value: torch.set_autocast_enabled("cpu", value),
        ),
        "autocast dtype": (
            lambda: torch.get_autocast_dtype("cpu"),
            lambda value: torch.set_autocast_dtype("cpu", value),
        ),
        "autocast cache": (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    }


# ----------------------------------------------------------------------------------------------------------- the module


def _replace_inference_tensors(module: torch.nn.Module) -> None:
    """By copies, in parameters and buffers, which _keep_module() has kept."""
    import torch

    made: dict[int, Any] = {}
    for part in module.modules():
        if isinstance(part, torch.jit.ScriptModule):
            continue
        tensors: list[dict[str, Any]] = [part._parameters, part._buffers]
        for own in tensors:
            for name, tensor in list(own.items()):
                if tensor is not None and is_inference(tensor):
                    own[name] = copy.deepcopy(tensor, made)


def _keep_module(module: torch.nn.Module, undo: contextlib.ExitStack) -> None:
    """Remembers what a module holds; `undo` puts it back.

    That is: the attributes of it and its submodules (mode, hooks, parameters, buffers and children are some of them);
    what is in lists, dicts, sets, bytearrays and plain objects that these hold, also in each other; the values of
    tensors and arrays among them, the states of random number generators; of each tensor also requires_grad and grad.

    Not: values of parameters, and of buffers with more than MOST_OF_BUFFER elements, in whose place torch.export puts
    others while the module's code runs, but TorchScript's; values of tensors and arrays of more than MOST_BYTES; what
    entries of a container with more than MOST_ENTRIES hold; objects of Python's own classes, which use locks, threads
    and queues; and objects whose class comes from one of the packages _AROUND, or is derived from such a class.
    """
    import torch

    registered = {
        id(t)
        for part in module.modules()
        if not isinstance(part, torch.jit.ScriptModule)
        for t in (*part._parameters.values(), *part._buffers.values())
    }
    seen: dict[int, Any] = {}  # by id; holds the values, so that no id is given again meanwhile
    left: list[Any] = [module]
    while left:
        value = left.pop()
        if id(value) not in seen and not isinstance(value, LEAVES):
            seen[id(value)] = value
            left.extend(_keep(value, undo, id(value) not in registered or _elements(value) <= MOST_OF_BUFFER))


def _keep(value: Any, undo: contextlib.ExitStack, with_values: bool) -> list[Any]:
    """Remembers one value; what it holds and has to be looked into."""
    import torch

    if isinstance(value, torch.Tensor):
        undo.callback(_tensor_undo(value, with_values and _bytes_of(value) <= MOST_BYTES))
    elif isinstance(value, np.ndarray):
        if value.nbytes <= MOST_BYTES:
            undo.callback(_restore_array, value, value.copy())
    elif isinstance(value, torch.Generator):
        undo.callback(_restore_generator, value, value.get_state())
    elif isinstance(value, np.random.Generator):
        undo.callback(setattr, value.bit_generator, "state", value.bit_generator.state)
    elif isinstance(value, np.random.RandomState):
        undo.callback(value.set_state, value.get_state())
    elif isinstance(value, random.Random):
        undo.callback(value.setstate, value.getstate())
    elif isinstance(value, bytearray):
        undo.callback(_restore_bytes, value, bytes(value))
    elif isinstance(value, torch.jit.ScriptModule):
        return _keep_script(value, undo)
    elif isinstance(value, dict):
        undo.callback(_restore_dict, value, list(value.items()))
        return _entries(value.values())
    elif isinstance(value, (list, set, deque)):
        undo.callback(_restore_items, value, list(value))
        return _entries(value)
    elif isinstance(value, (tuple, frozenset)):
        return _entries(value)
    elif isinstance(value, torch.nn.Module) or is_plain(value):
        return _keep_attributes(value, undo)
    return []


def _entries(values: Any) -> list[Any]:
    """Of a container, those that have to be looked into."""
    return [] if len(values) > MOST_ENTRIES else [v for v in values if not isinstance(v, LEAVES)]


def is_plain(value: Any) -> bool:
    """Whether an object is one of those that _keep_module() follows."""
    kinds = [kind.__module__.partition(".")[0] for kind in type(value).__mro__[:-1]]
    return bool(kinds) and kinds[0] not in sys.stdlib_module_names and _AROUND.isdisjoint(kinds)


def _keep_attributes(value: Any, undo: contextlib.ExitStack) -> list[Any]:
    own = getattr(value, "__dict__", None)
    found: list[Any] = []
    if type(own) is dict:
        undo.callback(_restore_dict, own, list(own.items()))
        found += own.values()
    slots = _slots(value)
    if slots:
        undo.callback(_restore_slots, value, slots)
    return [*found, *slots.values()]


def _slots(value: Any) -> dict[Any, Any]:
    """What the slots of an object hold, by the descriptors that read and write them."""
    found = {}
    for kind in type(value).__mro__[:-1]:
        for slot in vars(kind).values() if "__slots__" in vars(kind) else ():
            if isinstance(slot, MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # an empty one
                    found[slot] = slot.__get__(value)
    return found


def _restore_slots(value: Any, slots: Mapping[Any, Any]) -> None:
    now = _slots(value)
    for slot in now.keys() - slots.keys():
        slot.__delete__(value)
    for slot, held in slots.items():
        if slot not in now or now[slot] is not held:
            slot.__set__(value, held)


def _keep_script(script: Any, undo: contextlib.ExitStack) -> list[Any]:
    """TorchScript has its attributes in C++. A frozen one has no mode."""
    for part in script.modules():
        if hasattr(part, "training"):
            undo.callback(setattr, part, "training", part.training)
    return [*script.parameters(), *script.buffers()]


LEAVES = (type(None), bool, int, float, complex, str, bytes, type, FunctionType, MethodType, ModuleType)


def _elements(value: Any) -> int:
    try:
        return int(value.numel())
    except (RuntimeError, ValueError, NotImplementedError):  # as in _bytes_of()
        return MOST_OF_BUFFER + 1


def _bytes_of(tensor: torch.Tensor) -> int:
    try:
        return tensor.numel() * tensor.element_size()
    except (RuntimeError, ValueError, NotImplementedError):  # tensors of kinds without values to copy
        return 0


def _tensor_undo(tensor: torch.Tensor, with_values: bool) -> Callable[[], None]:
    """with_values: they are copied, but for a parameter's; otherwise the tensor gets its memory back, as it is then."""
    import torch

    leaf, requires_grad, grad = tensor.is_leaf, tensor.requires_grad, tensor.grad if tensor.is_leaf else None
    values: torch.Tensor | None = None
    memory: torch.Tensor | None = None
    with contextlib.suppress(RuntimeError, ValueError, NotImplementedError):  # tensors of kinds without values to copy
        memory = tensor.detach()
        if with_values and not isinstance(tensor, torch.nn.Parameter):
            values = memory.clone()

    def undo() -> None:
        with torch.inference_mode(is_inference(tensor)):  # which torch asks for to write into such a tensor
            # Through .data, so that autograd does not take it for one more write by the user.
            if memory is not None and not _same_memory(tensor, memory):
                tensor.data = memory
            if values is not None and not _same(tensor.detach(), values):
                tensor.data.copy_(values)
        if leaf and tensor.requires_grad != requires_grad:
            tensor.requires_grad_(requires_grad)
        if leaf and tensor.grad is not grad:
            tensor.grad = grad

    return undo


def _same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are views of one storage, element by element, as far as torch can tell."""
    try:
        return (
            (a.shape, a.dtype, a.device, a.layout) == (b.shape, b.dtype, b.device, b.layout)
            and a.data_ptr() == b.data_ptr()
            and a.stride() == b.stride()
        )
    except (RuntimeError, ValueError, NotImplementedError):
        return True


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


def _restore_bytes(array: bytearray, values: bytes) -> None:
    if array != values:
        array[:] = values


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


__all__ = ["LEAVES", "MOST_ENTRIES", "is_inference", "is_plain", "isolated_inference"]
