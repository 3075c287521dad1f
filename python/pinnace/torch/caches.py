"""Caches of keys and values of Hugging Face's transformers: what their decoders return beside their outputs, in classes
that torch.export does not know, and the modules in which transformers itself exports a cache.

Imports neither torch nor transformers by itself.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

_CACHES = "transformers.cache_utils"
_WRAPPERS = "transformers.integrations.executorch"  # modules with a static cache in buffers


def is_cache(value: Any) -> bool:
    """True for a cache of transformers, unless torch was told of its class: then its tensors are inputs or outputs."""
    caches = sys.modules.get(_CACHES)
    kind = type(value)
    own = kind.__module__.startswith("transformers.models.") and kind.__name__.endswith("Cache")  # as Reformer's
    if caches is None or not (own or isinstance(value, caches.Cache)):
        return False
    from torch.utils import _pytree

    return kind not in _pytree.SUPPORTED_NODES


def way_out() -> str:
    """What to do in place of giving a cache as an argument."""
    return (
        "; leave it out for a program that computes whole sequences, or load the model in one of the modules of "
        f"{_WRAPPERS}, whose cache becomes state of the session"
    )


def cached_module(module: Any) -> Any:
    """What TorchExportableModuleForDecoderOnlyLM exports in its own export(): the module with the cache that it holds.
    Its forward() takes the position in the cache and drops it, so that it cannot be called."""
    kind = type(module)
    if kind.__module__ == _WRAPPERS and kind.__name__ == "TorchExportableModuleForDecoderOnlyLM":
        return module.model
    return module


@contextlib.contextmanager
def without_caches(module: Any, notes: list[str]) -> Iterator[None]:
    """For a block that exports within isolated_inference(module), which takes the attribute off again: forward()
    returns what it does without caches. notes: is told of each that was left out, once.

    Does nothing where transformers was not imported: no module can return its caches then.
    """
    if _CACHES in sys.modules:
        forward = module.forward

        @functools.wraps(forward)
        def bare(*args: Any, **kwargs: Any) -> Any:
            return _without(forward(*args, **kwargs), "", notes)

        bare.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]  # else one of its own, with self
        module.forward = bare
    yield


def _without(value: Any, name: str, notes: list[str]) -> Any:
    """None in place of a cache; what has none in it is the same object."""
    if is_cache(value):
        note = (
            f"output {name or type(value).__name__!r} is left out: the keys and values of this call, in a "
            f"{type(value).__name__} (for a cache that is state of the session: {_WRAPPERS})"
        )
        if note not in notes:
            notes.append(note)
        return None
    if isinstance(value, Mapping):
        made = {key: _without(item, f"{name}.{key}".strip("."), notes) for key, item in value.items()}
        same = all(made[key] is item for key, item in value.items())
        # Not of the mapping's own class, which may insist on its fields. Of it only the names of fields are used.
        return value if same else {key: item for key, item in made.items() if item is not None}
    if type(value) in (list, tuple):
        items = [_without(item, f"{name}.{i}".strip("."), notes) for i, item in enumerate(value)]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    return value


__all__ = ["cached_module", "is_cache", "way_out", "without_caches"]
