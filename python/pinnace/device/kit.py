"""Making a kit: one file with the programs, inputs and answers that a device is tested with."""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from pinnace import _core
from pinnace.agreement import BOUNDS, agreement
from pinnace.device.known_answers import KnownAnswer, known_answers
from pinnace.device.mobilenet import mobilenet_text
from pinnace.files import replaced, temporary_folder
from pinnace.inputs.maker import seeded_inputs
from pinnace.program import Program
from pinnace.progress import phase
from pinnace.session import Session
from pinnace.types import Array

# The format, which cpp/report/kit.cc reads: docs/device_report.md.
_MAGIC = b"\x89PNK\r\n\x1a\n"
_VERSION = 1
_HEADER, _ENTRY = struct.Struct("<8sIIQQ"), struct.Struct("<QQII")
_ALIGNMENT = 64
_MODEL = "mobilenet_v2"


@phase("making the kit")
def make_kit(models: Sequence[str | os.PathLike[str]] = (), answers: Sequence[KnownAnswer] | None = None) -> bytes:
    """A kit with known-answer tests (None: all there are), and with these programs to time; without any, with a network
    of MobileNetV2's shape.

    Answers are those of the operators' reference code on the graph as it is written, without passes. The program must
    give them on this machine's CPU. What is timed has payloads of no back end, and inputs at the sizes that it declares
    or, where they are dynamic, at usual ones.

    VerificationError: the CPU gives another answer than the reference code, so that there is none to be trusted.
    Otherwise as Program.open().
    """
    ranges: list[tuple[str, bytes]] = []
    for test in known_answers() if answers is None else answers:
        ranges += _answer_ranges(test)
    if models:
        taken: dict[str, str] = {}
        for path in models:
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", Path(path).stem)[:64] or "model"
            if name in taken:
                raise _core.InvalidArgument(
                    f"{os.fspath(path)} and {taken[name]} would both be called {name!r} in the kit: rename one"
                )
            taken[name] = os.fspath(path)
            ranges += _timed_ranges(name, Program.open(path))
    else:
        ranges += _timed_ranges(_MODEL, _program(mobilenet_text()))
    return packed(ranges)


def write_kit(path: str | os.PathLike[str], models: Sequence[str | os.PathLike[str]] = ()) -> int:
    """Writes make_kit() to a file, as a whole or not at all; its size in bytes. FileError: it cannot be written."""
    kit = make_kit(models)
    with replaced(path) as file:
        file.write(kit)
    return len(kit)


def packed(ranges: Iterable[tuple[str, bytes]]) -> bytes:
    """The file of named byte ranges: header, index, checksum of both, ranges at multiples of 64 bytes."""
    ranges = list(ranges)
    names = [name.encode() for name, _ in ranges]
    index_bytes = sum(_up(_ENTRY.size + len(name), 8) for name in names)
    at = _HEADER.size + index_bytes + 8
    index, body = bytearray(), bytearray()
    for encoded, (_, content) in zip(names, ranges, strict=True):
        offset = _up(at, _ALIGNMENT)
        body += bytes(offset - at) + content
        entry = _ENTRY.pack(offset, len(content), zlib.crc32(content), len(encoded)) + encoded
        index += entry.ljust(_up(len(entry), 8), b"\0")
        at = offset + len(content)
    head = _HEADER.pack(_MAGIC, _VERSION, len(ranges), at, index_bytes) + index
    return head + struct.pack("<II", zlib.crc32(head), 0) + body


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _program(text: str) -> Program:
    return Program(_core.Model.parse(text).build(["cpu"], {}))


def _answer_ranges(test: KnownAnswer) -> list[tuple[str, bytes]]:
    program = _program(test.text)
    with temporary_folder() as folder:
        plain = Path(folder, "plain.pnc")
        Program(_core.Model.parse(test.text, ["all"]).build(["cpu"], {})).save(plain)
        answers = _core.run_model_reference(str(plain), test.steps)
    session = Session(program, target="cpu", threads=1)
    bounds = _bounds(program, test.exact)
    names = list(program.outputs)
    ranges = []
    for i, (inputs, outputs) in enumerate(zip(test.steps, answers, strict=True)):
        got = session.run(dict(zip(program.inputs, inputs, strict=True)))
        for name, wanted, bound in zip(names, outputs, bounds, strict=True):
            verdict = agreement(got[name], wanted, {str(wanted.dtype): bound})
            if not verdict.ok:
                raise _core.VerificationError(
                    f"known answer {test.name!r}: output {name!r} of the CPU {verdict.why} from the reference code's"
                )
        ranges += [(f"{i}/in/{k}", _tensor(array)) for k, array in enumerate(inputs)]
        ranges += [(f"{i}/out/{k}", _tensor(array)) for k, array in enumerate(outputs)]
    head = [("program", program.to_bytes()), ("bounds", struct.pack(f"<{len(bounds)}d", *bounds))]
    return [(f"answers/{test.name}/{name}", content) for name, content in [*head, *ranges]]


def _timed_ranges(name: str, program: Program) -> list[tuple[str, bytes]]:
    program = program.without_payloads()
    inputs = seeded_inputs(program.inputs, program=program)
    bounds = _bounds(program)
    parts = [("program", program.to_bytes()), ("bounds", struct.pack(f"<{len(bounds)}d", *bounds))]
    parts += [(f"0/in/{k}", _tensor(inputs[key])) for k, key in enumerate(program.inputs)]
    return [(f"times/{name}/{part}", content) for part, content in parts]


def _bounds(program: Program, exact: bool = False) -> list[float]:
    """Of each output, as compare() has them; 0 for integers."""
    return [0.0 if exact else BOUNDS.get(str(spec.dtype), 0.0) for spec in program.outputs.values()]


def _tensor(array: Array) -> bytes:
    """Element type, rank, sizes, elements."""
    name = str(array.dtype)
    if re.match(r"(?:u?int|float)[246](?!\d)", name):
        raise _core.InvalidArgument(f"a kit has no inputs of {name}, of which a byte holds several")
    head = struct.pack(f"<II{array.ndim}q", _core.dtypes().index(name), array.ndim, *array.shape)
    return head + np.ascontiguousarray(array).tobytes()


__all__ = ["make_kit", "packed", "write_kit"]
