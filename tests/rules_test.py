"""Rules of the tree that no compiler checks: who includes whom, lists that agree with folders, names, sizes, comments.

Each rule is a function from a tree to its violations. pytest runs every rule on this tree, and on a small tree made to
break it, so that a rule that sees nothing is noticed. `python tests/rules_test.py` prints the violations of this tree.
"""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Container, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from rule_trees import BROKEN, SOUND

ROOT = Path(__file__).resolve().parent.parent

# ---- tables ---------------------------------------------------------------------------------------------------------

# Who may include whom. A key is a folder below cpp/, the longest that matches a file counts; the values are folders or
# files that it may include beside itself. <system> and <pinnace/...> headers are free for all.
_BACKEND = (
    *("base", "graph", "ops"),
    *(f"backends/{name}" for name in ("backend.h", "packed_constants.h", "rule.h", "rule_table.inc", "service.h")),
)
_COMPILE = (*_BACKEND, "backends/backends.inc")
MAY_INCLUDE: dict[str, tuple[str, ...]] = {
    "include": (),
    "base": (),
    "graph": ("base",),
    "ops": ("base", "graph"),
    "program": ("base", "graph", "ops"),
    "nnapi": ("base", "graph", "ops"),
    "backends": _BACKEND,  # the interface and the list themselves, which lie directly in backends/
    "backends/cpu": _BACKEND,
    "backends/gpu": _BACKEND,
    "backends/vulkan": (*_BACKEND, "backends/gpu"),
    "backends/metal": (*_BACKEND, "backends/gpu"),
    "backends/softmetal": (*_BACKEND, "backends/gpu"),
    "backends/nnapi": (*_BACKEND, "nnapi"),
    "compile": _COMPILE,
    "runtime": (*_COMPILE, "compile", "program"),
    "import": ("base", "graph", "ops", "nnapi"),
    "passes": ("base", "graph", "ops"),
    "convert": (
        *("base", "graph", "ops", "nnapi", "import", "passes", "compile", "backends", "program", "runtime"),
        *("nnapi_host", "tools"),
    ),
    "pack_cache": ("base", "graph", "ops", "backends", "compile", "program", "runtime"),
    "quantize": ("base", "graph", "ops", "passes", "convert"),
    "stream": ("base", "graph", "ops", "passes", "program", "convert"),
    "nnapi_host": ("base", "graph", "ops", "nnapi", "passes", "program", "compile", "runtime"),
    "report": ("base/exception_boundary.h",),  # over the C API, in programs of which some have no other part of cpp/
    "tools": ("report",),
}

# Modules and folders of python/pinnace from the bottom up: each imports from those before it and, in a folder, from
# its neighbours, without a circle. __init__ and __main__ stand above all. _core is the extension.
PACKAGE_ORDER = (
    *(
        "dtypes",
        "files",
        "packages",
        "log",
        "progress",
        "types",
        "shape_trials",
        "arrays",
        "agreement",
        "nnapi",
        "targets",
        "pass_reports",
        "html",
        "quantization",
        "streams",
        "program",
        "service",
        "session",
        "measure",
        "cluster",
        "new_names",
        "picture_arithmetic",
        "preprocessing",
    ),
    *("torch", "torchscript", "inputs", "sources", "verify", "quantize", "model", "loading", "device", "cli"),
)

# Words that no code in cpp/ uses, with the reason that a reader gets. tools/ is a program and may print.
FORBIDDEN = (
    (r"\bthrow\b", "exceptions: cpp/ throws none, return a Status"),
    (r"\b(?:dynamic_cast|typeid)\b", "run-time type information: cpp/ is built without it"),
    (r"\bstd::(?:abort|terminate|exit|quick_exit)\b|(?<![\w.:>])abort\s*\(", "ends the caller's process"),
)
# Where the standard library's exceptions (std::bad_alloc) end, and where they change threads. Everywhere else they pass
# through frames that clean up behind themselves: a catch in the middle hides that memory has run out.
CATCHING = {
    Path("cpp/base/exception_boundary.h"): "exception_boundary, which public calls and bodies of threads go through",
    Path("cpp/base/threads/thread_pool.cc"): "from the worker whose task threw to the caller",
}
CATCH = (
    r"\b(?:try|catch|rethrow_exception)\b",
    "exceptions are caught at boundaries alone: use exception_boundary of base/exception_boundary.h",
)
FORBIDDEN_PRINTING = (
    (r"\bstd::(?:cout|clog)\b", "prints to the application's output: use the log hook"),
    (r"(?<![\w.:>])(?:std::)?(?:v?printf|puts|putchar)\s*\(", "prints to the application's output: use the log hook"),
    (r"\bfprintf\s*\(\s*stdout\b", "prints to the application's output: use the log hook"),
)

