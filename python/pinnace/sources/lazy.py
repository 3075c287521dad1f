"""A source model that is opened when it is first run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pinnace.sources.base import Source
from pinnace.types import Array


class LazySource:
    """A source that is opened when it is first run: loading needs neither torch nor onnx."""

    def __init__(self, make: Callable[[], Source]) -> None:
        """make: opens it; called once."""
        self._make = make
        self._source: Source | None = None

    def _open(self) -> Source:
        if self._source is None:
            self._source = self._make()
        return self._source

    @property
    def description(self) -> str:
        """As in Source."""
        return self._open().description

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """As in Source."""
        return self._open().run(inputs)

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """As in Source."""
        return self._open().layers(inputs, names)

    def __getattr__(self, name: str) -> Any:
        """What some kinds of source have beyond these."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._open(), name)


__all__ = ["LazySource"]
