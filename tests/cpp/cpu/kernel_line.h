// One line of kernels.inc on one case, as a run would call it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "base/half.h"
#include "cases/run_case.h"

namespace pinnace::testing {

using namespace cpu;

/// float32 arithmetic against double: sums of up to some thousand products, maps within 4e-7. Relative to the largest
/// magnitude of the output; cases that need more or less say so.
inline constexpr Tolerance kFloat32{.abs = 1e-6f, .rel = 2e-6f};

/// The line on the node, whose inputs in `values` are not known before it runs (the case's are all constants).
inline Status run_line(const CpuKernelLine& line, const NodeView& node, uint32_t values, std::span<const TensorView> in,
                       std::span<const TensorView> out, int threads) {
  std::vector<const TensorType*> types, declared;
  std::vector<const void*> data;
  for (const TensorView& view : out) declared.push_back(view.type);
  for (int i = 0; i < node.input_count(); ++i) {
    types.push_back(node.has_input(i) ? &node.input(i) : nullptr);
    data.push_back(i < 32 && (values >> i & 1) ? nullptr : node.input_data(i));
  }
  // What was packed is not read again: its memory may have been given back.
  std::vector<TensorView> given(in.begin(), in.end());
  std::vector<Buffer> gone;
  for (size_t i = 0; line.kernel->stores && i < given.size() && i < 32; ++i) {
    if (!(line.kernel->packs >> i & 1) || !given[i].present()) continue;
    const auto bytes = static_cast<size_t>(given[i].type->bytes());
    PINNACE_ASSIGN(Buffer buffer, Buffer::allocate(bytes, "a packed input"));
    std::memset(buffer.data(), 0xff, bytes);
    given[i].bytes = buffer.data();
    gone.push_back(std::move(buffer));
  }
  return run_forced(line, NodeView(node.node(), node.op(), types, data, declared), given, out, threads);
}

/// The same on a case's tensors.
inline Result<std::vector<ReferenceOutput>> run_line(const CpuKernelLine& line, const BuiltCase& built, uint32_t values,
                                                     int threads) {
  return run_case_with([&](const NodeView& node, std::span<const TensorView> in,
                           std::span<const TensorView> out) { return run_line(line, node, values, in, out, threads); },
                       built);
}

/// A line of f16 computes with halves: it is held to what they lose.
inline bool on_halves(const CpuKernelLine& line) {
  return line.dtype == DType::kF16 && line.op != "cast";
}
/// An rnn's case with recurrent weights a quarter as large: drawn ones of about 1 make a difference grow by as much as
/// four times a step, without a gate that would hold it back, so that no bound for one rounding could hold after five.
inline Result<BuiltCase> calmed(Result<BuiltCase> built, const CpuKernelLine& line) {
  if (!built.ok() || line.op != std::string_view("rnn") || built->inputs.size() < 3) return built;
  CaseTensor& recurrent = built->inputs[2];
  if (!recurrent.present || recurrent.type.dtype != DType::kF32 || recurrent.type.elements() < 2) return built;
  const auto* from = reinterpret_cast<const float*>(recurrent.bytes->data());
  std::vector<float> weights(from, from + recurrent.type.elements());
  for (float& w : weights) w /= 4;
  PINNACE_ASSIGN(recurrent.bytes, Constant::copy_of(weights.data(), weights.size() * sizeof(float)));
  return built;
}
/// The case with halves for floats, for such lines; others get it as it is.
inline Result<BuiltCase> halved(Result<BuiltCase> built, const CpuKernelLine& line) {
  if (!built.ok() || !on_halves(line)) return built;
  for (CaseTensor& input : built->inputs) {
    if (!input.present || input.type.dtype != DType::kF32) continue;
    const auto* from = reinterpret_cast<const float*>(input.bytes->data());
    std::vector<uint16_t> halves(static_cast<size_t>(input.type.elements()));
    for (size_t i = 0; i < halves.size(); ++i) halves[i] = float_to_half(from[i]);
    PINNACE_ASSIGN(input.bytes, Constant::copy_of(halves.data(), halves.size() * sizeof(uint16_t)));
    input.type.dtype = DType::kF16;
  }
  for (size_t i = 0; i < built->graph.values.size(); ++i) {
    if (built->graph.values[i].type.dtype == DType::kF32) built->graph.values[i].type.dtype = DType::kF16;
  }
  return built;
}

/// By how much independent errors of an LSTM's states grow where these are projected: the largest norm of a row of
/// weights; 1 without a projection, or where it makes less of them.
inline float largest_projection(const BuiltCase& built) {
  constexpr size_t kProjection = 8;
  if (built.inputs.size() <= kProjection || !built.inputs[kProjection].present) return 1;
  const CaseTensor& weights = built.inputs[kProjection];
  const TensorView view{&weights.type, const_cast<std::byte*>(weights.bytes->data())};
  const int64_t length = weights.type.shape.back().size, rows = length ? weights.type.elements() / length : 0;
  float largest = 1;
  for (int64_t row = 0; row < rows; ++row) {
    float squares = 0;
    for (int64_t i = row * length; i < (row + 1) * length; ++i) {
      const float w = view.dtype() == DType::kF16 ? half_to_float(view.data<uint16_t>()[i]) : view.data<float>()[i];
      squares += w * w;
    }
    largest = std::max(largest, std::sqrt(squares));
  }
  return largest;
}

/// The steepest slope of the activation among attributes as text, by which an error before it may grow.
inline float steepest_slope(std::string_view attributes) {
  constexpr std::pair<std::string_view, float> kSteep[] = {
      {"\"hard_swish\"", 1.5f}, {"\"gelu", 1.13f}, {"\"silu\"", 1.1f}, {"\"mish\"", 1.09f}};
  for (const auto& [name, slope] : kSteep) {
    if (attributes.find(name) != std::string_view::npos) return slope;
  }
  return 1;
}

/// What sums of products may differ by, whatever becomes of them afterwards: the part that CpuKernel::precision states
/// of the largest sum of magnitudes (`exact`: nothing, the operands are numbers of 16 bits; of states a quarter), and
/// what float32 loses, as far as the activation steepens it. Nothing for operators that are no product. kUnsupported:
/// sums of halves may pass the largest one on the way.
inline Result<Tolerance> rounding_of(const CpuKernelLine& line, const BuiltCase& built, bool exact = false) {
  if (line.dtype != DType::kF32 && !on_halves(line)) return Tolerance{};
  const bool recurrent = line.op == "gru" || line.op == "lstm" || line.op == "rnn";
  const Precision precision = exact && !recurrent ? Precision::kFp32 : line.kernel->precision;
  const float part = precision == Precision::kFp16 ? 0x1p-11f : precision == Precision::kBf16 ? 0x1p-7f : 0;
  // States of about 1 may leave results near 0. They are rounded between steps, whatever the operands hold.
  if (recurrent) return Tolerance{.abs = (exact ? part / 2 : 2 * part) * largest_projection(built)};
  const bool product = line.op.starts_with("conv") || line.op == "gemm" || line.op == "mat_mul";
  if (!product) return Tolerance{};
  std::vector<ConstantPtr> magnitudes;
  std::vector<TensorView> views = built.input_views();
  std::vector<TensorType> types(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    TensorView& view = views[i];
    if (!view.present() || (view.dtype() != DType::kF32 && view.dtype() != DType::kF16)) continue;
    std::vector<float> floats(static_cast<size_t>(view.elements()));
    for (size_t k = 0; k < floats.size(); ++k) {
      floats[k] =
          std::fabs(view.dtype() == DType::kF32 ? view.data<float>()[k] : half_to_float(view.data<uint16_t>()[k]));
    }
    types[i] = *view.type;
    types[i].dtype = DType::kF32;
    view.type = &types[i];
    PINNACE_ASSIGN(ConstantPtr bytes, Constant::copy_of(floats.data(), floats.size() * sizeof(float)));
    view.bytes = const_cast<std::byte*>(bytes->data());
    magnitudes.push_back(std::move(bytes));
  }
  Node plain = built.node();
  const Attr* activation = plain.attr("activation");
  const float slope = activation ? steepest_slope(str_cat('"', std::get<std::string>(*activation), '"')) : 1;
  plain.remove_attr("activation");
  plain.remove_attr("activation_params");
  std::vector<TensorType> results;
  for (const TensorType* type : built.declared()) {
    results.push_back(*type);
    if (type->dtype == DType::kF16) results.back().dtype = DType::kF32;
  }
  std::vector<const TensorType*> declared;
  for (const TensorType& type : results) declared.push_back(&type);
  PINNACE_ASSIGN(const auto sums, run_node_with(built.op->reference, plain, *built.op, views, declared));
  if (sums[0].type.dtype != DType::kF32) return Tolerance{};  // a case of a type that the line does not take
  float largest = 0;
  for (int64_t i = 0; i < sums[0].type.elements(); ++i) {
    const float sum = reinterpret_cast<const float*>(sums[0].bytes.data())[i];
    if (std::isfinite(sum)) largest = std::max(largest, sum);
  }
  if (on_halves(line) && largest > 6e4f) return unsupported("sums of halves that may overflow");
  return Tolerance{.abs = largest * (part + 0x1p-23f + line.kernel->error) * slope};
}

/// Empty, or how an output differs from the reference's.
inline std::string differs(const CpuKernelLine& line, const std::vector<ReferenceOutput>& got,
                           const std::vector<ReferenceOutput>& reference, Tolerance tolerance, float steepest = 1) {
  tolerance.abs = std::max(tolerance.abs, kFloat32.abs);
  tolerance.rel = std::max({tolerance.rel, kFloat32.rel, line.kernel->error * steepest});
  if (on_halves(line)) tolerance = {std::max(tolerance.abs, 0x1p-10f), std::max(tolerance.rel, 0x1p-10f)};
  for (size_t k = 0; k < got.size(); ++k) {
    const CaseTensor want{true, reference[k].type,
                          *Constant::copy_of(reference[k].bytes.data(), reference[k].bytes.size())};
    const TensorView view{&got[k].type, const_cast<std::byte*>(got[k].bytes.data())};
    if (std::string sentence = difference(want, view, tolerance); !sentence.empty()) {
      return str_cat("output ", k, ": ", sentence);
    }
  }
  return {};
}

}  // namespace pinnace::testing
