// Writing by index along one dimension: scatter, scatter_add, scatter_reduce, index_add, index_copy, index_fill,
// index_reduce, put. Reductions other than "none" read what is there unless include_self is false.
#include <cmath>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

/// scatter_elements where the index has the rank of x, or scatter_nd of whole slices at a vector of indices.
struct Writer {
  Call& c;
  ValueId index;
  int64_t axis;
  bool slices;

  ValueId operator()(ValueId x, ValueId updates, const std::string& reduction) const {
    if (!slices) {
      return c.add("scatter_elements", {x, index, updates}, {{"axis", axis}, {"reduction", reduction}});
    }
    const ValueId put = c.add("scatter_nd", {c.swap(x, 0, axis), c.unsqueeze(index, {1}), c.swap(updates, 0, axis)},
                              {{"reduction", reduction}});
    return c.swap(c.paired_like(x, put), 0, axis);
  }
};

/// ONNX's name of a reduction; "mean" stays, "" is unknown.
std::string reduction_of(const std::string& mode) {
  if (mode == "sum" || mode == "add") return "add";
  if (mode == "prod" || mode == "multiply") return "mul";
  if (mode == "amax") return "max";
  if (mode == "amin") return "min";
  return mode == "mean" || mode == "none" ? mode : "";
}

ValueId neutral(Call& c, const std::string& reduction, DType dtype) {
  const bool real = (dtypes(dtype) & kFloats) != 0;
  if (reduction == "mul") return c.constant(1, dtype);
  if (reduction == "add" || reduction == "mean") return c.constant(0, dtype);
  if (real) return c.constant(reduction == "max" ? -INFINITY : INFINITY, dtype);
  const int bits = dtype_bits(dtype);
  const bool is_unsigned = (dtypes(dtype) & dtypes(DType::kU8, DType::kU16, DType::kU32, DType::kU64)) != 0;
  const int64_t high =
      is_unsigned ? (int64_t{1} << (bits - 1)) * 2 - 1 : static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  if (reduction == "max") return c.constant_int(is_unsigned ? 0 : -high - 1, dtype);
  return c.constant_int(high, dtype);
}

/// The write with any reduction. A mean divides what was added up by how much was added.
ValueId reduced(Call& c, const Writer& write, ValueId x, ValueId updates, const std::string& reduction,
                bool include_self) {
  const DType dtype = c.dtype_of(x);
  if (reduction == "none") return write(x, updates, "none");
  if (dtype == DType::kBool) {  // sum and max are "any", product and min "all"
    const char* as = reduction == "add" || reduction == "max" ? "max" : "min";
    const ValueId y = reduced(c, write, c.cast(x, DType::kU8), c.cast(updates, DType::kU8), as, include_self);
    return c.cast(y, DType::kBool);
  }
  const DType in = reduction == "mean" ? compute_type(dtype) : dtype;
  x = c.cast(x, in);
  updates = c.cast(updates, in);
  if (!include_self) x = write(x, c.expand(neutral(c, reduction, in), c.sizes_of(updates)), "none");
  if (reduction != "mean") return write(x, updates, reduction);
  const ValueId one = c.constant(1, in), zero = c.constant(0, in);
  ValueId count = c.expand(include_self ? one : zero, c.sizes_of(x));
  if (!include_self) {  // elements that nothing is written to stay: they count once
    const ValueId ones = c.expand(one, c.sizes_of(x));
    count = write(ones, c.expand(zero, c.sizes_of(updates)), "none");
  }
  count = write(count, c.expand(one, c.sizes_of(updates)), "add");
  const ValueId sum = write(x, updates, "add");
  if ((dtypes(in) & kFloats) != 0) return c.cast(c.add("div", {sum, count}), dtype);
  // Whole numbers are divided downwards: less the remainder, which has the sign of the (positive) count.
  return c.add("div", {c.add("sub", {sum, c.add("mod", {sum, count})}), count});
}

