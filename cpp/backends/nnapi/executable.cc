// Running a segment: bytes are brought into NNAPI's order, models run, results are brought back.
#include "backends/nnapi/executable.h"

#include <algorithm>
#include <cstring>

#include "backends/nnapi/kept_states.h"

namespace pinnace::nnapi_client {
namespace {

void flip_signs(std::byte* data, size_t count) {
  for (size_t i = 0; i < count; ++i) data[i] ^= std::byte{0x80};
}

}  // namespace

Status enter(const Exchange& e, const std::byte* from, std::byte* to) {
  if (e.elements == Elements::kNarrow) {  // rank 4 is never narrowed and moved at once
    const auto* wide = reinterpret_cast<const int64_t*>(from);
    auto* narrow = reinterpret_cast<int32_t*>(to);
    // What does not fit is out of range for whatever it indexes, and stays so.
    for (size_t i = 0; i < e.count; ++i) {
      narrow[i] = static_cast<int32_t>(wide[i] < INT32_MIN ? INT32_MIN : wide[i] > INT32_MAX ? INT32_MAX : wide[i]);
      if (e.exact && narrow[i] != wide[i]) {
        return fail_with(Code::kDeviceLost, "NNAPI has 32-bit integers, and an input is ", wide[i]);
      }
    }
    return {};
  }
  if (e.elements == Elements::kWiden) {  // never moved
    std::copy_n(reinterpret_cast<const uint16_t*>(from), e.count, reinterpret_cast<int32_t*>(to));
    return {};
  }
  if (e.nchw.empty()) {
    std::memcpy(to, from, e.count * e.size);
  } else {
    move_to_channels_last(e.nchw, e.size, from, to);
  }
  if (e.elements == Elements::kFlipSign) flip_signs(to, e.count);
  return {};
}

void leave(const Exchange& e, const std::byte* from, std::byte* to) {
  if (e.elements == Elements::kNarrow) {
    const auto* narrow = reinterpret_cast<const int32_t*>(from);
    auto* wide = reinterpret_cast<int64_t*>(to);
    for (size_t i = 0; i < e.count; ++i) wide[i] = narrow[i];
    return;
  }
  if (e.elements == Elements::kWiden) {
    const auto* wide = reinterpret_cast<const int32_t*>(from);
    std::transform(wide, wide + e.count, reinterpret_cast<uint16_t*>(to),
                   [](int32_t v) { return static_cast<uint16_t>(v); });
    return;
  }
  if (e.nchw.empty()) {
    std::memcpy(to, from, e.count * e.size);
  } else {
    move_from_channels_last(e.nchw, e.size, from, to);
  }
  if (e.elements == Elements::kFlipSign) flip_signs(to, e.count);
}

Result<std::unique_ptr<KeptStates>> NnapiExecutable::keep_states(bool survives) const {
  return NnapiKeptStates::create(kept_, stages_, survives);
}

Status NnapiExecutable::run(const RunContext& context, std::span<const TensorView> inputs,
                            std::span<const TensorView> outputs) const {
  const auto start = std::chrono::steady_clock::now();
  std::byte* const workspace = context.workspace;
  auto* const kept = static_cast<NnapiKeptStates*>(context.states);
  const auto keeps = [kept](size_t state) { return kept && state != kNoState && kept->keeps(state); };
  for (const Exchange& e : entries_) {
    if (!keeps(e.state)) PINNACE_TRY(enter(e, inputs[e.index].bytes, workspace + e.offset));
  }
  const auto at = [&](const Place& p, bool output) -> Bytes {
    if (keeps(p.state)) return output ? kept->next(p.state) : kept->now(p.state);
    if (p.kind == Place::Kind::kInput) return {inputs[p.index].bytes, p.bytes};
    if (p.kind == Place::Kind::kOutput) return {outputs[p.index].bytes, p.bytes};
    return {workspace + p.offset, p.bytes};
  };
  std::vector<Bytes> in, out;
  for (const Stage& stage : stages_) {
    if (context.cancelled()) return stop_status("a model on NNAPI");
    for (const Move& m : stage.moves) {
      if (m.to_channels_last) {
        move_to_channels_last(m.nchw, m.size, workspace + m.from, workspace + m.to);
      } else {
        move_from_channels_last(m.nchw, m.size, workspace + m.from, workspace + m.to);
      }
    }
    if (!stage.model) continue;
    in.clear();
    out.clear();
    for (const Place& p : stage.inputs) in.push_back(at(p, false));
    for (const Place& p : stage.outputs) out.push_back(at(p, true));
    uint64_t device_ns = 0;
    const auto begin = std::chrono::steady_clock::now();
    PINNACE_TRY(stage.model->run(in, out, context.loop_limit, context.timings ? &device_ns : nullptr,
                                 kept ? &kept->slot() : nullptr));
    if (device_ns) {
      context.timings->add(*first_, "nnapi", "on the device", begin, begin + std::chrono::nanoseconds(device_ns));
    }
  }
  for (const Exchange& e : exits_) {
    if (!keeps(e.state)) leave(e, workspace + e.offset, outputs[e.index].bytes);
  }
  if (context.timings) {
    context.timings->add(*first_, "nnapi", "the whole run", start, std::chrono::steady_clock::now());
  }
  return {};
}

}  // namespace pinnace::nnapi_client
