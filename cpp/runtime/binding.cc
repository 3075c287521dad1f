// Checks of a caller's tensors.
#include "runtime/binding.h"

#include <algorithm>

#include "base/type_size.h"

namespace pinnace {
namespace {

/// Kernels read and write whole elements, for which the language and some instructions ask.
Status check_memory(std::string_view what, const std::string& name, const Tensor& t, int64_t bytes) {
  if (!t.memory.host && bytes > 0) return invalid(what, " '", name, "' has no memory");
  if (static_cast<int64_t>(std::min<size_t>(t.memory.bytes, INT64_MAX)) < bytes) {
    return invalid(what, " '", name, "' has ", t.memory.bytes, " bytes of memory, its type ", t.type, " needs ", bytes);
  }
  const auto element = static_cast<uintptr_t>(std::max(dtype_bits(t.type.dtype) / 8, 1));
  if (bytes > 0 && reinterpret_cast<uintptr_t>(t.memory.host) % element) {
    return invalid(what, " '", name, "' begins at an address that is no multiple of ", element, ", the bytes of one ",
                   dtype_name(t.type.dtype));
  }
  return {};
}

/// bytes of a concrete type, or an error if its sizes overflow in any order: a size of 0 counts as 1.
Status checked_bytes(std::string_view what, const std::string& name, const TensorType& type, int64_t* bytes) {
  if (!fits_memory(type)) return invalid(what, " '", name, "': ", type, " is larger than memory can be");
  *bytes = type.bytes();
  return {};
}

/// Sums of an address and a caller's number of bytes might overflow; differences cannot.
bool overlap(const Memory& a, const Memory& b) {
  const auto x = reinterpret_cast<uintptr_t>(a.host), y = reinterpret_cast<uintptr_t>(b.host);
  return a.bytes && b.bytes && (x <= y ? y - x < a.bytes : x - y < b.bytes);
}

}  // namespace

Status bind_inputs(std::span<const TensorSpec> specs, std::span<const Symbol> symbols, std::span<const Tensor> inputs,
                   std::span<int64_t> symbol_sizes, std::span<TensorView> views) {
  if (inputs.size() != specs.size()) {
    return invalid("the program takes ", specs.size(), " inputs, was given ", inputs.size());
  }
  std::fill(symbol_sizes.begin(), symbol_sizes.end(), -1);
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorSpec& spec = specs[i];
    const Tensor& t = inputs[i];
    const auto fail = [&](const auto&... parts) { return invalid("input '", spec.name, "': ", parts...); };
    if (t.type.dtype != spec.type.dtype) {
      return fail("is ", dtype_name(t.type.dtype), ", must be ", dtype_name(spec.type.dtype));
    }
    if (t.type.rank() != spec.type.rank()) {
      return fail("has rank ", t.type.rank(), " (", t.type, "), must be ", to_string(spec.type, symbols));
    }
    for (int d = 0; d < spec.type.rank(); ++d) {
      const Dim& want = spec.type.shape[d];
      const int64_t size = t.type.shape[d].size;
      if (size < 0) return fail("dimension ", d, " has no size");
      if (want.known()) {
        if (size != want.size) return fail("dimension ", d, " is ", size, ", must be ", want.size);
        continue;
      }
      if (want.max >= 0 && size > want.max) {
        return fail("dimension ", d, " is ", size, ", must be at most ", want.max);
      }
      if (want.symbol < 0) continue;
      const Symbol& s = symbols[static_cast<size_t>(want.symbol)];
      if (size < s.min || size > s.max) {
        return fail("dimension ", d, " is ", size, ", '", s.name, "' must be in [", s.min, ", ",
                    s.max == Symbol::kUnbounded ? std::string("unbounded") : str_cat(s.max), "]");
      }
      if (size % s.multiple_of) {
        return fail("dimension ", d, " is ", size, ", '", s.name, "' must be a multiple of ", s.multiple_of);
      }
      int64_t& seen = symbol_sizes[static_cast<size_t>(want.symbol)];
      if (seen >= 0 && seen != size) {
        return fail("dimension ", d, " is ", size, ", but '", s.name, "' is ", seen, " in an input before it");
      }
      seen = size;
    }
    int64_t bytes = 0;
    PINNACE_TRY(checked_bytes("input", spec.name, t.type, &bytes));
    PINNACE_TRY(check_memory("input", spec.name, t, bytes));
    views[i] = {&t.type, static_cast<std::byte*>(t.memory.host)};
  }
  return {};
}

Status bind_outputs(std::span<const TensorSpec> specs, std::span<const Symbol> symbols, std::span<const Tensor> inputs,
                    std::span<const Tensor> outputs, std::span<const int64_t> symbol_sizes,
                    std::span<TensorView> views) {
  std::fill(views.begin(), views.end(), TensorView{});
  if (outputs.empty()) return {};
  if (outputs.size() != specs.size()) {
    return invalid("the session has ", specs.size(), " outputs, was given ", outputs.size());
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorSpec& spec = specs[i];
    const Tensor& t = outputs[i];
    if (!t.memory.host) continue;
    if (t.type.dtype != spec.type.dtype || t.type.rank() != spec.type.rank()) {
      return invalid("output '", spec.name, "': is ", t.type, ", must be ", to_string(spec.type, symbols));
    }
    for (int d = 0; d < spec.type.rank(); ++d) {
      const Dim& want = spec.type.shape[d];
      const int64_t size = t.type.shape[d].size;
      const int64_t must = want.known()       ? want.size
                           : want.symbol >= 0 ? symbol_sizes[static_cast<size_t>(want.symbol)]
                                              : -1;
      if (size < 0 || (must >= 0 && size != must)) {
        return invalid("output '", spec.name, "': dimension ", d, " is ", size, ", must be ", must);
      }
      if (want.max >= 0 && size > want.max) {
        return invalid("output '", spec.name, "': dimension ", d, " is ", size, ", must be at most ", want.max);
      }
    }
    int64_t bytes = 0;
    PINNACE_TRY(checked_bytes("output", spec.name, t.type, &bytes));
    PINNACE_TRY(check_memory("output", spec.name, t, bytes));
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (overlap(t.memory, inputs[j].memory)) {
        return invalid("output '", spec.name, "' overlaps the memory of input ", j);
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (outputs[j].memory.host && overlap(t.memory, outputs[j].memory)) {
        return invalid("output '", spec.name, "' overlaps the memory of output '", specs[j].name, "'");
      }
    }
    views[i] = {&t.type, static_cast<std::byte*>(t.memory.host)};
  }
  return {};
}

Status check_declared(const TensorSpec& spec, std::span<const Symbol> symbols, std::span<const int64_t> symbol_sizes,
                      const TensorType& made) {
  const Shape& shape = spec.type.shape;
  const bool same =
      std::equal(shape.begin(), shape.end(), made.shape.begin(), made.shape.end(), [&](const Dim& said, const Dim& is) {
        const int64_t size = said.symbol >= 0 ? symbol_sizes[static_cast<size_t>(said.symbol)] : said.size;
        return size < 0 || !is.known() || is.size == size;
      });
  if (same && spec.type.dtype == made.dtype) return {};
  return invalid("output '", spec.name, "' would be ", made, ", the program says ", to_string(spec.type, symbols));
}

}  // namespace pinnace