void map_scatter(Call& c) {
  ValueId x = c.tensor("self"), index = c.cast(c.tensor("index"), DType::kI64);
  const bool scalar = c.rank(x) == 0;
  const int64_t axis = c.axis("dim", c.rank(x));
  const DType dtype = c.dtype_of(x);
  std::string reduction = c.parameter() == "add" ? "add" : "none";
  if (c.given("reduce")) reduction = reduction_of(c.string("reduce"));
  const bool include_self = c.boolean("include_self", true);
  if (reduction.empty()) return c.fail("scatter with this reduction", c.string("reduce"));
  if (scalar) x = c.reshape(x, Ints{1});
  if (c.rank(index) == 0) index = c.reshape(index, Ints{1});
  ValueId updates;
  if (c.given("value")) {
    updates = c.expand(c.as_tensor(c.operand("value"), dtype), c.sizes_of(index));
  } else {
    updates = c.cast(c.tensor("src"), dtype);
    if (c.rank(updates) == 0) updates = c.reshape(updates, Ints{1});
    for (int i = 0; i < c.rank(index) && c.rank(updates) == c.rank(index); ++i) {
      // src may be larger than index; what is beyond is not used
      if (c.dim(updates, i) != c.dim(index, i)) updates = c.slice(updates, i, Scalar::of_int(0), c.size_of(index, i));
    }
  }
  if (c.type(index).elements() == 0) return c.output(c.tensor("self"));
  const ValueId y = reduced(c, {c, index, axis, false}, x, updates, reduction, include_self);
  c.output(scalar ? c.reshape(y, Ints{}) : y);
}

// index_copy, index_add, index_fill, index_reduce along one dimension
void map_index_write(Call& c) {
  ValueId x = c.tensor("self"), index = c.cast(c.tensor("index"), DType::kI64);
  const bool scalar = c.rank(x) == 0;
  const int64_t axis = c.axis("dim", c.rank(x));
  if (!c.ok()) return;
  if (scalar) x = c.reshape(x, Ints{1});
  const int rank = c.rank(x);
  if (c.rank(index) == 0) index = c.unsqueeze(index, {0});
  const DType dtype = c.dtype_of(x);
  std::string reduction = c.parameter() == "add" ? "add" : "none";
  bool include_self = true;
  if (c.parameter() == "reduce") {
    reduction = reduction_of(c.string("reduce"));
    include_self = c.boolean("include_self", true);
    if (reduction.empty()) return c.fail("index_reduce with this reduction", c.string("reduce"));
  }
  std::vector<Scalar> sizes = c.sizes_of(x);
  sizes[static_cast<size_t>(axis)] = c.size_of(index, 0);
  ValueId source;
  if (c.parameter() == "fill") {
    source = c.full(sizes, c.as_tensor(c.operand("value"), dtype));
  } else {
    source = paired(c, x, c.cast(c.tensor("source"), dtype));
    if (c.rank(source) == rank - 1) source = c.unsqueeze(source, {axis});
    const Scalar alpha = c.scalar("alpha", Scalar::of_int(1));
    if (dtype == DType::kBool && alpha.known && alpha.number() == 0) return c.output(x);
    if (dtype != DType::kBool && !alpha.is(1)) {
      source = c.paired_like(source, c.add("mul", {source, c.as_tensor({kNoValue, alpha}, dtype)}));
    }
  }
  const ValueId y = reduced(c, {c, index, axis, true}, x, source, reduction, include_self);
  c.output(scalar ? c.reshape(y, Ints{}) : y);
}

// put: elements of the flattened tensor
void map_put(Call& c) {
  const ValueId x = c.tensor("self");
  const ValueId index = c.reshape(c.cast(c.tensor("index"), DType::kI64), Ints{-1});
  const ValueId source = c.reshape(c.cast(c.tensor("source"), c.dtype_of(x)), Ints{-1});
  const bool accumulate = c.boolean("accumulate", false);
  const ValueId y = reduced(c, {c, index, 0, true}, c.reshape(x, Ints{-1}), source, accumulate ? "add" : "none", true);
  c.output(c.reshape(y, c.sizes_of(x)));
}

constexpr Mapping kMappings[] = {
    {"aten.index_add", map_index_write, "add"},
    {"aten.index_copy", map_index_write, "copy"},
    {"aten.index_fill", map_index_write, "fill"},
    {"aten.index_reduce", map_index_write, "reduce"},
    {"aten.put", map_put, ""},
    {"aten.scatter", map_scatter, ""},
    {"aten.scatter_add", map_scatter, "add"},
    {"aten.scatter_reduce", map_scatter, "reduce"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> scatter_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