COLOURS = Path("python/pinnace/cli/output.py")  # may ask for NO_COLOR and TERM

# A few kinds of file are long by nature: lists (.inc), data, generated code.
LINE_LIMIT = 800
LINE_LIMITED = {".cc", ".h", ".py", ".sh", ".cmake", ".comp", ".glsl", ".metal"}
BINARY_LIMIT_BYTES = 100_000
# Of each folder of what is shipped, without those in it. One has a file per operator.
SHIPPED = ("cpp", "bindings", "java", "python/pinnace")
FOLDER_FILES, FOLDER_LINES = 40, 8000
FILE_PER_OPERATOR = (Path("cpp/ops"), Path("tests/cases"))
VAGUE_NAME = re.compile(r"(?:^|_)(?:utils?|helpers?|common(?!_subexpressions)|misc)(?:_|$)")
SNAKE_CASE = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
# Names that look like files of the tree in README.md and docs/.
SOURCE_SUFFIXES = LINE_LIMITED | {".fbs", ".inc", ".md", ".mm", ".toml"}
PAGE_WIDTH = 130  # of prose; tables, headings and code are as wide as they are
WIDE_PAGES = {"operators.md", "results.md"}  # written by scripts
FOREIGN = {"run.py"}  # files of others that pages name: the conformance vectors' runner
# Suites that start threads and have nothing for the thread sanitizer: it has the functions that are to fail, and hides
# the GPU drivers.
NOT_UNDER_THREAD_SANITIZER = {"Faults", "GpuFaults", "GpuLostDevice"}
NAMED_BY_OTHERS = Path("tests/fakes/metal")  # headers that are included by the names that Apple gave them

# ---- reading a tree -------------------------------------------------------------------------------------------------


@cache
def files(root: Path) -> tuple[Path, ...]:
    """Every file that is or may be committed, relative to the root; all files where the tree is not under git."""
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
        found = {Path(name) for name in listed if name}
    else:
        found = {path.relative_to(root) for path in root.rglob("*")}
    # A file may be staged and no longer there; a link is its target's business.
    return tuple(sorted(p for p in found if (root / p).is_file() and not (root / p).is_symlink()))


def below(root: Path, folder: str, *suffixes: str) -> Iterator[Path]:
    parts = Path(folder).parts
    return (p for p in files(root) if p.parts[: len(parts)] == parts and p.suffix in suffixes)


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)


def code(source: str) -> str:
    """C++ without comments, strings and character literals; line breaks stay, so that line numbers do."""
    return _NOT_CODE.sub(lambda m: " " + "\n" * m[0].count("\n"), source)


def line_of(source: str, at: int) -> int:
    return source.count("\n", 0, at) + 1


def listed(path: Path, macro: str) -> list[str]:
    """Names in a list: the first argument of each MACRO(name, ...)."""
    if not path.is_file():
        return []
    return re.findall(rf"^[ \t]*{macro}\(\s*(\w+)", re.sub(r"//[^\n]*", "", text(path)), re.MULTILINE)


# ---- rules ----------------------------------------------------------------------------------------------------------


def _folder_of(path: Path) -> str | None:
    """The longest key of MAY_INCLUDE that holds a path relative to cpp/."""
    folders = ["/".join(path.parts[:n]) for n in range(len(path.parts) - 1, 0, -1)]
    return next((f for f in folders if f in MAY_INCLUDE), None)


