"""Makes the embedded GPU kernels: lines of the families' kernels.inc to SPIR-V (glslc, spirv-opt, spirv-val) and
Metal's text (spirv-cross). A line whose file is in Metal's own language has that text alone, and runs where Metal does.

    shaders.py SOURCE_FOLDER OUTPUT.cc SPIRV_CROSS_LIBRARY [--glslc PATH] [--spirv-opt PATH] [--spirv-val PATH]
        [--keep FOLDER]

Variants whose sources did not change are taken from OUTPUT's folder of intermediate results. --keep writes each
kernel's .spv, .metal and .json beside, for reading and for drivers that compile the text ahead of time.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import ctypes
import hashlib
import json
import lzma
import math
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Of spirv_cross_c.h and spirv.h, whose values are stable.
_BACKEND_MSL, _TAKE_OWNERSHIP = 3, 1
_OPTION_MSL_VERSION = 17 | 0x8000000
_MSL_2_3 = 20300
_GL_COMPUTE = 5
_PUSH_SET, _PUSH_BINDING, _PUSH_BUFFER = 0xFFFFFFFF, 0, 30


class ShaderError(Exception):
    """What is wrong with one kernel."""


@dataclass(frozen=True)
class Variant:
    name: str
    file: str  # from the folder of the GPU back ends
    defines: tuple[str, ...]
    f16: bool

    @property
    def metal(self) -> bool:
        """Written by hand for Metal."""
        return self.file.endswith(".metal")


@dataclass
class Manifest:
    """What a driver must know of a module. See KernelCode in kernel_code.h."""

    bindings: int
    written: int
    push_bytes: int
    spec_constants: int
    local: tuple[int, int, int]
    shared_bytes: int
    linear: bool
    simdgroup_matrices: bool = False


ROOT = Path(__file__).resolve().parents[1]
UNARY = ROOT / "cpp/ops/unary.inc"


def unary_rows() -> list[list[str]]:
    """The rows of unary.inc: kind, name, use, parameters, and the formulas, of which GLSL's is the last."""
    rows: list[list[str]] = []
    depth = 0
    for token in re.findall(r"^UNARY\w*\(|[(),\n]|[^(),\n]+", re.sub(r"//[^\n]*", "", UNARY.read_text()), re.MULTILINE):
        if token.startswith("UNARY"):
            rows.append([""])
            depth = 1
            continue
        depth += (token == "(") - (token == ")")
        if depth == 1 and token == ",":
            rows[-1].append("")
        elif depth > 0:
            rows[-1][-1] += token
    return [[" ".join(column.split()) for column in row] for row in rows]


def variants(folder: Path) -> list[Variant]:
    functions = re.findall(r"^FUNCTION\((\w+)\)", (folder / "functions.inc").read_text(), re.MULTILINE)
    functions += [name for _, name, use, *_ in unary_rows() if use != "POWER"]
    codes = [f"FN_{name}={i}" for i, name in enumerate(functions)]
    found = []
    for path in folder.glob("*/kernels.inc"):
        family = path.parent.name
        for name, file, storage, defines in re.findall(
            r'^KERNEL\((\w+), "([^"]+)", "([^"]+)", "([^"]*)", \w+, \w+\)', path.read_text(), re.MULTILINE
        ):
            for kind in storage.split():
                if kind not in ("f32", "f16", "any"):
                    raise ShaderError(f"{family}/kernels.inc: {name}: storage {kind!r} is not one of f32, f16, any")
                own = (*defines.split(), *codes, *(["STORAGE_F16"] if kind == "f16" else []))
                full = name if kind == "any" else f"{name}_{kind}"
                found.append(Variant(full, f"{family}/{file}", own, kind == "f16"))
    return sorted(found, key=lambda v: v.name)


# ---- SPIR-V ---------------------------------------------------------------------------------------------------------


