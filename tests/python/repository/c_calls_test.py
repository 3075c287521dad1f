"""The C API against C++: c_calls.toml says for each public call, option and field of the C++ headers which C function
or member stands for it, or why none does. Both sides are read from the headers, so that neither can grow alone.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEADERS = ROOT / "cpp/include/pinnace"
TABLE = tomllib.loads((Path(__file__).parent / "c_calls.toml").read_text())
WORD = r"[A-Za-z_]\w*"


def code(header: str) -> str:
    """The header without comments, texts and lines of the preprocessor."""
    text = (HEADERS / header).read_text()
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text)
    text = re.sub(r"std::function<[^;]*>", "std::function", text)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.)*(?:\\\n[^\n]*)*", "", text, flags=re.MULTILINE)


def statements(text: str) -> list[tuple[str, str | None]]:
    """(head, body or None) of each declaration on the outermost level of a text."""
    found: list[tuple[str, str | None]] = []
    head, at = "", 0
    while at < len(text):
        letter = text[at]
        if letter == "{":
            depth, end = 1, at + 1
            while depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            body = text[at + 1 : end - 1]
            # A member's initialiser goes on to the semicolon; a function's body ends without one.
            if re.search(r"\b(?:struct|class|enum|namespace|extern)\b", head) or ")" in head:
                found.append((head.strip(), body))
                head = ""
            at = end
            continue
        if letter == ";":
            if head.strip():
                found.append((head.strip(), None))
            head = ""
        else:
            head += letter
        at += 1
    return found


def functions_and_fields(text: str, scope: str = "") -> tuple[set[str], set[str]]:
    """Names of the public functions, and of the fields of structs, of a header or of what a scope of it holds."""
    functions: set[str] = set()
    fields: set[str] = set()
    public = not scope.endswith("!::")
    scope = scope.replace("!", "")
    for whole, body in statements(text):
        head = whole
        for label in re.findall(r"\b(public|private|protected)\s*:(?!:)", head):
            public = label == "public"
        head = re.sub(r"\b(?:public|private|protected)\s*:(?!:)", " ", head)
        head = re.sub(r"\[\[[^\]]*\]\]", " ", head).strip()
        head = re.sub(r"^template\s*<[^>]*>\s*", "", head)
        if body is not None and (m := re.match(rf"(?:namespace|(struct|class))\s+({WORD})?", head)):
            inner = f"{scope}{m[2]}{'!' if m[1] == 'class' else ''}::" if m[1] else scope
            if public:
                more, more_fields = functions_and_fields(body, inner)
                functions |= more
                fields |= more_fields
        elif not public or re.match(r"(?:using|friend|typedef|enum|struct|class|static_assert)\b", head):
            continue
        elif m := re.match(rf"[^=]*?(~?{WORD}|operator\s*\S+?)\s*\(", head):
            name = m[1]
            owner = scope.rstrip(":").rpartition("::")[2]
            if name.startswith(("~", "operator")) or "operator" in head.split("(")[0] or name == owner:
                continue  # a C++ object's life: pnc_*_close
            functions.add(scope + name)
        elif body is None and scope:
            for one in re.sub(r"=[^,]*|\{[^}]*\}", "", head).split(","):
                if not re.search(r"\b(?:constexpr|static)\b", head):
                    fields.add(scope + one.split()[-1].strip("*&"))
    return functions, fields


def public_cpp() -> tuple[set[str], set[str]]:
    functions: set[str] = set()
    fields: set[str] = set()
    for path in sorted(HEADERS.glob("*.h")):
        if path.name == "pinnace.h" or path.name in TABLE["headers"]:
            continue
        more, more_fields = functions_and_fields(code(path.name))
        functions |= more
        fields |= more_fields
    return functions, fields


def c_functions() -> set[str]:
    return set(re.findall(r"PNC_API[^;(]*?\b(pnc_\w+)\s*\(", code("pinnace.h")))


def c_fields() -> set[str]:
    found = set()
    for body, name in re.findall(r"typedef struct pnc_\w+\s*\{([^}]*)\}\s*(pnc_\w+)\s*;", code("pinnace.h")):
        for line in filter(None, (part.strip() for part in body.split(";"))):
            names = re.sub(r"\[[^\]]*\]", "", line).split(",")
            found |= {f"{name}.{one.split()[-1].strip('*')}" for one in names}
    return found


def test_headers_that_are_left_out_say_why() -> None:
    for header, reason in TABLE["headers"].items():
        assert (HEADERS / header).is_file()
        assert len(reason.split()) >= 4, header


def test_every_call_has_its_function_or_a_reason() -> None:
    functions, _ = public_cpp()
    assert len(functions) > 60
    with_function, without = TABLE["calls"], TABLE["calls_without"]
    listed = set(with_function) | set(without)
    assert functions - listed == set(), "C++ calls that tests/python/repository/c_calls.toml does not name"
    assert listed - functions == set(), "calls that no header declares"
    assert not set(with_function) & set(without)
    named = {one for names in with_function.values() for one in names}
    own = set(TABLE["c_alone"])
    assert c_functions() - named - own == set(), "C functions that stand for no call"
    assert (named | own) - c_functions() == set(), "functions that pinnace.h does not declare"
    assert all(len(reason.split()) >= 4 for reason in (*without.values(), *TABLE["c_alone"].values()))


def test_every_field_has_its_member_or_a_reason() -> None:
    _, fields = public_cpp()
    structs = set(TABLE["structs"]) | set(TABLE["structs_without"])
    assert {f.rpartition("::")[0] for f in fields} == structs
    known = c_fields()
    for struct, target in TABLE["structs"].items():
        ours = {f.rpartition("::")[2] for f in fields if f.rpartition("::")[0] == struct}
        renamed = {k: v for k, v in target.items() if k != "is"}
        unknown = set(renamed) - ours
        assert not unknown, f"{struct} has no {unknown}"
        for field in ours:
            member = renamed.get(field, field)
            if " " in member:  # a reason
                assert len(member.split()) >= 4, (struct, field)
            else:
                name = member if "." in member else f"{target['is']}.{member}"
                assert name in known, f"{struct}::{field}: there is no {name}"


@pytest.mark.parametrize("enum", ["Code", "DType", "LogLevel", "Verify"])
def test_numbers_are_the_same(enum: str) -> None:
    prefix = {"Code": "PNC_", "DType": "PNC_", "LogLevel": "PNC_LOG_", "Verify": "PNC_VERIFY_"}[enum]
    texts = "\n".join(code(p.name) for p in HEADERS.glob("*.h") if p.name != "pinnace.h")
    match = re.search(rf"enum class {enum} : \w+ \{{(.*?)\}}", texts, re.DOTALL)
    assert match
    numbers: dict[str, int] = {}
    for part in filter(None, (p.strip() for p in match[1].split(","))):
        name, _, number = part.partition("=")
        numbers[name.strip()] = int(number) if number else len(numbers)
    of_c = dict(re.findall(r"\b(PNC_\w+) = (\d+)", code("pinnace.h")))
    for name, number in numbers.items():
        spelt = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removeprefix("k")).upper()
        assert int(of_c[prefix + spelt]) == number, name


def test_the_reader_of_headers_sees_what_is_there() -> None:
    functions, fields = functions_and_fields(
        "namespace pinnace { struct A { int a = 1, b; std::vector<int> c = {}; bool ok() const { return a; } };"
        "class B { public: static Result<B> make(int x); B(int); ~B(); bool operator==(const B&) const;"
        " private: void hidden(); int d; }; int free(std::span<const A> x = {}); }"
    )
    assert functions == {"A::ok", "B::make", "free"}
    assert fields == {"A::a", "A::b", "A::c"}


def test_a_c_program_calls_every_function() -> None:
    programs = "\n".join(p.read_text() for p in sorted((ROOT / "tests/installed").glob("*.c")))
    called = set(re.findall(r"\b(pnc_\w+)\s*\(", programs))
    assert c_functions() - called == set()