def rule_includes(root: Path) -> Iterator[str]:
    """Includes follow the table, and are written from cpp/."""
    top_folders = {key.split("/")[0] for key in MAY_INCLUDE}
    for path in below(root, "cpp", ".cc", ".h", ".inc"):
        inside = path.relative_to("cpp")
        owner = _folder_of(inside)
        if owner is None:
            yield f"{path}: the folder is not in the table of who may include whom"
            continue
        source = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text(root / path), flags=re.DOTALL)
        for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', source, re.MULTILINE):
            name = match[1]
            where = f"{path}:{line_of(source, match.start())}"
            if name.startswith(".") or ("/" not in name and (root / path.parent / name).is_file()):
                yield f'{where}: "{name}" is to be written from cpp/'
            elif name.split("/")[0] in top_folders and not any(
                name == allowed or name.startswith(f"{allowed}/") for allowed in (owner, *MAY_INCLUDE[owner])
            ):
                yield f'{where}: {owner} may not include "{name}"'


def _files_and_list(root: Path, folder: str, list_name: str, macro: str) -> Iterator[str]:
    """Every .cc directly in the folder is in its list, and the reverse.

    Two kinds of .cc are no entries: one with a header of its own, beside it or public, holds code that others call (an
    entry is reached through the list alone and needs no header), and one that includes the list makes a table of it.
    """
    where = f"{folder}/{list_name}"
    names = listed(root / where, macro)
    sources = {p.stem for p in below(root, folder, ".cc") if p.parent == Path(folder)}
    included = f'"{Path(where).relative_to("cpp")}"'
    headers = (root / folder, root / "cpp/include/pinnace")
    shared = {name for name in sources if any((place / f"{name}.h").is_file() for place in headers)}
    tables = {name for name in sources if included in text(root / folder / f"{name}.cc")}
    for name in sorted(sources - shared - tables - set(names)):
        yield f"{folder}/{name}.cc: {macro}({name}) is missing in {where}"
    for name in sorted(set(names) - sources):
        yield f"{where}: {macro}({name}) has no {folder}/{name}.cc"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{where}: {macro}({name}) is there more than once"


def rule_operators(root: Path) -> Iterator[str]:
    """ops.inc, cpp/ops/ and tests/cases/ name the same operators, in alphabetical order."""
    yield from _files_and_list(root, "cpp/ops", "ops.inc", "OP")
    names = listed(root / "cpp/ops/ops.inc", "OP")
    for before, after in itertools.pairwise(names):
        if before > after:
            yield f"cpp/ops/ops.inc: {after} comes after {before}, the list is alphabetical"
    cases = {p.stem for p in below(root, "tests/cases", ".cc")}
    for name in sorted(set(names) - cases):
        yield f"cpp/ops/ops.inc: OP({name}) has no tests/cases/{name}.cc"
    shared = {p.stem for p in below(root, "tests/cases", ".h")}
    for name in sorted(cases - set(names) - shared):
        yield f"tests/cases/{name}.cc: there is no OP({name})"


def rule_passes(root: Path) -> Iterator[str]:
    """passes.inc and cpp/passes/ name the same passes; their order is the order in which they run."""
    yield from _files_and_list(root, "cpp/passes", "passes.inc", "PASS")


def rule_forbidden_words(root: Path) -> Iterator[str]:
    """Nothing thrown, nothing caught outside boundaries, no run-time types, ends of the process or printing in cpp/.

    tools/ is a program and may print.
    """
    for path in below(root, "cpp", ".cc", ".h", ".inc"):
        source = code(text(root / path))
        words = FORBIDDEN if path.parts[1] == "tools" else FORBIDDEN + FORBIDDEN_PRINTING
        for pattern, reason in words if path in CATCHING else (*words, CATCH):
            for match in re.finditer(pattern, source):
                yield f"{path}:{line_of(source, match.start())}: {match[0].strip()}: {reason}"


def rule_environment(root: Path) -> Iterator[str]:
    """Variables are read by base/environment alone, which sees only the user's own; the package reads none but what
    every command asks about colours.
    """
    for path in (*below(root, "cpp", ".cc", ".h", ".inc"), *below(root, "bindings", ".cc", ".h")):
        source = code(text(root / path)) if path != Path("cpp/base/environment.cc") else ""
        for match in re.finditer(r"\b(?:secure_)?getenv\b|\benviron\b", source):
            yield f"{path}:{line_of(source, match.start())}: {match[0]}: use environment() of base/environment.h"
    for path in below(root, "python", ".py"):
        for line, written in enumerate(text(root / path).splitlines(), 1):
            if path == COLOURS and re.search(r'\bos\.environ\.get\("(?:NO_COLOR|TERM)"\)', written):
                continue
            if re.search(r"\bos\.(?:environb?|getenvb?)\b|\bfrom os import .*\b(?:environ|getenv)", written):
                yield f"{path}:{line}: the package reads no variables"


