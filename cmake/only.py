"""Lists for a runtime library that runs a few models: only.py SOURCE_FOLDER OUT_FOLDER MODEL.pnc…, called by CMake.

Writes ops/ops.inc and backends/cpu/kernels.inc under OUT_FOLDER, with what of the originals the models need:
operators that their nodes use; kernels of those operators for the element types that they meet. Weights that every file
has packed for stated levels tell more: of the kernels above the baseline only those that these levels choose are kept,
and where all nodes of an operator have such weights, only the kernels that they are packed for. Prints a mask of the
element types, and the operators that are left out. Reads files by docs/file_format.md, without any library, and trusts
them: a damaged one gives a wrong list or a Python error.
"""

from __future__ import annotations

import re
import struct
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import kernel_lists

GRAPH, MANIFEST = 1, 2
LEVELS = kernel_lists.instruction_sets(Path(__file__).parents[1])
FORMS = {"int32": "<i", "uint32": "<I", "uint8": "<B", "uint64": "<Q"}


class Table:
    """A FlatBuffer table; fields by their number in format.fbs."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.fields = at - struct.unpack_from("<i", data, at)[0]

    def place(self, number: int) -> int:
        """Where the field is; 0 if it is left at its default."""
        size = struct.unpack_from("<H", self.data, self.fields)[0]
        offset = struct.unpack_from("<H", self.data, self.fields + 4 + 2 * number)[0] if 4 + 2 * number < size else 0
        return self.at + offset if offset else 0

    def number(self, number: int, kind: str = "uint32") -> int:
        at = self.place(number)
        return int(struct.unpack_from(FORMS[kind], self.data, at)[0]) if at else 0

    def _list(self, number: int) -> tuple[int, int]:
        at = self.place(number)
        if not at:
            return 0, 0
        at += struct.unpack_from("<I", self.data, at)[0]
        return at + 4, struct.unpack_from("<I", self.data, at)[0]

    def numbers(self, number: int, kind: str = "int32") -> list[int]:
        at, count = self._list(number)
        return list(struct.unpack_from(f"<{count}{FORMS[kind][1]}", self.data, at))

    def text(self, number: int) -> str:
        at, count = self._list(number)
        return self.data[at : at + count].decode()

    def tables(self, number: int) -> list[Table]:
        at, count = self._list(number)
        places = range(at, at + 4 * count, 4)
        return [Table(self.data, p + struct.unpack_from("<I", self.data, p)[0]) for p in places]

    def texts(self, number: int) -> list[str]:
        at, count = self._list(number)
        found = []
        for place in range(at, at + 4 * count, 4):
            string = place + struct.unpack_from("<I", self.data, place)[0]
            size = struct.unpack_from("<I", self.data, string)[0]
            found.append(self.data[string + 4 : string + 4 + size].decode())
        return found


def root(data: bytes, kind: int) -> Table:
    """The FlatBuffer in the section of a kind."""
    if data[:8] != b"\x89PNC\r\n\x1a\n":
        raise SystemExit("this is not a .pnc file")
    for i in range(struct.unpack_from("<I", data, 12)[0]):
        found, _, offset, size, _ = struct.unpack_from("<IIQQQ", data, 64 + 32 * i)
        if found == kind:
            section = data[offset : offset + size]
            return Table(section, struct.unpack_from("<I", section, 0)[0])
    raise SystemExit(f"the file has no section of kind {kind}")


def family(symbol: str) -> str:
    """A kernel's name without its level; payloads call the baseline by its instruction set."""
    levels = [*reversed(LEVELS), "sse2", "neon"]
    return next((symbol.removesuffix(f"_{level}") for level in levels if symbol.endswith(f"_{level}")), symbol)


@dataclass
class Needs:
    """What models need: operators, each with the element types of its first inputs; all element types; instruction
    sets that weights are packed for; families of kernels, for operators of which all are known.
    """

    types: dict[str, set[str]] = field(default_factory=dict)
    every_type: set[str] = field(default_factory=set)
    levels: set[str] = field(default_factory=set)
    families: dict[str, set[str] | None] = field(default_factory=dict)

    def add(self, other: Needs) -> None:
        """Both."""
        for op, types in other.types.items():
            mine, others = self.families.get(op, set()), other.families[op]
            self.families[op] = None if mine is None or others is None else mine | others
            self.types.setdefault(op, set()).update(types)
        self.every_type |= other.every_type
        self.levels |= other.levels


