"""Small trees for rules_test.py: one or more that break each rule, and one that breaks none and looks as if it did."""

from __future__ import annotations

# ---- trees made to break one rule each ------------------------------------------------------------------------------

_CC = "// Something.\n"

# rule -> trees; a tree is {path: content} and the words that its only violations must contain, one entry each.
BROKEN: dict[str, list[tuple[dict[str, str], list[str]]]] = {
    "includes": [
        ({"cpp/base/a.cc": f'{_CC}#include "graph/graph.h"\n'}, ["a.cc:2: base may not include"]),
        ({"cpp/backends/vulkan/a.cc": f'{_CC}#include "backends/cpu/gemm.h"\n'}, ["backends/vulkan may not"]),
        ({"cpp/backends/cpu/a.h": f'{_CC}#include "backends/gpu/record.h"\n'}, ["backends/cpu may not"]),
        ({"cpp/compile/a.cc": f'{_CC}#include "program/reader.h"\n'}, ["compile may not include"]),
        ({"cpp/tools/a.cc": f'{_CC}#include "base/status.h"\n'}, ["tools may not include"]),
        ({"cpp/ops/a.cc": f'{_CC}#include "../convert/b.h"\n'}, ["written from cpp/"]),
        ({"cpp/ops/a.cc": f'{_CC}#include "b.h"\n', "cpp/ops/b.h": _CC}, ["written from cpp/"]),
        ({"cpp/elsewhere/a.cc": _CC}, ["not in the table"]),
    ],
    "operators": [
        ({"cpp/ops/add.cc": _CC}, ["OP(add) is missing"]),
        ({"cpp/ops/ops.inc": "OP(add)\n", "tests/cases/add.cc": _CC}, ["has no cpp/ops/add.cc"]),
        ({"cpp/ops/ops.inc": "OP(add)\n", "cpp/ops/add.cc": _CC}, ["has no tests/cases/add.cc"]),
        ({"tests/cases/add.cc": _CC}, ["there is no OP(add)"]),
        (
            {
                "cpp/ops/ops.inc": "OP(b)\nOP(a)\n",
                **{f"{d}/{n}.cc": _CC for d in ("cpp/ops", "tests/cases") for n in "ab"},
            },
            ["a comes after b"],
        ),
        (
            {"cpp/ops/ops.inc": "OP(a)\nOP(a)\n", "cpp/ops/a.cc": _CC, "tests/cases/a.cc": _CC},
            ["more than once"],
        ),
        ({"cpp/ops/ops.inc": "// OP(add)\n", "cpp/ops/add.cc": _CC}, ["OP(add) is missing"]),
    ],
    "passes": [
        ({"cpp/passes/fold.cc": _CC}, ["PASS(fold) is missing"]),
        ({"cpp/passes/passes.inc": "PASS(fold)\n"}, ["has no cpp/passes/fold.cc"]),
    ],
    "forbidden_words": [
        ({"cpp/base/a.cc": f"{_CC}void f() {{ throw 1; }}\n"}, ["a.cc:2: throw"]),
        ({"cpp/base/a.cc": f'{_CC}void f() {{ printf("%d", 1); }}\n'}, ["printf"]),
        ({"cpp/base/a.cc": f'{_CC}void f() {{ fprintf(stdout, "x"); }}\n'}, ["fprintf(stdout"]),
        ({"cpp/base/a.cc": f"{_CC}void f() {{\n  std::cout << 1;\n}}\n"}, ["a.cc:3: std::cout"]),
        ({"cpp/base/a.cc": f"{_CC}B* b = dynamic_cast<B*>(a);\n"}, ["dynamic_cast"]),
        ({"cpp/base/a.cc": f"{_CC}void f() {{ std::abort(); }}\n"}, ["std::abort"]),
        ({"cpp/tools/a.cc": f"{_CC}void f() {{ try {{\n}} catch (...) {{ }} }}\n"}, ["try", "catch"]),
        ({"cpp/base/threads/thread_pool.cc": f"{_CC}void f() {{ try {{ throw 1; }} catch (...) {{ }} }}\n"}, ["throw"]),
        ({"cpp/base/a.cc": f"{_CC}void f() {{ std::rethrow_exception(e); }}\n"}, ["rethrow_exception"]),
        ({"cpp/base/a.cc": f"{_CC}int n = 1'000; char c = 'x';\nvoid f() {{ throw 1'000; }}\n"}, ["a.cc:3: throw"]),
    ],
    "environment": [
        ({"cpp/base/a.cc": f'{_CC}const char* c = std::getenv("A");\n'}, ["a.cc:2: getenv"]),
        ({"cpp/tools/a.cc": f'{_CC}const char* c = secure_getenv("A");\n'}, ["a.cc:2: secure_getenv"]),
        ({"bindings/a.cc": f"{_CC}extern char** environ;\n"}, ["a.cc:2: environ"]),
        ({"python/pinnace/a.py": '"""A."""\nimport os\n\nB = os.environ["B"]\n'}, ["a.py:4: the package reads"]),
        ({"python/pinnace/a.py": '"""A."""\nfrom os import getenv\n'}, ["a.py:2: the package reads"]),
    ],
    "package_imports": [
        ({"python/pinnace/a.py": '"""A."""\n'}, ["a.py: a is not in PACKAGE_ORDER"]),
        ({"python/pinnace/files.py": '"""A."""\nfrom pinnace.types import Dim\n'}, ["files may not import types"]),
        ({"python/pinnace/torch/a.py": '"""A."""\nimport pinnace.sources.b\n'}, ["torch may not import sources.b"]),
        ({"python/pinnace/cli/a.py": '"""A."""\nfrom pinnace.model import _b\n'}, ["_b is private to model"]),
        (
            {
                "python/pinnace/model.py": '"""A."""\ndef f(x):\n    return x._b\n',
                "python/pinnace/program.py": '"""A."""\nclass A:\n    def f(self):\n        self._b = 1\n',
            },
            ["model.py:3: x._b is private to another module"],
        ),
        (
            {
                "python/pinnace/cli/a.py": '"""A."""\n\ndef f():\n    from pinnace.cli import b\n',
                "python/pinnace/cli/b.py": '"""B."""\nfrom pinnace.cli.a import f\n',
            },
            ["cli.a imports cli.b imports cli.a"],
        ),
    ],
    "opening_comment": [
        ({"cpp/base/a.h": "#pragma once\nint a;\n"}, ["a.h: opens without"]),
        ({"scripts/a.py": "#!/usr/bin/env python3\nimport os\n"}, ["a.py: opens without"]),
    ],
    "size": [({"cpp/base/a.cc": _CC * 801}, ["801 lines"])],
    "folders": [
        ({f"cpp/graph/a{i}.cc": _CC for i in range(41)}, ["cpp/graph: 41 files"]),
        ({f"tests/models/a{i}.py": '"""A."""\n' for i in range(41)}, ["tests/models: 41 files"]),
        ({f"python/pinnace/cli/a{i}.py": '"""A."""\n' for i in range(41)}, ["python/pinnace/cli: 41 files"]),
        ({f"cpp/import/onnx/a{i}.cc": _CC * 750 for i in range(11)}, ["cpp/import/onnx: 8250 lines"]),
    ],
    "neighbours": [
        (
            {
                "cpp/backends/cpu/move/a.cc": f'{_CC}#include "backends/cpu/unary/b.h"\n',
                "cpp/backends/cpu/unary/b.h": f'{_CC}#include "backends/cpu/binary/deep/c.h"\n',
                "cpp/backends/cpu/binary/deep/c.h": f'{_CC}#include "backends/cpu/move/d.h"\n',
                "cpp/backends/cpu/move/d.h": _CC,
            },
            ["backends/cpu/binary includes backends/cpu/move includes backends/cpu/unary includes"],
        ),
    ],
    "binaries": [({"tests/a.bin": "\0" * 100_001}, ["a binary of 100,001 bytes"])],
    "special_values": [
        (
            {
                "cpp/ops/ops.inc": "OP(a)\n",
                "cpp/ops/a.cc": f'{_CC}#include "ops/op.h"\nPINNACE_OP(a){{.inputs = {{{{"x", kFloats}}}}}};\n',
            },
            ["cpp/ops/a.cc: computes with floats"],
        )
    ],
    "tests_without_importers": [
        ({"tests/cpp/a_test.cc": f"{_CC}#include <pinnace/model.h>\n"}, ["a_test.cc: needs <pinnace/model.h>"]),
        (
            {
                "tests/cpp/CMakeLists.txt": "if(PINNACE_HOST)\n  add_subdirectory(passes)\nendif()\n",
                "tests/cpp/ops/CMakeLists.txt": "pinnace_test_sources(HOST\n  other_test a_test)\n",
                "tests/cpp/passes/a_test.cc": f'{_CC}#include "passes/pass.h"\n',
                "tests/cpp/ops/a_test.cc": f'{_CC}#include "cpp/b.h"\n',
                "tests/cpp/ops/b_test.cc": f'{_CC}#include "cpp/b.h"\n',
                "tests/cpp/b.h": f'{_CC}#include "import/import.h"\n',
            },
            ['b_test.cc: needs "import/import.h"'],
        ),
    ],
    "pages": [
        ({"README.md": "# A\n\n[b](docs/b.md)\n"}, ["README.md:3: the link leads to docs/b.md"]),
        ({"docs/a.md": "# A\n\n[b](#b-c) [a](#a)\n"}, ["docs/a.md:3: docs/a.md has no heading #b-c"]),
        ({"docs/a.md": "# A\n", "docs/b/c.md": "[a](../a.md#a)\n[a](../a.md#b)\n"}, ["docs/b/c.md:2: ../a.md has no"]),
        ({"docs/a.md": "`cpp/a.cc` and `b.h`\n"}, ["there is no cpp/a.cc", "there is no b.h"]),
        ({"docs/a.md": "`cpp/a/` and `docs/a*.md`\n", "cpp/b/c.cc": _CC}, ["there is no cpp/a/"]),
        ({"docs/a.md": f"# A\n\n{'a ' * 66}\n"}, ["docs/a.md:3: 132 columns"]),
        ({"docs/a.md": "1. `cpp/a.cc`: a file\n\n`cpp/a.cc` `cpp/b.cc`\n"}, ["docs/a.md:3: there is no cpp/b.cc"]),
    ],
    "folders_name_their_sources": [
        (
            {"CMakeLists.txt": "", "cpp/base/CMakeLists.txt": "", "cpp/base/a.cc": _CC, "cpp/base/b/c.cc": _CC},
            ["cpp/base/b: has sources and no CMakeLists.txt"],
        ),
        (
            {"CMakeLists.txt": "", "cpp/base/CMakeLists.txt": "file(GLOB_RECURSE a *.cc)\n"},
            ["cpp/base/CMakeLists.txt: takes sources of other folders"],
        ),
    ],
    "instruction_sets": [
        (
            {
                "cmake/isa.cmake": 'ISA(generic ".*")\nISA(avx2 ${x86_64} -mavx2)\n',
                "cpp/base/instruction_sets.inc": f"{_CC}ISA(generic, any, true)\n",
                "cpp/backends/cpu/simd/generic.h": _CC,
                "cpp/backends/cpu/softmax/CMakeLists.txt": "# BODY(softmax.body.cc generic)\n",
                "cpp/backends/cpu/softmax/softmax_f32.body.cc": _CC,
            },
            [
                "its sets are not those",
                "avx2 has no",
                "softmax_f32.body.cc: cpp/backends/cpu/softmax/CMakeLists.txt has no",
            ],
        )
    ],
    "thread_sanitizer": [
        (
            {
                "scripts/sanitized.sh": "#!/usr/bin/env bash\n# Runs.\nthread_tests=(\n  'Pool*' 'All/Rows.*'\n)\n",
                "tests/cpp/a_test.cc": f"{_CC}TEST(Pools, A) {{ std::thread t; }}\nTEST_P(Rows, B) {{}}\n",
                "tests/cpp/b_test.cc": f"{_CC}TEST(Faults, A) {{ std::thread t; }}\nTEST(Left, B) {{ f(); }}\n",
            },
            ["b_test.cc: Left starts threads"],
        ),
        ({"tests/cpp/a_test.cc": f"{_CC}TEST(Pools, A) {{ pthread_create(&t); }}\n"}, ["Pools starts threads"]),
    ],
    "names": [
        ({"cpp/base/Tensor.h": _CC}, ["not snake_case"]),
        ({"cpp/base/string_util.h": _CC}, ['"string_util"']),
        ({"scripts/helpers.py": '"""A."""\n'}, ['"helpers"']),
        ({"cpp/common/a.cc": _CC}, ['"common"']),
    ],
}