def _module_of(path: Path) -> str:
    """`sources.base` for python/pinnace/sources/base.py; a folder's name for its __init__.py, "" for the package's."""
    parts = path.relative_to("python/pinnace").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, modules: Container[str]) -> Iterator[tuple[int, str, str]]:
    """(line, module of the package, name or "") of each import of the package's own, wherever in a file it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pinnace":
            module = (node.module or "").partition(".")[2]
            for alias in node.names:
                inner = f"{module}.{alias.name}".lstrip(".")
                yield (node.lineno, inner, "") if inner in modules else (node.lineno, module, alias.name)
        elif isinstance(node, ast.Import):
            yield from (
                (node.lineno, alias.name.partition(".")[2], "")
                for alias in node.names
                if alias.name.split(".")[0] == "pinnace"
            )


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _private_names(tree: ast.Module) -> set[str]:
    """Private names that a module makes: functions, classes, variables, attributes."""
    made = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    made |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    made |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    return {name for name in made if _private(name)}


def rule_package_imports(root: Path) -> Iterator[str]:
    """Modules of the Python package import one way (PACKAGE_ORDER), and private names stay in their module."""
    trees = {p: ast.parse(text(root / p)) for p in below(root, "python/pinnace", ".py")}
    modules = {_module_of(path) for path in trees} - {""}
    private = {path: _private_names(tree) for path, tree in trees.items()}
    edges: dict[str, set[str]] = {}
    for path, tree in trees.items():
        own = _module_of(path)
        unit = own.split(".")[0]
        if unit not in (*PACKAGE_ORDER, "", "__main__"):
            yield f"{path}: {unit} is not in PACKAGE_ORDER"
            continue
        for line, module, name in _imports(tree, modules):
            if module == "_core" or name == "_core":
                continue
            if _private(name) or _private(module):
                yield f"{path}:{line}: {name or module} is private to {module or 'the package'}"
            other = module.split(".")[0]
            if other == unit:
                edges.setdefault(own, set()).add(module)
            elif unit in PACKAGE_ORDER and other and other not in PACKAGE_ORDER[: PACKAGE_ORDER.index(unit)]:
                yield f"{path}:{line}: {unit} may not import {module}, which stands above it"
        others = set().union(*(names for other, names in private.items() if other != path))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not _private(node.attr) or node.attr in private[path]:
                continue
            if node.attr in others and node.attr not in ("_core", "_schema"):  # torch has an attribute _schema
                yield f"{path}:{node.lineno}: {ast.unparse(node)} is private to another module"
    done: set[str] = set()
    for start in sorted(edges):
        circle = _circle(edges, start, [], done)
        if circle:
            yield f"python/pinnace: {' imports '.join(circle)}"


def _circle(edges: dict[str, set[str]], at: str, way: list[str], done: set[str]) -> list[str]:
    """The first circle of imports that is reached from `at`; empty where there is none, or it was found already."""
    if at in way:
        return [*way[way.index(at) :], at]
    if at in done:
        return []
    done.add(at)
    found = (_circle(edges, after, [*way, at], done) for after in sorted(edges.get(at, ())))
    return next((circle for circle in found if circle), [])


def rule_opening_comment(root: Path) -> Iterator[str]:
    """A source file opens by saying what it holds."""
    for path in files(root):
        source = text(root / path) if path.suffix in {".cc", ".h", ".inc", ".py"} else ""
        if not source.strip():
            continue
        if path.suffix == ".py":
            opening = re.match(r'(?:#![^\n]*\n)?\s*(?:[rR]?"""\s*\S|#(?!!)\s*\S)', source)
        else:
            opening = re.match(r"\s*(?:#pragma once\s+)?(?://+|/\*+)\s*\S", source)
        if not opening:
            yield f"{path}: opens without a comment that says what it holds"


def rule_size(root: Path) -> Iterator[str]:
    """No source file over 800 lines, but for lists and generated code."""
    for path in files(root):
        if path.suffix not in LINE_LIMITED:
            continue
        source = text(root / path)
        lines = source.count("\n")
        if lines > LINE_LIMIT and "generated by" not in "\n".join(source.splitlines()[:5]).lower():
            yield f"{path}: {lines} lines, more than {LINE_LIMIT}: it is two files"


