"""Writes the kernels of this folder and their mutants: mutants.py OUT_FOLDER.

A mutant is a kernel with one mistake, under a name of its own; softmetal_kernels_test.cc has what each must be caught
for.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Kernel, suffix of the mutant's name, text that is there once, text in its place.
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup); // "
MUTANTS = [
    ("gemm_tiled", "no_first_barrier", f"{BARRIER}filled", ""),
    ("gemm_tiled", "no_second_barrier", f"{BARRIER}read", ""),
    ("gemm_tiled", "unguarded_load", "(kb < p.K && column < p.N)", "(column < p.N)"),
    ("gemm_tiled", "past_tile", "left[k * 32 + ty * 2 + 1]", "left[(k + 1) * 32 + ty * 2 + 1]"),
    ("gemm_tiled", "early_return", "float2 acc0 =", "if (row0 + ty >= p.M) return; float2 acc0 ="),
    ("gemm_tiled", "divergent_barrier", f"{BARRIER}read", f"if (tx < 8) {{ {BARRIER}\n }} else {{ {BARRIER}\n }}"),
    ("softmax", "no_first_barrier", f"{BARRIER}maxima there", ""),
    ("softmax", "no_second_barrier", f"{BARRIER}maxima read", ""),
    ("softmax", "no_third_barrier", f"{BARRIER}sums there", ""),
    ("softmax", "early_return", "float largest =", "if (int(t) >= p.columns) return; float largest ="),
    ("softmax", "part_of_a_simdgroup", "sum = simd_sum(sum);", "if (t % 2u == 0u) sum = simd_sum(sum);"),
    ("softmax", "past_row", "i < p.columns; i += int(size)) // exponents", "i <= p.columns; i += int(size))"),
    ("depthwise", "unguarded_load", "r >= 0 && r < p.in_h", "r >= 0"),
    ("depthwise", "before_image", "if (r >= 0 && r", "if (r"),
    ("depthwise", "unguarded_store", "|| block >= p.blocks", ""),
    ("gemm_f16", "no_first_barrier", f"{BARRIER}filled", ""),
    ("gemm_f16", "no_second_barrier", f"{BARRIER}read", ""),
    ("gemm_f16", "early_return", "float4 sum =", "if (row >= p.M) return; float4 sum ="),
    ("gemm_f16", "past_tile", "rows[ty][k];", "rows[ty][k + 1];"),
    ("gemm_f16", "unguarded_load", "(row < p.M && k0", "(k0"),
    ("gemm_simdgroup", "no_first_barrier", f"{BARRIER}filled", ""),
    ("gemm_simdgroup", "no_second_barrier", f"{BARRIER}read", ""),
    ("gemm_simdgroup", "past_rows", "bool inside = row0 < p.M;", "bool inside = true;"),
    ("gemm_simdgroup", "past_panel", "simdgroup_load(right, panel, 8);", "simdgroup_load(right, panel + 1, 8);"),
    ("histogram", "no_first_barrier", f"{BARRIER}zeroed", ""),
    ("histogram", "no_second_barrier", f"{BARRIER}counted", ""),
    ("histogram", "past_bins", "/ 4u]", "/ 3u]"),
    ("histogram", "early_return", "counts[t] = 0u;", "if (at.x >= p.count) return; counts[t] = 0u;"),
    ("transpose", "no_barrier", f"{BARRIER}filled", ""),
    (
        "transpose",
        "too_much",
        "threadgroup short tile[16][17];",
        "threadgroup short tile[16][17]; threadgroup int b[8192];",
    ),
    ("transpose", "past_tile", "tile[local.x][local.y]", "tile[local.x + 1u][local.y]"),
]


def main() -> int:
    out, folder = Path(sys.argv[1]), Path(__file__).parent
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.metal"):
        old.unlink()
    for path in folder.glob("*.metal"):
        (out / path.name).write_text(path.read_text())
    for kernel, suffix, old_text, new_text in MUTANTS:
        text = (folder / f"{kernel}.metal").read_text()
        if text.count(old_text) != 1:
            print(f"{kernel}.metal: {old_text!r} is there {text.count(old_text)} times", file=sys.stderr)
            return 1
        text = re.sub(rf"\bkernel void {kernel}\b", f"kernel void {kernel}_{suffix}", text.replace(old_text, new_text))
        (out / f"{kernel}_{suffix}.metal").write_text(text)
    (out / "made").touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
