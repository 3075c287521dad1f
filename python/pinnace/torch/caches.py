"""Caches of keys and values that Hugging Face's decoders return beside their outputs, in classes that torch.export does
not know.

Imports neither torch nor transformers.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator, Mapping
from typing import Any


def is_cache(value: Any) -> bool:
    """True for a cache of transformers, unless its class is known to torch: then its tensors are outputs."""
    caches = sys.modules.get("transformers.cache_utils")
    if caches is None or not isinstance(value, caches.Cache):
        return False
    from torch.utils import _pytree

    return type(value) not in _pytree.SUPPORTED_NODES


@contextlib.contextmanager
def without_caches(module: Any, notes: list[str]) -> Iterator[None]:
    """For a block that exports within isolated_inference(module), which takes the attribute off again: forward()
    returns what it does without caches. notes: is told of each that was left out.

    Does nothing where transformers was not imported: no module can return its caches then.
    """
    if "transformers.cache_utils" not in sys.modules:
        yield
        return
    forward = module.forward

    @functools.wraps(forward)
    def bare(*args: Any, **kwargs: Any) -> Any:
        return _without(forward(*args, **kwargs), "", notes)

    module.forward = bare
    yield


def _without(value: Any, name: str, notes: list[str]) -> Any:
    """None in place of a cache; containers without one are the same objects."""
    if is_cache(value):
        note = (
            f"output {name!r} is left out: a {type(value).__name__} with the keys and values of this call. For a cache "
            "that is state of the session, load transformers' TorchExportableModuleForDecoderOnlyLM of the model"
        )
        if note not in notes:
            notes.append(note)
        return None
    if isinstance(value, Mapping):
        made = {key: _without(item, f"{name}.{key}".strip("."), notes) for key, item in value.items()}
        # Not of the mapping's class, which may insist on its fields: their names are all that is taken of it.
        return value if all(made[key] is value[key] for key in made) else {k: v for k, v in made.items() if v is not None}
    if type(value) in (list, tuple):
        items = [_without(item, f"{name}.{i}".strip("."), notes) for i, item in enumerate(value)]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    return value


__all__ = ["is_cache", "without_caches"]