def rule_folders(root: Path) -> Iterator[str]:
    """No folder has more files than a reader finds a way through, and none of what is shipped more lines."""
    folders: dict[Path, list[Path]] = {}
    for path in files(root):
        if path.parent not in FILE_PER_OPERATOR:
            folders.setdefault(path.parent, []).append(path)
    for folder, held in sorted(folders.items()):
        if len(held) > FOLDER_FILES:
            yield f"{folder}: {len(held)} files, more than {FOLDER_FILES}: it is two folders"
        if not any(folder.is_relative_to(top) for top in SHIPPED):
            continue
        lines = sum(text(root / path).count("\n") for path in held if path.suffix in SOURCE_SUFFIXES)
        if lines > FOLDER_LINES:
            yield f"{folder}: {lines} lines, more than {FOLDER_LINES}: it is two folders"


def rule_neighbours(root: Path) -> Iterator[str]:
    """Folders of cpp/ that lie beside each other include one way.

    What a folder holds itself is above and below its folders: contracts that they include, lists that include theirs.
    """
    edges: dict[str, set[str]] = {}
    known = {path.relative_to("cpp") for path in below(root, "cpp", ".cc", ".h", ".inc", ".mm")}
    for path in sorted(known):
        for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text(root / "cpp" / path), re.MULTILINE):
            own, other = path.parent.parts, Path(name).parent.parts
            shared = next((i for i, (a, b) in enumerate(zip(own, other, strict=False)) if a != b), None)
            if Path(name) in known and shared is not None:
                edges.setdefault("/".join(own[: shared + 1]), set()).add("/".join(other[: shared + 1]))
    done: set[str] = set()
    for start in sorted(edges):
        circle = _circle(edges, start, [], done)
        if circle:
            yield f"cpp: {' includes '.join(circle)}"


def rule_binaries(root: Path) -> Iterator[str]:
    """No large binary file: models and vectors are made by code, or found outside."""
    for path in files(root):
        size = (root / path).stat().st_size
        if size <= BINARY_LIMIT_BYTES:
            continue
        with (root / path).open("rb") as stream:
            if b"\0" in stream.read(65536):
                yield f"{path}: a binary of {size:,} bytes, more than {BINARY_LIMIT_BYTES:,}"


def rule_names(root: Path) -> Iterator[str]:
    """C++ files are snake_case, and no file or folder is called after nothing in particular."""
    for path in files(root):
        free = path.is_relative_to(NAMED_BY_OTHERS)
        stem = path.name.removesuffix(path.suffix).removesuffix(".body")  # x.body.cc: compiled per instruction set
        if path.suffix in {".cc", ".h"} and not free and not SNAKE_CASE.fullmatch(stem):
            yield f"{path}: not snake_case"
        for part in path.with_suffix("").parts:
            if VAGUE_NAME.search(part.lower()):
                yield f'{path}: "{part}" does not say what it holds'


def rule_instruction_sets(root: Path) -> Iterator[str]:
    """isa.cmake and the C++ list name the same sets in the same order; each has its header; every body is compiled."""
    build, known = root / "cmake/isa.cmake", root / "cpp/base/instruction_sets.inc"
    if not build.is_file():
        return
    sets = re.findall(r"^ISA\((\w+)", text(build), re.MULTILINE)
    if sets != listed(known, "ISA"):
        yield f"cmake/isa.cmake: its sets are not those of {known.relative_to(root)}, in the same order"
    folder = Path("cpp/backends/cpu")
    for name in sets:
        if not (root / folder / f"simd/{name}.h").is_file():
            yield f"cmake/isa.cmake: {name} has no {folder}/simd/{name}.h"
    for path in below(root, str(folder), ".cc"):
        lists = root / path.parent / "CMakeLists.txt"
        if path.name.endswith(".body.cc") and f"BODY({path.name} " not in (text(lists) if lists.is_file() else ""):
            yield f"{path}: {path.parent}/CMakeLists.txt has no BODY line for it"


