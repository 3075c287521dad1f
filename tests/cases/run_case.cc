// The list of all cases, and guarded memory.
#include "cases/run_case.h"

#include <cstring>

#include "base/status.h"

namespace pinnace::testing {

#define OP(name) CaseList name##_cases();
#include "ops/ops.inc"
#undef OP

namespace {

constexpr size_t kGuard = 256;  // wider than the widest vector store
constexpr std::byte kGuardByte{0x5C};

/// Bytes between guards; the first byte is 64-byte aligned.
class GuardedBytes {
 public:
  static Result<GuardedBytes> of(size_t bytes, uint8_t poison) {
    GuardedBytes guarded;
    PINNACE_ASSIGN(guarded.buffer_, Buffer::allocate(bytes + 2 * kGuard, "guarded memory"));
    guarded.bytes_ = bytes;
    std::memset(guarded.buffer_.data(), static_cast<int>(kGuardByte), guarded.buffer_.size());
    std::memset(guarded.data(), poison, bytes);
    return guarded;
  }
  std::byte* data() { return buffer_.data() + kGuard; }
  bool intact() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (buffer_.data()[i] != kGuardByte || buffer_.data()[kGuard + bytes_ + i] != kGuardByte) return false;
    }
    return true;
  }

 private:
  Buffer buffer_;
  size_t bytes_ = 0;
};

struct Views {
  std::vector<const TensorType*> types;
  std::vector<const void*> data;
  explicit Views(std::span<const TensorView> inputs) {
    for (const TensorView& v : inputs) {
      types.push_back(v.type);
      data.push_back(v.present() ? v.bytes : nullptr);
    }
  }
};

}  // namespace

Result<std::vector<ReferenceOutput>> run_node_with(const RunFn& fn, const Node& node, const OpDef& op,
                                                   std::span<const TensorView> inputs,
                                                   std::span<const TensorType* const> declared,
                                                   const RunOptions& options) {
  std::vector<GuardedBytes> in_memory, out_memory;
  std::vector<TensorView> in, out;
  for (const TensorView& given : inputs) {
    const auto bytes = given.present() ? static_cast<size_t>(given.type->bytes()) : 0;
    PINNACE_ASSIGN(GuardedBytes memory, GuardedBytes::of(bytes, 0));
    if (bytes) std::memcpy(memory.data(), given.bytes, bytes);
    in.push_back(given.present() ? TensorView{given.type, memory.data()} : TensorView{});
    in_memory.push_back(std::move(memory));
  }
  // The shape rule reads contents; it gets those of the original inputs.
  const Views originals(inputs);
  const NodeView view(node, op, originals.types, originals.data, declared);
  PINNACE_ASSIGN(const std::vector<TensorType> types, infer_node_types(view));
  for (size_t i = 0; i < types.size(); ++i) {
    if (!types[i].concrete())
      return view.error("memory: output ", i, " is ", to_string(types[i]), " with all inputs known");
    const bool shared = i == 0 && options.in_place_input >= 0;
    PINNACE_ASSIGN(GuardedBytes memory,
                   GuardedBytes::of(shared ? 0 : static_cast<size_t>(types[i].bytes()), options.poison));
    out.push_back({&types[i], shared ? in[static_cast<size_t>(options.in_place_input)].bytes : memory.data()});
    out_memory.push_back(std::move(memory));
  }
  const Views copies(in);
  PINNACE_TRY(fn(NodeView(node, op, copies.types, copies.data, declared), in, out));
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in_memory[i].intact()) return invalid("memory: bytes around input ", i, " were written");
    if (!in[i].present() || static_cast<int>(i) == options.in_place_input) continue;
    const auto bytes = static_cast<size_t>(in[i].type->bytes());
    if (bytes && std::memcmp(in[i].bytes, inputs[i].bytes, bytes) != 0)
      return invalid("memory: input ", i, " was written");
  }
  std::vector<ReferenceOutput> results;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out_memory[i].intact()) return invalid("memory: bytes around output ", i, " were written");
    const auto bytes = static_cast<size_t>(types[i].bytes());
    PINNACE_ASSIGN(Buffer copy, Buffer::allocate(bytes, "a result"));
    if (bytes) std::memcpy(copy.data(), out[i].bytes, bytes);
    results.push_back({types[i], std::move(copy)});
  }
  return results;
}

Result<std::vector<ReferenceOutput>> run_case_with(const RunFn& fn, const BuiltCase& built, const RunOptions& options) {
  return run_node_with(fn, built.node(), *built.op, built.input_views(), built.declared(), options);
}

Result<std::vector<ReferenceOutput>> run_case(const BuiltCase& built, const RunOptions& options) {
  if (!built.op->reference) return run_reference(built.node(), *built.op, built.input_views(), built.declared());
  return run_case_with(built.op->reference, built, options);
}

Result<std::vector<TensorType>> infer_case(const BuiltCase& built) {
  const std::vector<TensorView> inputs = built.input_views();
  const Views views(inputs);
  return infer_node_types(NodeView(built.node(), *built.op, views.types, views.data, built.declared()));
}

std::vector<CaseList> all_cases() {
  return {
#define OP(name) name##_cases(),
#include "ops/ops.inc"
#undef OP
  };
}

uint64_t case_seed(const char* op, size_t index) {
  uint64_t seed = test_seed() + index;
  for (const char* c = op; *c; ++c) seed = seed * 131 + static_cast<unsigned char>(*c);
  return seed;
}

}  // namespace pinnace::testing
