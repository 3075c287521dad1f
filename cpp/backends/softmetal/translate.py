"""Rewrites Metal Shading Language as C++ for clang with language/metal.h, and lists the kernels for the engine.

    translate.py OUT_FOLDER BATCHES IN_FOLDER     IN_FOLDER/*.metal to OUT_FOLDER/kernels_0.cc, ..., kernel_table.cc

Files go to batches by their names, so that a new kernel leaves the others where they are.

Line for line, so that compilers and faults name the line of the .metal file. What macros cannot do, and this does:

  storage buffers     struct { T x[1]; } becomes softmetal::buffer<T>, whose accesses are checked
  pointers            device T*, constant T*, threadgroup T* become softmetal::pointer<T>, which knows its bounds
  threadgroup arrays  are looked up in the engine's memory; writes are told from reads by the text, x[i] = ...
  function constants  and constants derived from them are set by a function that runs before each dispatch
  kernels             get a function that binds [[buffer(n)]] and the ids, listed under the kernel's name
  literals            1.0h becomes 1.0f16, 1.0 becomes 1.0f

It takes what spirv-cross writes, and hand-written Metal that keeps to: one threadgroup variable per statement, no
overloads that differ by address space only, float4(h) instead of (float4)h, no [[host_name]] templates, no textures.
What it does not take it refuses with file, line and reason.
"""

from __future__ import annotations

import itertools
import re
import sys
import zlib
from pathlib import Path

# Attribute of a kernel's parameter -> the expression for axis or scalar, and whether it has axes.
BUILTINS = {
    "thread_position_in_grid": ("i.thread_in_grid({})", True),
    "thread_position_in_threadgroup": ("i.thread_in_group[{}]", True),
    "threadgroup_position_in_grid": ("i.grid->group_in_grid[{}]", True),
    "threads_per_threadgroup": ("i.grid->group_size[{}]", True),
    "threadgroups_per_grid": ("i.grid->groups[{}]", True),
    "threads_per_grid": ("i.grid->grid_size[{}]", True),
    "thread_index_in_threadgroup": ("i.index", False),
    "thread_index_in_simdgroup": ("i.lane", False),
    "simdgroup_index_in_threadgroup": ("i.simdgroup", False),
    "threads_per_simdgroup": ("i.grid->simd_width", False),
    "thread_execution_width": ("i.grid->simd_width", False),
    "simdgroups_per_threadgroup": ("i.grid->simdgroups", False),
}

SPACE = r"(?:device|constant|threadgroup)"
TYPE = r"[A-Za-z_][\w:]*(?:<[\w:, ]+>)?"
POINTER = re.compile(
    rf"(?P<before>\(\s*)?\b(?P<c1>const\s+)?(?P<space>{SPACE})\s+(?P<c2>const\s+)?(?P<type>{TYPE})\s*(?P<c3>const\s*)?"
    r"\*\s*(?P<restrict>restrict\s+)?(?P<c4>const\b\s*)?(?P<cast>\s*\))?"
)
FIBERS = re.compile(r"\b(?:threadgroup_barrier|simdgroup_\w+|simd_\w+|threadgroup)\b")


class Untranslatable(Exception):
    """What the text has that this does not take; the message has file and line."""


class Source:
    """One .metal file on its way to C++; every step keeps the number of lines."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.constants: list[str] = []  # statements that set function constants

    def refuse(self, at: int, why: str) -> Untranslatable:
        return Untranslatable(f"{self.path}:{self.text.count(chr(10), 0, at) + 1}: {why}")

    def sub(self, pattern: str, to: object, flags: int = 0) -> None:
        self.text = re.sub(pattern, to, self.text, flags=flags)  # type: ignore[call-overload]


def blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def close(text: str, at: int, pair: str = "()") -> int:
    """The position behind the bracket that closes the one before `at`."""
    depth = 1
    while depth:
        depth += (text[at] == pair[0]) - (text[at] == pair[1])
        at += 1
    return at


def split_top(text: str) -> list[str]:
    """The parts between commas that stand outside of all brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([<{") - (char in ")]>}")
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text[start:].strip() else parts