def rule_folders_name_their_sources(root: Path) -> Iterator[str]:
    """Every folder with C++ sources has a CMakeLists.txt, which takes none of another folder."""
    if not (root / "CMakeLists.txt").is_file():
        return
    sources = [path for top in ("cpp", "bindings", "tests", "bench") for path in below(root, top, ".cc", ".mm")]
    for folder in sorted({path.parent for path in sources} - {Path("tests/fakes/metal")}):
        if not (root / folder / "CMakeLists.txt").is_file():
            yield f"{folder}: has sources and no CMakeLists.txt, so that no build compiles them"
    for path in files(root):
        body = text(root / path) if path.name == "CMakeLists.txt" and path.parts[0] == "cpp" else ""
        if re.search(r"GLOB_RECURSE[^)]*\*\.cc", body):
            yield f"{path}: takes sources of other folders"


def rule_special_values(root: Path) -> Iterator[str]:
    """An operator that computes with floats says in its opening comment what becomes of NaN."""
    for path in files(root):
        if path.parent != Path("cpp/ops") or path.suffix != ".cc":
            continue
        opening, _, rest = (root / path).read_text().partition("#include")
        schema = rest.partition("PINNACE_OP(")[2]
        if re.search(r"\bk(?:Floats|Numbers|Reals|ProductTypes)\b|\bunary_op\b", schema) and "NaN" not in opening:
            yield f"{path}: computes with floats and does not say what becomes of NaN"


def rule_tests_without_importers(root: Path) -> Iterator[str]:
    """A test that imports, applies passes or builds programs is left out where only the runtime is built (ARM64)."""
    lists = {path.parent: text(root / path) for path in below(root, "tests/cpp", ".txt")}
    on_hosts = re.search(
        r"^if\(PINNACE_HOST\)\n(.*?)^endif", lists.get(Path("tests/cpp"), ""), re.MULTILINE | re.DOTALL
    )
    folders = re.findall(r"add_subdirectory\((\w+)\)", on_hosts[1]) if on_hosts else []
    for path in below(root, "tests/cpp", ".cc"):
        left_out = re.search(r"pinnace_test_sources\(HOST\s([^)]*)\)", lists.get(path.parent, ""))
        if path.parent.name in folders or (left_out and path.stem in left_out[1].split()):
            continue
        seen, open_files = {path}, [path]
        while open_files:
            source = text(root / open_files.pop())
            if found := re.search(
                r'#include (?:<pinnace/(?:model|host_log)\.h>|"(?:import|passes|convert|nnapi_host)/\S+")', source
            ):
                needed = found[0].split()[1]
                yield f"{path}: needs {needed}, and {path.parent}/CMakeLists.txt does not name it after HOST"
                break
            headers = {Path("tests", name) for name in re.findall(r'#include "(cpp/\S+)"', source)}
            open_files += [header for header in headers - seen if (root / header).is_file()]
            seen |= headers


def rule_thread_sanitizer(root: Path) -> Iterator[str]:
    """C++ tests that start threads run under the thread sanitizer, but for those that it leaves nothing of."""
    script = root / "scripts/sanitized.sh"
    filters = re.search(r"^thread_tests=\((.*?)^\)", script.read_text(), re.M | re.S) if script.is_file() else None
    patterns = re.findall(r"'([^']+)'", filters[1]) if filters else []
    for path in below(root, "tests/cpp", ".cc"):
        source = text(root / path)
        if not re.search(r"\bstd::j?thread\b|\bstd::async\b|\bpthread_create\b", source):
            continue
        for suite in dict.fromkeys(re.findall(r"^TEST(?:_[FP])?\((\w+)", source, re.M)):
            names = (f"{suite}.Any", f"All/{suite}.Any/0")
            if suite not in NOT_UNDER_THREAD_SANITIZER and not any(
                fnmatchcase(name, pattern) for name in names for pattern in patterns
            ):
                yield f"{path}: {suite} starts threads, and scripts/sanitized.sh does not run it under the sanitizer"


