"""The `pinnace` command as tests call it: in this process, with what it printed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pinnace import cli


@dataclass
class Answer:
    """Exit status, standard output and standard error."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output, which must be JSON without NaN and infinities."""

        def refuse(text: str) -> Any:
            raise ValueError(f"{text} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


class Command:
    """Called with the words behind `pinnace`. What was printed before is not part of an answer."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        """capsys: the test's."""
        self._capsys = capsys

    def __call__(self, *words: object) -> Answer:
        """Runs it."""
        self._capsys.readouterr()
        try:
            status = cli.main([str(word) for word in words])
        except SystemExit as end:
            status = int(end.code or 0)
        output = self._capsys.readouterr()
        return Answer(status, output.out, output.err)