def clean(source: Source) -> None:
    """Drops comments, headers and what language/ has anyway."""
    source.sub(r"//[^\n]*|/\*.*?\*/", blank, re.DOTALL)
    source.sub(r"#[ \t]*include[ \t]*<(?:metal_\w+|simd/simd\.h)>", "")
    source.sub(r"#[ \t]*pragma[ \t]+clang[^\n]*", "")
    if found := re.search(r"#[ \t]*include", source.text):
        raise source.refuse(found.start(), "includes a file that is not Metal's")
    if found := re.search(r"\[\[\s*host_name", source.text):
        raise source.refuse(found.start(), "[[host_name]]: write one kernel per variant")
    if found := re.search(r"\b(?:texture\w+|sampler)\s*[<\s]", source.text):
        raise source.refuse(found.start(), "textures are not executed")
    source.sub(r"template<typename T, size_t Num>\s*struct spvUnsafeArray\s*\{.*?\n\};\n", blank, re.DOTALL)
    source.sub(r"\[\[\s*kernel\s*\]\]", "kernel")
    source.sub(r"\[\[\s*(?:maybe_unused|max_total_threads_per_threadgroup\(\w+\)|clang::optnone)\s*\]\]", "")
    number = r"(?<![\w.])((?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)[hH]\b"
    source.sub(number, lambda m: (m[1] if re.search(r"[.eE]", m[1]) else m[1] + ".0") + "f16")
    source.sub(
        r"(?<![\w.])(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])", r"\g<0>f"
    )  # Metal has no double


def function_constants(source: Source) -> None:
    names: set[str] = set()

    def declared(m: re.Match[str]) -> str:
        type_, name, index = m.groups()
        names.add(name)
        source.constants.append(
            f"{name} = softmetal::constant_value<{type_}>({index}); "
            f"{name}_is_defined = softmetal::function_constant({index}) != nullptr;"
        )
        return f"static {type_} {name}; static bool {name}_is_defined;"

    def derived(m: re.Match[str]) -> str:
        type_, name, value = m.groups()
        if not set(re.findall(r"\w+", value)) & names:
            return m[0]
        names.add(name)
        source.constants.append(f"{name} = {value};")
        return f"static {type_} {name};"

    source.sub(r"constant (\w+) (\w+) \[\[\s*function_constant\((\d+)\)\s*\]\];", declared)
    source.sub(r"^constant (\w+) (\w+) = (.*?);[ \t]*$", derived, re.MULTILINE)


def storage_buffers(source: Source) -> dict[str, str]:
    """Struct -> member, of structs that are an open array; their text becomes that of a checked one."""
    used = set(re.findall(r"\bdevice\s+(?:const\s+)?(\w+)\s*&", source.text))
    found: dict[str, str] = {}

    def struct(m: re.Match[str]) -> str:
        name, body = m.groups()
        members = [part.strip() for part in body.split(";") if part.strip()]
        last = re.fullmatch(r"(.+?)\s+(\w+)\s*\[1\]", members[-1], re.DOTALL) if members else None
        if name not in used or not last:
            return m[0]
        if len(members) > 1:
            raise source.refuse(m.start(), f"struct {name}: a storage buffer with members before its array")
        found[name] = last[2]
        lines = "\n" * m[0].count("\n")
        return f"struct {name} {{ softmetal::buffer<{last[1]}> {last[2]}; }};{lines}"

    source.sub(r"\bstruct\s+(\w+)\s*\{([^{}]*)\};", struct)
    return found