def _anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+?) *$", re.sub(r"^(```|~~~).*?^\1", "", page, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rule_pages(root: Path) -> Iterator[str]:
    """Relative links of README.md and docs/ lead somewhere, what looks like a file of the tree is one, lines are short.

    A how-to page may name the files that its numbered steps make.
    """
    tree = {p.as_posix() for p in files(root)}
    folders = {parent.as_posix() for p in files(root) for parent in p.parents}
    top = {p.parts[0] for p in files(root)} - {"build"}

    # Every path as it is seen from any folder above it: `backends/cpu/layout.cc` and `layout.cc`.
    seen = {"/".join(p.parts[i:]) for p in files(root) for i in range(len(p.parts))}

    def known(name: str) -> bool:
        name = name.rstrip("/")
        if "*" not in name:  # a folder of the tree may be named as it is seen from cpp/
            return name in (seen if "." in name else tree) or bool({name, f"cpp/{name}"} & folders)
        pattern = re.compile(re.escape(name).replace(r"\*", "[^/]*"))
        return any(pattern.fullmatch(p) for p in seen)

    for page in (p for p in files(root) if p == Path("README.md") or (p.parts[0] == "docs" and p.suffix == ".md")):
        source = text(root / page)
        made = set(re.findall(r"^\d+\. `([\w./]+)`:", source, re.M))
        prose = re.sub(r"^ *(```|~~~).*?^ *\1", lambda m: "\n" * m[0].count("\n"), source, flags=re.M | re.S)
        for number, written in enumerate(prose.splitlines(), 1):
            code_or_table = written.startswith(("|", "#", "    ")) or page.name in WIDE_PAGES
            if len(written) > PAGE_WIDTH and not code_or_table:
                yield f"{page}:{number}: {len(written)} columns, more than {PAGE_WIDTH}"
        for match in re.finditer(r"\]\(([^)\s]+)\)", prose):
            target, _, anchor = match[1].partition("#")
            if re.match(r"\w+:", target):
                continue
            where = f"{page}:{line_of(prose, match.start())}"
            path = (root / page).parent / target if target else root / page
            if not path.exists():
                yield f"{where}: the link leads to {target}, which is not there"
            elif anchor and path.suffix == ".md" and anchor not in _anchors(text(path)):
                yield f"{where}: {target or page} has no heading #{anchor}"
        for match in re.finditer(r"`([\w.*-]+(?:/[\w.*-]+)*/?)`", prose):
            name = match[1]
            looks = Path(name).suffix in SOURCE_SUFFIXES or (name.split("/")[0] in top and "/" in name)
            if name.startswith(("build/", "dist/", ".", "/")) or name in FOREIGN | made:
                continue
            if looks and not known(name):
                yield f"{page}:{line_of(prose, match.start())}: there is no {name}"


Rule = Callable[[Path], Iterator[str]]
RULES: dict[str, Rule] = {
    name.removeprefix("rule_"): rule for name, rule in list(globals().items()) if name.startswith("rule_")
}


def _write(root: Path, tree: dict[str, str]) -> Path:
    for name, content in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def pytest_generate_tests(metafunc: object) -> None:
    parametrize = metafunc.parametrize  # type: ignore[attr-defined]
    names = metafunc.fixturenames  # type: ignore[attr-defined]
    if "broken" in names:
        cases = [(rule, i) for rule, trees in BROKEN.items() for i in range(len(trees))]
        parametrize(("rule", "broken"), cases, ids=[f"{rule}-{i}" for rule, i in cases])
    elif "rule" in names:
        parametrize("rule", list(RULES))


def test_tree_follows(rule: str) -> None:
    violations = list(RULES[rule](ROOT))
    assert not violations, "\n" + "\n".join(violations)


def test_rule_sees_a_violation(rule: str, broken: int, tmp_path: Path) -> None:
    tree, expected = BROKEN[rule][broken]
    violations = list(RULES[rule](_write(tmp_path, tree)))
    assert len(violations) == len(expected), violations
    for violation, words in zip(violations, expected, strict=True):
        assert words in violation


def test_rule_lets_sound_code_pass(rule: str, tmp_path: Path) -> None:
    assert list(RULES[rule](_write(tmp_path, SOUND))) == []


def test_every_rule_has_a_tree_that_breaks_it() -> None:
    assert set(BROKEN) == set(RULES)


def test_empty_tree_passes(rule: str, tmp_path: Path) -> None:
    assert list(RULES[rule](tmp_path)) == []


def main() -> int:
    violations = [violation for rule in RULES.values() for violation in rule(ROOT)]
    print("\n".join(violations) if violations else f"{len(RULES)} rules hold for {len(files(ROOT))} files")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