# Things that look like violations and are none.
SOUND = {
    "cpp/include/pinnace/a.h": f"{_CC}#include <pinnace/b.h>\n",
    "cpp/base/environment.cc": f"{_CC}const char* f(const char* n) {{ return std::getenv(n); }}  // getenv\n",
    "cpp/runtime/a.cc": f'{_CC}const char* kText = "getenv";  // no environ here\nint environment_of(int a);\n',
    "cpp/base/a.h": f"{_CC}#pragma once\n#include <cstdio>\n#include <pinnace/a.h>\n",
    "cpp/base/b.cc": f"""{_CC}#include "base/a.h"
// throw printf( std::cout "graph/graph.h"
/* try
#include "graph/graph.h"
*/
const char* kText = "throw \\" catch";
const char* kRaw = R"x(try {{ throw; }})x";
int f(char* p) {{ return snprintf(p, 1, "%d", 1) + fprintf(stderr, "x") + log.printf("x") + retry + entry(1); }}
""",
    "cpp/base/exception_boundary.h": f"{_CC}void f() {{ try {{ g(); }} catch (...) {{ }} }}\n",
    "cpp/import/onnx/a.cc": f'{_CC}#include "import/import.h"\n#include "nnapi/levels.h"\n#include "onnx_model.pb.h"\n',
    "cmake/isa.cmake": "ISA(generic)\n",
    "cpp/base/instruction_sets.inc": f"{_CC}ISA(generic, any, true)\n",
    "cpp/backends/cpu/simd/generic.h": _CC,
    "cpp/backends/cpu/softmax/CMakeLists.txt": "BODY(a.body.cc generic)\n",
    "cpp/backends/cpu/softmax/a.body.cc": _CC,
    "cpp/backends/softmetal/a.cc": f'{_CC}#include "backends/gpu/a.h"\n#include "backends/backend.h"\n',
    "tests/fakes/metal/Metal/Metal.h": _CC,
    "cpp/tools/run.cc": f'{_CC}int main() {{ printf("x"); }}\n',
    "cpp/backends/cpu/kernels.inc": f'{_CC}#include "backends/cpu/softmax/kernels.inc"\n',
    "cpp/backends/cpu/softmax/kernels.inc": _CC,
    "cpp/backends/cpu/softmax/b.cc": f'{_CC}#include "backends/cpu/kernel.h"\n#include "backends/cpu/simd/generic.h"\n',
    "cpp/backends/cpu/kernel.h": _CC,
    **{f"tests/models/a{i}.py": '"""A model."""\n' for i in range(40)},
    "cpp/ops/ops.inc": "// The list.\nOP(a)\nOP(b)\n",
    "cpp/ops/a.cc": '// NaN stays.\n#include "ops/op.h"\nPINNACE_OP(a){.inputs = {{"x", kFloats}}};\n',
    "cpp/ops/op.h": _CC,
    "cpp/ops/b.cc": '// Bytes.\n#include "ops/op.h"\nPINNACE_OP(b){.inputs = {{"x", kAny}}};\n',
    "cpp/ops/shared.cc": f'{_CC}#include "ops/shared.h"\n',
    "cpp/ops/shared.h": _CC,
    "cpp/ops/public.cc": f"{_CC}#include <pinnace/public.h>\n",
    "cpp/include/pinnace/public.h": _CC,
    "cpp/passes/passes.inc": "// In order.\nPASS(fold)\n",
    "cpp/passes/table.cc": f'{_CC}#include "passes/passes.inc"\n',
    "cpp/passes/fold.cc": _CC,
    "tests/cases/a.cc": _CC,
    "tests/cases/b.cc": _CC,
    "cpp/ops/long_list.inc": "// A list.\n" * 900,
    "README.md": "# A b-c: `d`\n\n[a](#a-b-c-d) [b](https://a.b) [c](cpp/ops/a.cc)\n\n`ops/a.cc` `ops/` `ops/*.cc`\n",
    "docs/a.md": "# A\n\n```text\n[a](nowhere.md) `no.cc`\n```\n\n`c.pnc` `a/b` `a.cc` `dist/c.py` [a](../README.md)\n",
    "python/pinnace/__init__.py": "",
    "python/pinnace/cli/__init__.py": '"""A."""\nfrom pinnace import __version__, _core\nfrom pinnace.cli.b import C\n',
    "python/pinnace/cli/b.py": '"""A."""\nfrom pinnace.files import d\nclass C:\n    x = d._core\n',
    "python/pinnace/files.py": '"""A."""\nclass A:\n    def f(self):\n        self._e = self._core\n',
    "scripts/a.py": '#!/usr/bin/env python3\n"""What it does."""\n',
}
