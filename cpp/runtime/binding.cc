// Checks of a caller's tensors.
#include "runtime/binding.h"

#include <algorithm>

namespace pinnace {
namespace {

Status check_memory(std::string_view what, const std::string& name, const Tensor& t, int64_t bytes) {
  if (!t.memory.host && bytes > 0) return invalid(what, " '", name, "' has no memory");
  if (static_cast<int64_t>(std::min<size_t>(t.memory.bytes, INT64_MAX)) < bytes) {
    return invalid(what, " '", name, "' has ", t.memory.bytes, " bytes of memory, its type ", t.type, " needs ", bytes);
  }
  return {};
}

/// bytes of a concrete type, or an error if they overflow.
Status checked_bytes(std::string_view what, const std::string& name, const TensorType& type, int64_t* bytes) {
  int64_t total = dtype_bits(type.dtype);
  for (const Dim& d : type.shape) {
    if (d.size > 0 && total > INT64_MAX / 16 / d.size) {
      return invalid(what, " '", name, "': ", type, " is larger than memory can be");
    }
    total *= d.size;
  }
  *bytes = (total + 7) / 8;
  return {};
}

bool overlap(const Memory& a, size_t a_bytes, const Memory& b, size_t b_bytes) {
  const auto* x = static_cast<const std::byte*>(a.host);
  const auto* y = static_cast<const std::byte*>(b.host);
  return a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
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

Status bind_outputs(std::span<const TensorSpec> specs, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                    std::span<const int64_t> symbol_sizes, std::span<TensorView> views) {
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
      return invalid("output '", spec.name, "': is ", t.type, ", must be ", spec.type);
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
      if (overlap(t.memory, t.memory.bytes, inputs[j].memory, inputs[j].memory.bytes)) {
        return invalid("output '", spec.name, "' overlaps the memory of input ", j);
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (outputs[j].memory.host && overlap(t.memory, t.memory.bytes, outputs[j].memory, outputs[j].memory.bytes)) {
        return invalid("output '", spec.name, "' overlaps the memory of output '", specs[j].name, "'");
      }
    }
    views[i] = {&t.type, static_cast<std::byte*>(t.memory.host)};
  }
  return {};
}

}  // namespace pinnace