def argument(source: Source, parameter: str, at: int, buffers: dict[str, str]) -> tuple[str, str]:
    """One parameter of a kernel -> a statement before the call, and the expression that is passed."""
    attribute = re.search(r"\[\[\s*(\w+)\s*(?:\(\s*(\d+)\s*\))?\s*\]\]", parameter)
    if not attribute:
        raise source.refuse(at, f"parameter without an attribute that can be bound: {parameter.strip()}")
    name, index = attribute.groups()
    declared = re.match(r"(.*?)(\w+)\s*$", parameter[: attribute.start()].strip(), re.DOTALL)
    assert declared
    whole, variable = declared[1].strip(), declared[2]
    base = re.sub(r"\b(?:device|constant|threadgroup|const)\b|[&*]", "", whole).strip()
    if name in ("buffer", "threadgroup") and "*" in whole:
        const = "const " if re.search(r"\bconst(?:ant)?\b", whole) else ""
        bound = "bound_pointer" if name == "buffer" else "threadgroup_pointer"
        return "", f"softmetal::{bound}<{const}{base}>(a, {index})"
    if name == "buffer" and base in buffers:
        return f"{base} b_{variable}; softmetal::bind(b_{variable}.{buffers[base]}, a, {index}); ", f"b_{variable}"
    if name == "buffer":
        return "", f"softmetal::block<{base}>(a, {index})"
    if name not in BUILTINS:
        raise source.refuse(at, f"[[{name}]] is not known")
    value, axes = BUILTINS[name]
    if not axes:
        return "", f"({base}){value}"
    if base[-1] in "23":
        return "", f"{base}({', '.join(value.format(axis) for axis in range(int(base[-1])))})"
    return "", f"({base}){value.format(0)}"


def kernels(source: Source, buffers: dict[str, str]) -> str:
    """What follows the text: per kernel, the functions that bind its parameters and its entry for the table."""
    found = list(re.finditer(r"\bkernel\s+void\s+(\w+)\s*\(", source.text))
    if not found:
        raise source.refuse(0, "no `kernel void`")
    tail = f"static void specialise() {{ {' '.join(source.constants)} }}\n"
    plain = re.sub(r"\[\[.*?\]\]", "", source.text)
    fibers = FIBERS.search(plain) is not None
    for match in found:
        name = match[1]
        parameters = split_top(source.text[match.end() : close(source.text, match.end()) - 1])
        bound = [argument(source, parameter, match.start(), buffers) for parameter in parameters]
        call = f"{''.join(before for before, _ in bound)}{name}({', '.join(value for _, value in bound)});"
        tail += (
            f"static void invoke_{name}(const softmetal::Arguments& a, const softmetal::Invocation& i) {{ {call} }}\n"
        )
        pair = f"invoke_{name}, nullptr"
        if not fibers:
            tail += (
                f"static void invoke_all_{name}(const softmetal::Arguments& a, const softmetal::Invocation* all, "
                f"const uint32_t* order, uint32_t count) {{ for (uint32_t k = 0; k < count; k++) "
                f"invoke_{name}(a, all[order[k]]); }}\n"
            )
            pair = f"nullptr, invoke_all_{name}"
        tail += (
            f'extern "C" const softmetal::Kernel softmetal_kernel_{name}; '
            f'const softmetal::Kernel softmetal_kernel_{name} = {{"{name}", {pair}, specialise}};\n'
        )
    return tail


def pointers(source: Source) -> None:
    def rewritten(m: re.Match[str]) -> str:
        if m["before"] and m["cast"]:  # a cast: what it is assigned to looks its bounds up
            return m[0]
        const = "const " if m["c1"] or m["c2"] or m["c3"] or m["space"] == "constant" else ""
        return f"{m['before'] or ''}softmetal::pointer<{const}{m['type']}> {m['cast'] or ''}"

    source.text = POINTER.sub(rewritten, source.text)


def threadgroup_arrays(source: Source) -> None:
    names: list[str] = []
    if found := re.search(r"\n[ \t]+threadgroup\s[^;(){}*&]*[\]\w][ \t]*,[^;(){}]*;", source.text):
        raise source.refuse(found.start() + 1, "declare one threadgroup variable per statement")

    def sizes(text: str) -> str:
        return ", ".join(f"({size})" for size in re.findall(r"\[([^\]]*)\]", text))

    def variable(m: re.Match[str]) -> str:
        type_, name, extents = m.groups()
        key = len(names)
        names.append(name if extents else "")
        if extents:
            return f'auto {name} = softmetal::make_group_variable<{type_}, {sizes(extents)}>({key}, "{name}");'
        return (
            f"{type_}& {name} = *static_cast<{type_}*>"
            f'(softmetal::threadgroup_variable({key}, sizeof({type_}), "{name}", __LINE__));'
        )

    source.sub(rf"\bthreadgroup\s+({TYPE})\s+(\w+)((?:\s*\[[^\]]*\])*)\s*;", variable)
    if len(names) > 48:
        raise source.refuse(0, "more than 48 threadgroup variables")

    def parameter(m: re.Match[str]) -> str:
        type_, name, extents = m.groups()
        names.append(name)
        return f"softmetal::group_variable<{type_}, {sizes(extents)}> {name}"

    source.sub(rf"(?:const\s+)?\bthreadgroup\s+(?:const\s+)?({TYPE})\s*\(&\s*(\w+)\)((?:\[[^\]]*\])+)", parameter)
    for name in sorted({name for name in names if name}):
        source.text = mark_accesses(source.text, name)


