// Lookups by key, and projections by hash.
#include "nnapi/mapping.h"

namespace pinnace::nnapi {
namespace {

/// `found` [k] as a condition on rows of `rank` dimensions.
Result<ValueId> per_row(Call& call, ValueId found, int rank) {
  std::vector<int64_t> axes;
  for (int64_t d = 1; d < rank; ++d) axes.push_back(d);
  if (axes.empty()) return found;
  PINNACE_ASSIGN(const ValueId where, call.constant_ints(axes));
  return call.emit("unsqueeze", {found, where});
}

/// The same stored integers without their quantisation.
Result<ValueId> plain_input(Call& call, size_t i) {
  PINNACE_ASSIGN(const ValueId x, call.in(i));
  return call.quantized(x) ? call.reinterpret(x, nullptr) : x;
}

/// Which rows of sorted `keys` the lookups mean, and whether they are there.
struct Places {
  ValueId at, found;
};
Result<Places> find_keys(Call& call, ValueId lookups, ValueId keys) {
  PINNACE_ASSIGN(const int64_t count, call.size(keys, 0));
  if (count < 1) return call.error("there are no keys");
  PINNACE_ASSIGN(const ValueId last, call.constant_scalar(DType::kI64, static_cast<double>(count - 1)));
  Places places{};
  PINNACE_ASSIGN(places.at, call.emit("search_sorted", {keys, lookups}));
  PINNACE_ASSIGN(places.at, call.emit("min", {places.at, last}));
  PINNACE_ASSIGN(const ValueId there, call.emit("gather", {keys, places.at}, {{"axis", int64_t{0}}}));
  PINNACE_ASSIGN(places.found, call.emit("equal", {there, lookups}));
  return places;
}

}  // namespace

// Rows of absent keys are zero bytes, whatever the zero point is.
Status map_hashtable_lookup(Call& call) {
  PINNACE_ASSIGN(const ValueId lookups, call.in(0));
  PINNACE_ASSIGN(const ValueId keys, call.in(1));
  PINNACE_ASSIGN(const ValueId values, plain_input(call, 2));
  if (call.rank(lookups) != 1 || call.rank(keys) != 1 || call.rank(values) < 1) {
    return call.error("lookups and keys must be vectors, and values have rows, but they are ", call.type(lookups), ", ",
                      call.type(keys), " and ", call.type(values));
  }
  PINNACE_ASSIGN(const int64_t count, call.size(keys, 0));
  PINNACE_ASSIGN(const int64_t rows, call.size(values, 0));
  if (count != rows) return call.error(count, " keys cannot have ", rows, " values");
  PINNACE_ASSIGN(const Places places, find_keys(call, lookups, keys));
  PINNACE_ASSIGN(ValueId y, call.emit("gather", {values, places.at}, {{"axis", int64_t{0}}}));
  PINNACE_ASSIGN(const ValueId zero, call.constant_scalar(call.type(values).dtype, 0));
  PINNACE_ASSIGN(const ValueId found, per_row(call, places.found, call.rank(values)));
  PINNACE_ASSIGN(y, call.emit("where", {found, y, zero}));
  PINNACE_ASSIGN(const ValueId input, call.in(2));
  const QuantizationPtr quantization = call.type(input).quantization;
  if (quantization) {
    PINNACE_ASSIGN(y, call.reinterpret(y, quantization));
  }
  PINNACE_TRY(call.finish(0, y));
  PINNACE_ASSIGN(const ValueId hits, call.emit("cast", {places.found}, {{"to", std::string("u8")}}, call.declared(1)));
  return call.finish(1, hits);
}

Status map_lsh_projection(Call& call) {
  PINNACE_ASSIGN(ValueId hash, call.in(0));
  PINNACE_ASSIGN(hash, call.cast(hash, DType::kF32));
  PINNACE_ASSIGN(const ValueId x, plain_input(call, 1));
  std::vector<ValueId> inputs = {hash, x};
  if (call.has(2)) {
    PINNACE_ASSIGN(ValueId weight, call.in(2));
    PINNACE_ASSIGN(weight, call.cast(weight, DType::kF32));
    inputs.push_back(weight);
  }
  PINNACE_ASSIGN(const int64_t type, call.integer(3));
  if (type < 1 || type > 3) return call.error("type ", type, " is not one of 1 to 3");
  PINNACE_ASSIGN(const ValueId y, call.emit("lsh_projection", std::move(inputs),
                                            {{"dense", int64_t{type == 2}}, {"apart", int64_t{type == 3}}}));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
