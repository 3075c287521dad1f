"""The CPU back end's lists of kernels, read as cpp/backends/cpu/kernel_lists.h says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_LINE = re.compile(r"^KERNELS(?:_AMONG\((\w+), |\()\(([\w, ]+)\), \(([\w, ]+)\), \(([\w, ]+)\), (\w+)\)$")


class Kernel(NamedTuple):
    """One kernel of one operator and element type; `rank` is the instruction set among whose kernels it is tried."""

    op: str
    dtype: str
    isa: str
    rank: str
    symbol: str

    def line(self) -> str:
        """This kernel alone, as a line of a list."""
        operands = f"({self.op}), ({self.dtype}), ({self.isa}), {self.symbol.removesuffix(f'_{self.isa}')})"
        return f"KERNELS({operands}" if self.rank == self.isa else f"KERNELS_AMONG({self.rank}, {operands}"


def instruction_sets(source: Path) -> list[str]:
    """The lowest first."""
    return re.findall(r"^ISA\((\w+)", (source / "cmake/isa.cmake").read_text(), re.MULTILINE)


def files(source: Path) -> list[Path]:
    """The list of families, then theirs in its order."""
    top = source / "cpp/backends/cpu/kernels.inc"
    return [top, *(source / "cpp" / name for name in re.findall(r'^#include "(.+)"$', top.read_text(), re.MULTILINE))]


def with_unary_rows(source: Path, text: str) -> str:
    """A list that reads ops/unary.inc, with the lines that its macros UNARY_<use>(op) make of each row."""
    text = text.replace("\\\n", " ")
    macros = dict(re.findall(r"^#define UNARY_([A-Z]+)\(op\)(.*)$", text, re.MULTILINE))
    rows = re.findall(r"^UNARY\(\w+, (\w+), (\w+),", (source / "cpp/ops/unary.inc").read_text(), re.MULTILINE)
    lines = []
    for op, use in rows if '#include "ops/unary.inc"' in text else []:
        body = re.sub(r"UNARY_([A-Z]+)\(op\)", lambda m: macros[m[1]], macros[use])
        lines += re.findall(r"KERNELS.*?, \w+\)(?=\s*KERNELS|\s*$)", body.replace("(op)", f"({op})"))
    return "\n".join([*lines, *(line for line in text.splitlines() if line and line[0] != "#")])


def kernels(source: Path) -> list[Kernel]:
    """All of them, in the order in which nodes try them."""
    found = []
    for path in files(source)[1:]:
        text = with_unary_rows(source, re.sub(r"//.*", "", path.read_text()))
        for line in re.split(r"\n(?=\S)", text.strip()):
            form = _LINE.match(re.sub(r"\s+", " ", line))
            if not form:
                raise SystemExit(f"{path}: not a line of a list: {line}")
            ops, dtypes, isas = (form[i].split(", ") for i in (2, 3, 4))
            found += [
                Kernel(op, dtype, isa, form[1] or isa, f"{form[5]}_{isa}")
                for op in ops
                for dtype in dtypes
                for isa in isas
            ]
    order = instruction_sets(source)
    return sorted(found, key=lambda kernel: -order.index(kernel.rank))
