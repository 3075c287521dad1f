// scaled_dot_product_attention and the kernels that it becomes.
#include <cmath>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

// q [..., H, L, E], k [..., H, S, E], v [..., H, S, Ev]; the operator wants exactly four dimensions
void map_attention(Call& c) {
  ValueId q = c.tensor("query"), k = c.tensor("key"), v = c.tensor("value"), mask = c.optional_tensor(c.parameter());
  if (c.number("dropout_p", 0) != 0) return c.fail("attention with dropout: export the model after model.eval()");
  const bool causal = c.boolean("is_causal", false);
  c.ignore({"enable_gqa", "return_debug_mask"});
  const Scalar scale = c.scalar("scale", Scalar::of_int(0));
  if (!c.ok()) return;
  if (!scale.known) return c.fail("a scale that is not known at export");
  const int rank = c.rank(q);
  if (rank < 2 || c.rank(k) != rank || c.rank(v) != rank)
    return c.fail("attention of these ranks", str_cat(rank, ", ", c.rank(k), ", ", c.rank(v)));
  if (mask != kNoValue && c.dtype_of(mask) != DType::kBool) mask = c.cast(mask, c.dtype_of(q));
  if (rank > 4) {
    // Explicitly: softmax(q k' * scale + mask) v, with the scale split between q and k as torch does.
    const Dim width = c.dim(q, -1);
    if (causal || !width.known()) return c.fail("attention of more than four dimensions, causal or of symbolic width");
    const DType dtype = c.dtype_of(q);
    const double by = std::sqrt(c.given("scale") ? scale.number() : 1 / std::sqrt(static_cast<double>(width.size)));
    const ValueId factor = c.constant(by, dtype);
    ValueId scores = c.add("mat_mul", {c.add("mul", {q, factor}), c.add("mul", {c.swap(k, -2, -1), factor})});
    if (mask != kNoValue) {
      if (c.dtype_of(mask) == DType::kBool)
        mask = c.add("where", {mask, c.constant(0, dtype), c.constant(-INFINITY, dtype)});
      scores = c.add("add", {scores, mask});
    }
    return c.outputs({c.add("mat_mul", {c.add("softmax", {scores}, {{"axis", -1}}), v}), kNoValue});
  }
  const std::vector<int64_t> missing = rank == 4   ? std::vector<int64_t>{}
                                       : rank == 3 ? std::vector<int64_t>{1}
                                                   : std::vector<int64_t>{0, 1};
  q = c.unsqueeze(q, missing);
  k = c.unsqueeze(k, missing);
  v = c.unsqueeze(v, missing);
  if (mask != kNoValue && c.rank(mask) == 3) mask = c.unsqueeze(mask, {rank == 3 ? 1 : 0});
  if (mask != kNoValue && c.rank(mask) < 2)
    mask = c.unsqueeze(mask, c.rank(mask) == 1 ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 1});
  std::vector<std::pair<std::string, Attr>> attrs = {{"is_causal", int64_t{causal}}};
  if (c.given("scale")) attrs.emplace_back("scale", scale.number());
  const ValueId y = c.add_node("attention", {q, k, v, mask}, 1, std::move(attrs))[0];
  c.outputs({c.squeeze(y, missing), kNoValue});
}

constexpr Mapping kMappings[] = {
    {"aten._scaled_dot_product_attention_math", map_attention, "attn_mask"},
    {"aten._scaled_dot_product_efficient_attention", map_attention, "attn_bias"},
    {"aten._scaled_dot_product_flash_attention_for_cpu", map_attention, "attn_mask"},
    {"aten.scaled_dot_product_attention", map_attention, "attn_mask"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> attention_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