def instructions(words: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Opcode and operands of each instruction of a module."""
    at = 5
    while at < len(words):
        count, op = words[at] >> 16, words[at] & 0xFFFF
        yield op, words[at + 1 : at + count]
        at += count


def reflect(words: tuple[int, ...]) -> Manifest:
    """Reads the manifest off a module and refuses what breaks the kernel rules (docs/gpu.md)."""
    sets: dict[int, int] = {}
    bindings: dict[int, int] = {}
    read_only: set[int] = set()  # members of struct types that are never written
    offsets: dict[int, int] = {}
    spec: set[int] = set()
    pointers: dict[int, tuple[int, int]] = {}
    variables: dict[int, tuple[int, int]] = {}
    sizes: dict[int, int] = {}
    constants: dict[int, int] = {}
    spec_results: set[int] = set()
    int_types: set[int] = set()
    local = (1, 1, 1)
    shared = 0
    linear = False
    for op, w in instructions(words):
        if op == 17 and w[0] in (10, 11):
            raise ShaderError("no double and no 64-bit integers")
        if op == 16 and w[1] == 17:
            local = (w[2], w[3], w[4])
        elif op == 71:  # decorations of results
            if w[1] == 34:
                sets[w[0]] = w[2]
            elif w[1] == 33:
                bindings[w[0]] = w[2]
            elif w[1] == 1:
                spec.add(w[2])
            elif w[1] == 24:
                read_only.add(w[0])
            elif w[1] == 11 and w[2] == 24:  # the number of groups, which only linear_group() asks for
                linear = True
        elif op == 72:  # of members
            if w[2] == 35:
                offsets[w[0]] = max(offsets.get(w[0], 0), w[3])
            elif w[2] == 24:
                read_only.add(w[0])
        elif op == 21:
            sizes[w[0]] = w[1] // 8
            int_types.add(w[0])
        elif op == 22:
            sizes[w[0]] = w[1] // 8
        elif op == 23:
            sizes[w[0]] = sizes.get(w[1], 0) * w[2]  # 0: of bool, which no memory holds
        elif op == 43 and len(w) == 3:
            constants[w[1]] = w[2]
        elif op == 50:
            if w[0] not in int_types:
                raise ShaderError("specialisation constants are integers")
            spec_results.add(w[1])
        elif op in (48, 49):
            raise ShaderError("specialisation constants are integers")
        elif op == 28:
            if w[2] in spec_results or w[2] not in constants:
                raise ShaderError("the size of an array is no specialisation constant")
            sizes[w[0]] = sizes.get(w[1], 0) * constants[w[2]]
        elif op == 32:
            pointers[w[0]] = (w[1], w[2])
        elif op == 59:
            variables[w[1]] = (w[2], pointers[w[0]][1])
    written = 0
    for variable, (storage, pointee) in variables.items():
        if storage == 4:
            shared += sizes[pointee]
        if storage not in (2, 12):
            continue
        if sets.get(variable, -1) != 0 or bindings.get(variable, 99) > 15:
            raise ShaderError("buffers are set 0, bindings 0 to 15")
        if variable not in read_only and pointee not in read_only:
            written |= 1 << bindings[variable]
    push = [pointee for storage, pointee in variables.values() if storage == 9]
    push_bytes = offsets[push[0]] + 4 if push else 0
    numbers_count(sorted(bindings.values()), sorted(spec))
    return within_limits(Manifest(len(bindings), written, push_bytes, len(spec), local, shared, linear))


def numbers_count(bindings: list[int], spec: list[int]) -> None:
    if bindings != list(range(len(bindings))):
        raise ShaderError(f"bindings count from 0 without gaps, are {bindings}")
    if spec != list(range(len(spec))):
        raise ShaderError(f"specialisation constants count from 0 without gaps, are {spec}")


def within_limits(m: Manifest) -> Manifest:
    if m.bindings > 16:
        raise ShaderError("buffers are bindings 0 to 15")
    if m.push_bytes > 128:
        raise ShaderError(f"{m.push_bytes} bytes of push constants, at most 128")
    if m.local[0] * m.local[1] * m.local[2] > 256:
        raise ShaderError("more than 256 invocations in a workgroup")
    if m.shared_bytes > 16384:
        raise ShaderError(f"{m.shared_bytes} bytes of shared memory, at most 16384")
    return m


def shared_texts(folder: Path, variant: Variant) -> bytes:
    """All that the variant's file may include: from shaders/ and from its own folder."""
    places = (folder / "shaders", (folder / variant.file).parent)
    texts = [path for place in places for path in (*place.glob("*.glsl"), *place.glob("params.inc"))]
    return UNARY.read_bytes() + b"".join(path.read_bytes() for path in sorted(texts))


def compile_variant(
    folder: Path, cache: Path, variant: Variant, key: str, tools: tuple[str, str, str], *flags: str
) -> bytes:
    """Compiled, with results numbered as they come, which makes spirv_streams smaller, and validated."""
    spv = cache / f"{variant.name}.{key}.compact.spv"
    if not spv.is_file():
        for old in cache.glob(f"{variant.name}.*.spv"):
            old.unlink()
        compiled, partial = spv.with_suffix(".compiled"), spv.with_suffix(".tmp")
        command = [tools[0], "-O", "--target-env=vulkan1.1", f"-I{folder / 'shaders'}", f"-I{ROOT / 'cpp'}", *flags]
        command += [f"-D{d}" for d in variant.defines]
        for step in (
            [*command, str(folder / variant.file), "-o", str(compiled)],
            [tools[1], "--compact-ids", str(compiled), "-o", str(partial)],
            [tools[2], "--target-env", "vulkan1.1", str(partial)],
        ):
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ShaderError(f"{variant.name}: {step[0]}: {done.stdout}{done.stderr}")
        compiled.unlink()
        partial.replace(spv)
    return spv.read_bytes()


# ---- Metal's text ---------------------------------------------------------------------------------------------------


class _ResourceBinding(ctypes.Structure):
    _fields_ = [
        (n, ctypes.c_uint) for n in ("stage", "desc_set", "binding", "msl_buffer", "msl_texture", "msl_sampler")
    ]


class SpirvCross:
    """The few calls of spirv-cross's C interface that are needed."""

    def __init__(self, library: str) -> None:
        self.lib = ctypes.CDLL(library)
        self.lib.spvc_context_get_last_error_string.restype = ctypes.c_char_p

    def msl(self, words: bytes, name: str, bindings: int, push: bool) -> str:
        lib, void = self.lib, ctypes.c_void_p
        context, ir, compiler, options, text = void(), void(), void(), void(), ctypes.c_char_p()

        def check(result: int) -> None:
            if result:
                message = lib.spvc_context_get_last_error_string(context) if context else b"no context"
                raise ShaderError(f"{name}: spirv-cross: {message.decode()}")

        check(lib.spvc_context_create(ctypes.byref(context)))
        try:
            check(lib.spvc_context_parse_spirv(context, words, ctypes.c_size_t(len(words) // 4), ctypes.byref(ir)))
            check(lib.spvc_context_create_compiler(context, _BACKEND_MSL, ir, _TAKE_OWNERSHIP, ctypes.byref(compiler)))
            check(lib.spvc_compiler_create_compiler_options(compiler, ctypes.byref(options)))
            check(lib.spvc_compiler_options_set_uint(options, _OPTION_MSL_VERSION, _MSL_2_3))
            check(lib.spvc_compiler_install_compiler_options(compiler, options))
            check(lib.spvc_compiler_rename_entry_point(compiler, b"main", name.encode(), _GL_COMPUTE))
            places = [(0, n, n) for n in range(bindings)]
            if push:
                places.append((_PUSH_SET, _PUSH_BINDING, _PUSH_BUFFER))
            for descriptor_set, binding, buffer in places:
                entry = _ResourceBinding()
                lib.spvc_msl_resource_binding_init(ctypes.byref(entry))
                entry.stage, entry.desc_set, entry.binding, entry.msl_buffer = (
                    _GL_COMPUTE,
                    descriptor_set,
                    binding,
                    buffer,
                )
                check(lib.spvc_compiler_msl_add_resource_binding(compiler, ctypes.byref(entry)))
            check(lib.spvc_compiler_compile(compiler, ctypes.byref(text)))
            return (text.value or b"").decode()
        finally:
            lib.spvc_context_destroy(context)


def lists_of(folder: Path, family: str) -> dict[str, str]:
    """The lists of a family's params.inc, by name."""
    text = (folder / family / "params.inc").read_text().replace("\\\n", " ")
    return dict(re.findall(r"^#define (\w+) (.*)$", text, re.MULTILINE))


def spec_constants(folder: Path, family: str, name: str) -> list[str]:
    """The names in a list of specialisation constants, by number: the order of the struct that the host fills."""
    lists = lists_of(folder, family)
    names: list[str] = []
    for kind, inner, other in re.findall(r"SPEC_(\w+)\(([^)]*)\)|(\w+)", lists[name]):
        if other:
            names += spec_constants(folder, family, other)
            continue
        number, *members, _ = (part.strip() for part in inner.split(","))
        if int(number) != len(names):
            raise ShaderError(f"{family}/params.inc: {name}: {members[0]} is number {number}, comes as {len(names)}")
        names += members if kind == "INT" else members[1:]
    return names


def push_members(folder: Path, family: str, name: str) -> str:
    """The members that a list of a family's params.inc stands for."""
    lists = lists_of(folder, family)
    members = []
    for kind, member, other in re.findall(r"PUSH_(\w+)\((\w+)[^)]*\)|(\w+)", lists[name]):
        if other:
            members.append(push_members(folder, family, other))
        elif kind in ("INT", "FLOAT"):
            members.append(f"{kind.lower()} {member};")
        else:
            raise ShaderError(f"{family}/params.inc: {name}: PUSH_{kind} is for GLSL alone")
    return " ".join(members)


def function_constants(names: list[str]) -> str:
    """Metal's declarations of specialisation constants."""
    return "\n".join(f"constant int {name} [[function_constant({i})]];" for i, name in enumerate(names))


def own_text(folder: Path, variant: Variant, text: str | None = None) -> str:
    """A hand-written kernel of one storage type; `text`: instead of its file's."""
    if text is None:
        text = (folder / variant.file).read_text()
    text = re.sub(r'#include "(\w+\.metal)"\n', lambda m: (folder / "shaders" / m[1]).read_text(), text)
    family = variant.file.split("/")[0]
    text = text.replace('#include "params.inc"\n', "")
    text = re.sub(r"\b\w+_PARAMS\b", lambda m: push_members(folder, family, m[0]), text)
    text = re.sub(r"\b\w+_CONSTANTS\b", lambda m: function_constants(spec_constants(folder, family, m[0])), text)
    cases = [f"        case FN_{name}: return {row[-1]};\n" for _, name, use, *row in unary_rows() if use == "EPILOGUE"]
    text = text.replace('#include "ops/unary.inc"\n', "".join(cases))
    line = variant.name.removesuffix("_f16").removesuffix("_f32")
    text, entries = re.subn(rf"\bkernel void {line}\(", f"kernel void {variant.name}(", text)
    if entries != 1:
        raise ShaderError(f"{variant.file}: {entries} kernels named {line}")
    codes = [d for d in variant.defines if re.search(rf"\b{d.split('=')[0]}\b", text)]
    s = "half" if variant.f16 else "float"
    front = ["#include <metal_stdlib>", "using namespace metal;", f"typedef {s} S;", f"typedef {s}4 S4;"]
    return "\n".join([*front, f"enum {{ {', '.join(codes)} }};", text])


_SIZES = {"float": 4, "int": 4, "uint": 4, "half": 2, "float4": 16, "half4": 8}


def read_metal(text: str) -> Manifest:
    """Reads the manifest off a hand-written kernel: its local size is the enumerator LOCAL, its push constants are the
    32-bit members of the struct Params, its threadgroup arrays have numbers as sizes."""
    text = re.sub(r"//[^\n]*", "", text)
    bound = {int(n): before for before, n in re.findall(r"([^,(]*)\[\[buffer\((\d+)\)\]\]", text)}
    push = bound.pop(30, None)
    numbers_count(sorted(bound), sorted(map(int, re.findall(r"\[\[function_constant\((\d+)\)\]\]", text))))
    members = re.search(r"struct Params\s*\{([^}]*)\};", text)
    words = re.findall(r"\b(\w+) \w+;", members[1]) if members else []
    if set(words) - {"int", "float"} or (push is None) != (members is None):
        raise ShaderError("push constants are the ints and floats of a struct Params")
    local = re.search(r"\bLOCAL = (\d+)\b", text)
    arrays = re.findall(r"\bthreadgroup (\w+) \w+\[(\w+)\];", text)
    if not local or len(arrays) != len(re.findall(r"\bthreadgroup\s+\w+\s+\w+", text)):
        raise ShaderError("LOCAL is the number of invocations, threadgroup variables are arrays of one dimension")
    return within_limits(
        Manifest(
            len(bound),
            sum(1 << n for n, before in bound.items() if not re.search(r"\bconst\b", before)),
            4 * len(words),
            len(re.findall(r"function_constant", text)),
            (int(local[1]), 1, 1),
            sum(_SIZES[element] * int(size) for element, size in arrays),
            "threadgroups_per_grid" in text,
            "simdgroup_load" in text,
        )
    )


# ---- SPIR-V as cpp/backends/gpu/kernel_code.cc reads it -------------------------------------------------------------

_POSITIONS = 6  # operands of an instruction that are told apart; the last stands for all that follow
# Instructions without a result, and those whose result is not preceded by its type; in the rest it is operand 1.
_NO_RESULT = {0, *range(2, 7), 8, 10, 14, 15, 16, 17, 39, 56, 62, 63, 71, 72, 74, 75, 218, 219, 220, 224, 225, 246, 247}
_NO_RESULT |= {*range(249, 256), 317}
_NO_TYPE = {7, 11, *range(19, 39), 73, 248}


def _varint(value: int, to: bytearray) -> None:
    while value >= 128:
        to.append(value & 127 | 128)
        value >>= 7
    to.append(value)


def _bits(counted: dict[int, int]) -> float:
    """About how many bits values of these frequencies take."""
    total = sum(counted.values())
    return sum(n * math.log2(total / n) for n in counted.values()) + 8 * len(counted)


def spirv_streams(modules: list[tuple[int, ...]]) -> bytes:
    """Modules as numbers of few distinct values, sorted by what they are, which LZMA makes a quarter as large.

    An operand belongs to the stream of its opcode and position. First the number of opcodes; for each position, for
    each opcode its stream's size * 4 + mode: 0 the operand as it is; 1 how far it is before the last result, since
    results are numbered about in order; 2 the same, and this operand is the next result. Then the number of different
    instructions, and each one's opcode + 512 * words, the most frequent first; 0 begins a module, whose five first
    words are its operands. Then the streams in the order of their sizes, and the instructions by their places in that
    list. Numbers are LEB128; signs are in the lowest bit.
    """
    listed: list[tuple[int, list[tuple[int, int]]]] = []  # opcode and words; operands, as they are and as distances
    plain: dict[tuple[int, int], dict[int, int]] = collections.defaultdict(collections.Counter)
    distances: dict[tuple[int, int], dict[int, int]] = collections.defaultdict(collections.Counter)
    for words in modules:
        last = 0
        listed.append((0, [(word, word) for word in words[:5]]))
        for op, operands in instructions(words):
            if not 0 < op < 512:
                raise ShaderError(f"instruction {op} is not from 1 to 511")
            result = None if op in _NO_RESULT else 0 if op in _NO_TYPE else 1
            coded = []
            for k, value in enumerate(operands):
                distance = (last - value + (1 << 31)) % (1 << 32) - (1 << 31)
                coded.append((value, abs(distance) * 2 - (distance < 0)))
                plain[min(k, _POSITIONS - 1), op][value] += 1
                distances[min(k, _POSITIONS - 1), op][coded[-1][1]] += 1
                if k == result:
                    last = value
            listed.append((op | len(operands) + 1 << 9, coded))
    modes: dict[tuple[int, int], int] = collections.defaultdict(int)
    for (k, op), counted in plain.items():
        if op not in _NO_RESULT and k == (op not in _NO_TYPE):
            modes[k, op] = 2
        elif _bits(distances[k, op]) < _bits(counted):
            modes[k, op] = 1
    heads = [head for head, _ in collections.Counter(head for head, _ in listed).most_common()]
    place = {head: n for n, head in enumerate(heads)}
    of_instructions = bytearray()
    streams: dict[tuple[int, int], bytearray] = collections.defaultdict(bytearray)
    for head, values in listed:
        _varint(place[head], of_instructions)
        for k, both in enumerate(values):
            stream = min(k, _POSITIONS - 1), head % 512
            _varint(both[modes[stream] != 0], streams[stream])
    opcodes = max(head % 512 for head in heads) + 1
    order = [(k, op) for k in range(_POSITIONS) for op in range(opcodes)]
    start = bytearray()
    _varint(opcodes, start)
    for stream in order:
        _varint(len(streams[stream]) << 2 | modes[stream], start)
    _varint(len(heads), start)
    for head in heads:
        _varint(head, start)
    return bytes(start) + b"".join(streams[stream] for stream in order) + of_instructions


def lzma_stream(data: bytes) -> bytes:
    """LZMA without a header, of the parameters that cpp/base/lzma.h reads."""
    parameters = {
        "id": lzma.FILTER_LZMA1,
        "preset": 9 | lzma.PRESET_EXTREME,
        "nice_len": 273,
        "lc": 1,
        "lp": 0,
        "pb": 0,
    }
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=[parameters])


# ---- the generated file ---------------------------------------------------------------------------------------------


def write(output: Path, made: list[tuple[Variant, bytes, str, Manifest]]) -> None:
    lines = [
        "// Generated by cmake/shaders.py from cpp/backends/gpu: do not edit.",
        '#include "backends/gpu/kernel_code.h"',
        "",
    ]
    # Only Apple's systems compile Metal's text; elsewhere softmetal's library has the kernels.
    lines += ["#if defined(__APPLE__)", "#define METAL(text) text", "#else", "#define METAL(text) {}", "#endif", ""]
    streams = spirv_streams([struct.unpack(f"<{len(spirv) // 4}I", spirv) for _, spirv, _, _ in made if spirv])
    lines += ["namespace pinnace::gpu {", "namespace {"]
    lines.append(f"constexpr unsigned char kPacked[] = {{{','.join(map(str, lzma_stream(streams)))}}};")
    lines.append(f"uint32_t words[{sum(len(spirv) for _, spirv, _, _ in made) // 4}];")
    rows = []
    first = 0
    for v, spirv, msl, m in made:
        count = len(spirv) // 4
        rows.append(
            f'    {{"{v.name}", {{words + {first}, {count}}}, METAL(R"msl({msl})msl"), {m.bindings}, {m.written}, '
            f"{m.push_bytes}, {m.spec_constants}, {{{m.local[0]}, {m.local[1]}, {m.local[2]}}}, {m.shared_bytes}, "
            f"{str(v.f16).lower()}, {str(m.linear).lower()}, {str(m.simdgroup_matrices).lower()}}},"
        )
        first += count
    lines += ["constexpr KernelCode kKernels[] = {", *rows, "};"]
    texts = (spirv + repr((v, m)).encode() + (msl.encode() if v.metal else b"") for v, spirv, msl, m in made)
    hashed = hashlib.sha256(b"".join(texts)).hexdigest()[:16]
    lines += [
        "}  // namespace",
        "std::span<const KernelCode> all_kernels() {",
        f"  static const bool unpacked = (unpack_words(kPacked, {len(streams)}, words), true);",
        "  (void)unpacked;",
        "  return kKernels;",
        "}",
    ]
    lines += [f"uint64_t kernels_hash() {{ return 0x{hashed}u; }}", "}  // namespace pinnace::gpu", ""]
    output.write_text("\n".join(lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("spirv_cross")
    parser.add_argument("--glslc", default="glslc")
    parser.add_argument("--spirv-opt", default="spirv-opt")
    parser.add_argument("--spirv-val", default="spirv-val")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    cache = options.output.parent / "shader_cache"
    cache.mkdir(parents=True, exist_ok=True)

    def key(v: Variant) -> str:
        text = shared_texts(options.folder, v) + (options.folder / v.file).read_bytes() + repr(v).encode()
        return hashlib.sha256(text).hexdigest()[:16]

    tools = (options.glslc, options.spirv_opt, options.spirv_val)
    try:
        wanted = variants(options.folder)
        for family in {v.file.split("/")[0] for v in wanted}:
            for name in lists_of(options.folder, family):
                if name.endswith("_CONSTANTS"):
                    spec_constants(options.folder, family, name)

        def module(v: Variant) -> bytes:
            return b"" if v.metal else compile_variant(options.folder, cache, v, key(v), tools)

        with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            modules = list(pool.map(module, wanted))
        cross = SpirvCross(options.spirv_cross)
        made = []
        for v, spirv in zip(wanted, modules, strict=True):
            msl = own_text(options.folder, v) if v.metal else ""
            try:
                manifest = read_metal(msl) if v.metal else reflect(struct.unpack(f"<{len(spirv) // 4}I", spirv))
            except ShaderError as error:
                raise ShaderError(f"{v.name}: breaks a kernel rule: {error}") from error
            if not v.metal:
                msl = cross.msl(spirv, v.name, manifest.bindings, manifest.push_bytes > 0)
            made.append((v, spirv, msl, manifest))
    except ShaderError as error:
        print(f"shaders: {error}", file=sys.stderr)
        return 1
    write(options.output, made)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        for old in options.keep.iterdir():  # of kernels that are no more
            old.unlink()
        for v, spirv, msl, manifest in made:
            if spirv:
                (options.keep / f"{v.name}.spv").write_bytes(spirv)
            (options.keep / f"{v.name}.metal").write_text(msl)
            (options.keep / f"{v.name}.json").write_text(json.dumps(manifest.__dict__))
    return 0


if __name__ == "__main__":
    sys.exit(main())