def mark_accesses(text: str, name: str) -> str:
    """x[i] = ... becomes x.write()[i] = ..., and where an address or a component is taken x.unordered()[i]."""
    out, last = [], 0
    for m in re.finditer(rf"(?P<and>&\s*)?(?<![\w.])\b{name}\s*(?=\[)", text):
        at = m.end()
        while text[at : at + 1] == "[":
            at = close(text, at + 1, "[]")
            while text[at : at + 1] in (" ", "\t"):
                at += 1
        component = re.match(r"\.[xyzwrgba]+\s*", text[at:])
        after = text[at + (component.end() if component else 0) :]
        writes = re.match(r"=(?!=)|(?:[-+*/%&|^]|<<|>>)=|\+\+|--", after) is not None
        before = text[: m.start()].rstrip()
        # An address: behind no operand, or behind a cast to a pointer.
        if m["and"] and (re.search(r"\*\s*\)$", before) or not re.search(r"[\w)\]]$", before)):
            how = ".unordered()"
        elif writes:
            # Components of one vector belong to different invocations where the kernel says so.
            how = ".unordered()" if component else ".write()"
        else:
            continue
        out.append(text[last : m.end()] + how)
        last = m.end()
    return "".join([*out, text[last:]])


def translate(path: Path) -> tuple[str, list[str]]:
    """The C++ of a file, and the names of its kernels."""
    source = Source(path, path.read_text())
    clean(source)
    function_constants(source)
    buffers = storage_buffers(source)
    tail = kernels(source, buffers)
    names = re.findall(r"\bkernel\s+void\s+(\w+)\s*\(", source.text)
    source.sub(r"\[\[\s*\w+\s*(?:\(\s*\w+\s*\))?\s*\]\]", "")  # bound by now
    pointers(source)
    threadgroup_arrays(source)
    return (
        f"namespace softmetal_{re.sub(r'[^A-Za-z0-9]', '_', path.stem)} {{\n"
        f'#line 1 "{path.name}"\n{source.text}\n#line 1 "{path.name} (bindings)"\n{tail}}}\n',
        names,
    )


def write_if_changed(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def main() -> int:
    folder, batches, texts = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    parts = ['#include "backends/softmetal/language/metal.h"\n'] * batches
    try:
        for path in sorted(texts.glob("*.metal")):
            text, found = translate(path)
            names += found
            parts[zlib.crc32(path.stem.encode()) % batches] += text
    except Untranslatable as problem:
        print(problem, file=sys.stderr)
        return 1
    for i, part in enumerate(parts):
        write_if_changed(folder / f"kernels_{i}.cc", part)
    names.sort()
    if twice := [a for a, b in itertools.pairwise(names) if a == b]:
        print(f"kernels of the same name: {', '.join(twice)}", file=sys.stderr)
        return 1
    declared = "".join(f'extern "C" const softmetal::Kernel softmetal_kernel_{name};\n' for name in names)
    listed = "".join(f"    &softmetal_kernel_{name},\n" for name in names)
    write_if_changed(
        folder / "kernel_table.cc",
        "// Generated by translate.py.\n"
        f'#include "backends/softmetal/execution/kernel_table.h"\n{declared}namespace softmetal {{\n'
        f"const Kernel* const kernel_table[] = {{\n{listed}    nullptr}};\n"
        f"const uint32_t kernel_count = {len(names)};\n}}\n",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