def contents(data: bytes, dtypes: list[str]) -> Needs:
    """Of one file."""
    model = root(data, GRAPH)
    strings = model.texts(0)
    operators = [strings[op.number(0)] for op in model.tables(1)]
    # An application's operators are not built in: field 2 says so.
    met: dict[str, set[str]] = {
        name: set() for name, op in zip(operators, model.tables(1), strict=True) if not op.number(2, "uint8")
    }
    counts = Counter[str]()
    every_type: set[str] = set()
    place: dict[int, str] = {}
    for number, graph in enumerate(model.tables(4)):
        types = [dtypes[value.number(1, "uint8")] for value in graph.tables(1)]
        every_type.update(types)
        for index, node in enumerate(graph.tables(2)):
            inputs = node.numbers(2)
            op = operators[node.number(0)]
            counts[op] += 1
            if number == 0:
                place[index] = op
            if op in met and inputs and inputs[0] >= 0:
                met[op].add(types[inputs[0]])
    packed = [(p.text(0), p.text(1)) for p in root(data, MANIFEST).tables(1) if p.text(0).startswith("cpu:")]
    levels = {target.removeprefix("cpu:") for target, _ in packed}
    # Keys are "layout 1/000012 name/conv_nhwc_f32_avx2/37888"; nodes of nested graphs have none that match.
    kernels: dict[tuple[str, int], str] = {}
    for target, key in packed:
        if found := re.match(r"layout \d+/(\d{6}) .*/(\w+)/\d+$", key, re.S):
            kernels[target, int(found[1])] = family(found[2])
    known = Counter(place[index] for _, index in kernels)
    families: dict[str, set[str] | None] = dict.fromkeys(met)
    for op in met:
        if levels and known[op] == counts[op] * len(levels):
            families[op] = {name for (_, index), name in kernels.items() if place[index] == op}
    return Needs(met, every_type, levels, families)


def chosen(kernels: list[kernel_lists.Kernel], packed_for: set[str]) -> set[str]:
    """Of kernels the symbols that levels in packed_for run, and the baseline's."""
    stated = [LEVELS.index("generic" if level in ("sse2", "neon") else level) for level in packed_for]
    best: dict[tuple[str, ...], str] = {}
    for op, dtype, isa, _, symbol in kernels:
        for top in [0, *stated]:
            key = (op, dtype, symbol.removesuffix(f"_{isa}"), str(top))
            if LEVELS.index(isa) <= top and LEVELS.index(isa) >= LEVELS.index(best.get(key, f"_{LEVELS[0]}")[1:]):
                best[key] = f"_{isa}"
    return {key[2] + suffix for key, suffix in best.items()}


def main() -> None:
    """See the module."""
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    header = (source / "cpp/include/pinnace/tensor.h").read_text()
    dtypes = [name.lower() for name in re.findall(r"^  k(\w+) = \d+,", header, re.M)]
    known = re.findall(r"^OP\((\w+)\)", (source / "cpp/ops/ops.inc").read_text(), re.M)
    needs = Needs()
    all_packed = True
    for path in sys.argv[3:]:
        of_one = contents(Path(path).read_bytes(), dtypes)
        if missing := sorted(set(of_one.types) - set(known)):
            raise SystemExit(f"{path}: operators that pinnace does not have built in: {', '.join(missing)}")
        needs.add(of_one)
        all_packed &= bool(of_one.levels)

    met = needs.types
    fitting = [k for k in kernel_lists.kernels(source) if k.op in met and k.dtype in {*met[k.op], "any"}]
    # What an earlier version packed may name kernels that are called otherwise now: it does not say what is needed.
    listed = {(k.op, family(k.symbol)) for k in fitting}
    needs.families = {
        op: exact if exact and all((op, name) in listed for name in exact) else None
        for op, exact in needs.families.items()
    }
    fitting = [k for k in fitting if (exact := needs.families[k.op]) is None or family(k.symbol) in exact]
    symbols = chosen(fitting, needs.levels) if all_packed else {k.symbol for k in fitting}
    kept = [k.line() for k in fitting if k.symbol in symbols]
    files = {"ops/ops.inc": [f"OP({op})" for op in known if op in met], "backends/cpu/kernels.inc": kept}
    for name, text in files.items():
        to = out / name
        to.parent.mkdir(parents=True, exist_ok=True)
        content = "\n".join(text) + "\n"
        if not to.exists() or to.read_text() != content:  # what has not changed is not built again
            to.write_text(content)
    mask = sum(1 << i for i, name in enumerate(dtypes) if name in needs.every_type | {"f32", "i64"})
    print(f"{len(met)} of {len(known)} operators, {len(kept)} kernels", file=sys.stderr)
    print(f"{mask:#x};" + ";".join(op for op in known if op not in met))


main()
