"""Writes mutants of the GPU back ends' own shaders, for tests alone:

    shader_mutants.py OUT GLSLC SPIRV_OPT SPIRV_VAL SPIRV_CROSS

OUT/NAME.spv and OUT/msl/NAME.metal for each line below, NAME being the kernel's and the suffix; of a kernel that is
written by hand for Metal the latter. Each has one mistake; gpu_mutants_test.cc has what it must be caught for.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))
import shaders  # noqa: E402

# A tree that counts on invocations of a simdgroup of 32 going in step.
SIMD_TREE = (
    "{\n    barrier();\n    if (t < half_count",
    "{\n    if (half_count >= 32) barrier();\n    if (t < half_count",
)
TREE = ("{\n    barrier();\n    if (t < half_count", "{\n    if (t < half_count")

# Kernel, suffix, text that is there once, text in its place.
MUTANTS = [
    ("attention_vectors_f32", "no_barrier_before_scores", "barrier();  // all have used the last tile's weights", ""),
    ("attention_vectors_f32", "no_barrier_after_scores", "barrier();\n    int row = t / 4", "int row = t / 4"),
    ("attention_vectors_f32", "no_barrier_after_maxima", "part[t] = most;\n    barrier();", "part[t] = most;"),
    ("attention_vectors_f32", "no_barrier_before_parts", "barrier();  // all have read the last maximum", "//"),
    (
        "attention_vectors_f32",
        "no_barrier_after_weights",
        "barrier();\n    if (t % 4 == 0) total",
        "if (t % 4 == 0) total",
    ),
    ("attention_f32", "unguarded_store", "if (!stores || query >= p.Sq)", "if (!stores)"),
    ("attention_f32", "past_keys", "min(KEYS, p.Sk - tile)", "KEYS"),
    ("batch_norm_f32", "next_channel", "int c = i / p.inner", "int c = (i / p.inner + 1)"),
    ("int8_conv", "past_columns", "if (ox + j >= p.OW) break;", ""),
    ("int8_conv", "unguarded_load", "at >= 0 && at < p.W ?", "at < p.W ?"),
    ("int8_gemm", "unguarded_rows", "if (m + j >= p.M) break;", ""),
    ("int8_gemm", "next_column", "min(n + j, p.N - 1) * p.b_col", "min(n + j + 1, p.N - 1) * p.b_col"),
    ("int8_conv_dense", "packed_bias", "BIAS == 1 ? b[m]", "BIAS == 2 ? b[m]"),
    ("int8_log_softmax", "no_barrier_after_sum", "barrier();\n  for (int i = t;", "for (int i = t;"),
    ("int8_log_softmax", "no_margin_below", "= negative(multiply", "= k == 1 ? kZeroDouble : negative(multiply"),
    ("int8_norm", "no_barrier_after_sum", "barrier();\n  for (int i = t;", "for (int i = t;"),
    ("int8_pool_norm", "one_channel", "numbers[own[l]]", "numbers[own.x]"),
    ("int8_reduce", "no_barrier", *TREE),
    ("int8_reduce_ordered", "past_rows", "if (row >= p.rows) return;\n  int base", "int base"),
    ("int8_reduce_ordered", "sum_of_factors", "KIND == 1 ?", "KIND == 3 ?"),
    (
        "int8_resize",
        "next_weight",
        "numbers[kWeights + columns + tx]",
        "numbers[kWeights + columns + tx + 1]",
    ),
    ("int8_softmax", "no_barrier_in_tree", *TREE),
    ("int8_softmax", "no_barrier_after_tree", "barrier();\n  int first", "int first"),
    ("int8_softmax", "no_barrier_after_sum", "barrier();\n  for (int i = t;", "for (int i = t;"),
    ("lrn_f32", "past_channels", "min(c + p.after, p.channels - 1)", "c + p.after"),
    ("int8_depthwise", "unguarded_load", "iy < 0 || iy >= p.H", "iy < 0"),
    ("conv_depthwise_f32", "unguarded_planes", " || plane >= p.planes", ""),
    (
        "conv_nc4hw4_f32",
        "unguarded_rows",
        "iy < 0 || iy >= p.H) continue;\n#endif\n    for",
        "iy < 0) continue;\n#endif\n    for",
    ),
    ("conv_matrices_f32", "no_barrier_after_fill", "threadgroup_barrier(mem_flags::mem_threadgroup);  // filled", ""),
    ("conv_matrices_f32", "no_barrier_after_read", "threadgroup_barrier(mem_flags::mem_threadgroup);  // read", ""),
    ("conv_matrices_f32", "no_barrier_after_store", "simdgroup_barrier(mem_flags::mem_threadgroup);  // stored", ""),
    ("conv_matrices_f32", "no_barrier_before_store", "simdgroup_barrier(mem_flags::mem_threadgroup);  // taken", ""),
    ("conv_matrices_f32", "unguarded_pixels", "pixel0 + own < p.pixels && k0", "k0"),
    ("conv_matrices_f32", "unguarded_weights", "block0 + own < p.M4 && k0", "k0"),
    ("conv_matrices_f32", "unguarded_store", "pixel >= p.pixels || block", "block"),
    ("conv_matrices_f32", "past_left", "(row + i * 8) * DEPTH + k,", "(row + i * 8 + 1) * DEPTH + k,"),
    ("conv_pointwise_f32", "past_pixels", "min(pixel + 16 * j, p.pixels - 1)", "pixel + 16 * j"),
    ("conv_pointwise_f32", "unguarded_store", "if (pixel + 16 * j >= p.pixels) break;", ""),
    ("cum_sum_f32", "no_barrier_before_store", "barrier();  // all have read the last sums", ""),
    ("cum_sum_f32", "no_barrier_before_read", "barrier();\n      N before", "N before"),
    ("cum_sum_f32", "no_barrier_after_read", "barrier();\n      if (t >= step)", "if (t >= step)"),
    ("cum_sum_f32", "past_slice", "N v = i < size ?", "N v = i < size + 4 ?"),
    (
        "dynamic_quantize_f32",
        "no_barrier_in_tree",
        "{\n      barrier();\n      if (t < half_count",
        "{\n      if (t < half_count",
    ),
    ("gemm_int32", "unguarded_rows", "if (m + j >= p.M) break;", ""),
    ("gemm_int32", "zeros_of_one_matrix", "row % p.za_rows * p.za_row", "row * p.za_row"),
    ("gemm_f32", "unguarded_store", "if (m + j < p.M) store", "store"),
    ("gemm_f32", "past_columns", "min(n + j, p.N - 1) * p.b_col", "(n + j) * p.b_col"),
    ("gemm_matrices_f32", "no_barrier_after_fill", "threadgroup_barrier(mem_flags::mem_threadgroup);  // filled", ""),
    ("gemm_matrices_f32", "no_barrier_after_read", "threadgroup_barrier(mem_flags::mem_threadgroup);  // read", ""),
    ("gemm_matrices_f32", "no_barrier_after_store", "simdgroup_barrier(mem_flags::mem_threadgroup);  // stored", ""),
    ("gemm_matrices_f32", "no_barrier_before_store", "simdgroup_barrier(mem_flags::mem_threadgroup);  // taken", ""),
    ("gemm_matrices_f32", "unguarded_rows", "m < p.M && k < p.K ?", "k < p.K ?"),
    ("gemm_matrices_f32", "unguarded_depth", "m < p.M && k < p.K ?", "m < p.M ?"),
    ("gemm_matrices_f32", "unguarded_columns", "block < blocks && k0", "k0"),
    ("gemm_matrices_f32", "unguarded_store", "m >= p.M || n >= p.N", "n >= p.N"),
    ("gemm_matrices_f32", "past_left", "(row + i * 8) * DEPTH + k,", "(row + i * 8 + 9) * DEPTH + k,"),
    ("gemm_matrices_f32", "past_right", "right + k * COLUMNS +", "right + (k + 1) * COLUMNS +"),
    ("gemm_matrices_f32", "half_the_sum", "k < DEPTH; k += 8", "k < DEPTH; k += 16"),
    (
        "gemm_matrices_f32",
        "part_of_a_simdgroup",
        "for (int k = 0; inside &&",
        "for (int k = 0; inside && lane < 31u &&",
    ),
    ("gemm_matrices_f32", "own_matrices", "left + (row + i * 8)", "left + (row + i * 8 ^ int(lane) % 2 * 8)"),
    ("gemm_matrices_f32", "early_return", "int at = batch", "if (!inside) return; int at = batch"),
    ("gemm_split_f32", "no_barrier", "barrier();\n  if (slice >= 4", "if (slice >= 4"),
    ("gemm_split_f32", "past_parts", "part[slice * 64 + own + l]", "part[slice * 64 + own + l + 64]"),
    ("gemm_split_f32", "half_the_sum", "for (int l = 0; l < 8; l++) all", "for (int l = 0; l < 4; l++) all"),
    ("nc4hw4_to_dense_f32", "unguarded_store", "if (c + l < p.channels) y[", "y["),
    ("elementwise_f32", "past_the_end", "if (i >= p.count)", "if (i > p.count)"),
    ("normalize_f32", "no_barrier_before_store", "barrier();\n  part[t] = v;", "part[t] = v;"),
    ("normalize_f32", "no_barrier_in_tree", *TREE),
    ("normalize_f32", "no_barrier_after_tree", "barrier();\n  return part[0];", "return part[0];"),
    ("place", "past_tuple", "if (p.tuple > 1) ", ""),
    ("pool_f32", "unguarded_load", " || ix >= p.W", ""),
    ("pool_global_f32", "no_barrier", *TREE),
    ("pool_global_f32", "counts_on_simd_32", *SIMD_TREE),
    ("recurrent_f32", "no_barrier_after_state", "barrier();\n  for (int i = p.first", "for (int i = p.first"),
    ("recurrent_f32", "no_barrier_before_update", "barrier();\n    for (int k = t", "for (int k = t"),
    ("recurrent_f32", "no_barrier_after_step", "barrier();\n  }\n  for", "}\n  for"),
    ("recurrent_f32", "past_hidden", "k < 2048; k += 256", "k <= 2048; k += 256"),
    ("reduce_f32", "no_barrier_before_store", "barrier();\n  part[t] = v;", "part[t] = v;"),
    ("reduce_f32", "no_barrier_in_tree", *TREE),
    ("reduce_f32", "no_barrier_after_tree", "barrier();\n  return part[0];", "return part[0];"),
    (
        "reduce_f32",
        "past_row",
        "for (int i = t; i < size; i += 64) {\n    float e",
        "for (int i = t; i <= size; i += 64) {\n    float e",
    ),
    ("reduce_int32", "no_barrier", *TREE),
    ("reduce_int32", "counts_on_simd_32", *SIMD_TREE),
    ("resize_f32", "next_column", "x[row + table[bt]]", "x[row + table[bt] + 1]"),
    ("scatter_f32", "every_owner", "% p.owners == owner", "% p.owners <= owner"),
    ("scatter_f32", "past_updates", "t < p.last", "t <= p.last"),
    ("softmax_f32", "no_barrier_before_store", "barrier();  // all have read the last result", ""),
    ("softmax_f32", "no_barrier_in_tree", *TREE),
    ("softmax_f32", "no_barrier_after_tree", "barrier();\n  return part[0];", "return part[0];"),
    (
        "softmax_f32",
        "counts_on_simd_64",
        "  barrier();  // all have read the last result",
        "  if (p.slices > 0) return largest ? subgroupMax(v) : subgroupAdd(v);",
    ),
    ("top_k_f32", "no_barrier_before_store", "barrier();  // all have read the last one", ""),
    ("top_k_f32", "no_barrier_in_tree", "{\n      barrier();\n      if (t < half_count", "{\n      if (t < half_count"),
    ("top_k_f32", "no_barrier_after_tree", "barrier();\n    last_key", "last_key"),
    ("top_k_f32", "past_slice", "i < size; i += 64", "i <= size; i += 64"),
    ("winograd_input_4_f32", "unguarded_load", "yy >= 0 && yy < p.H", "yy >= 0"),
    ("winograd_input_4_f32", "before_image", "yy >= 0 && yy < p.H && xx >= 0", "yy < p.H && xx >= 0"),
    ("winograd_output_4_f32", "unguarded_rows", "if (y0 + j >= p.OH) break;", ""),
    ("winograd_output_4_f32", "unguarded_columns", "if (x0 + k < p.OW) y[", "y["),
]


def main() -> int:
    out, glslc, spirv_opt, spirv_val, spirv_cross = Path(sys.argv[1]), *sys.argv[2:6]
    folder = ROOT / "cpp" / "backends" / "gpu"
    made, texts, cache = out / "msl", out / "texts", out / "cache"
    for path in (made, texts, cache):
        path.mkdir(parents=True, exist_ok=True)
    for path in [*made.iterdir(), *out.glob("*.spv")]:
        path.unlink()
    of_name = {v.name: v for v in shaders.variants(folder)}
    cross = shaders.SpirvCross(spirv_cross)
    for kernel, suffix, old, new in MUTANTS:
        variant = of_name[kernel]
        text = (folder / variant.file).read_text()
        if text.count(old) != 1:
            print(f"{variant.file}: {old!r} is there {text.count(old)} times", file=sys.stderr)
            return 1
        text = text.replace(old, new)
        if "subgroup" in new:
            text = text.replace("#version 450", "#version 450\n#extension GL_KHR_shader_subgroup_arithmetic : require")
        name = f"{kernel}_{suffix}"
        if variant.metal:
            text = shaders.own_text(folder, variant, text)
            (made / f"{name}.metal").write_text(text.replace(f"kernel void {kernel}(", f"kernel void {name}("))
            continue
        (texts / f"{name}.comp").write_text(text)
        own = shaders.Variant(name, str(texts / f"{name}.comp"), variant.defines, variant.f16)
        include = f"-I{(folder / variant.file).parent}"
        key = hashlib.sha256(shaders.shared_texts(folder, variant) + (text + repr(own)).encode()).hexdigest()[:16]
        spirv = shaders.compile_variant(folder, cache, own, key, (glslc, spirv_opt, spirv_val), include)
        manifest = shaders.reflect(struct.unpack(f"<{len(spirv) // 4}I", spirv))
        (out / f"{name}.spv").write_bytes(spirv)
        (made / f"{name}.metal").write_text(cross.msl(spirv, name, manifest.bindings, manifest.push_bytes > 0))
    (out / "made").touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
