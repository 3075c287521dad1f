// What runs a segment: one model, or at feature level 1 several with changes of layout between them.
#pragma once

#include <string>
#include <vector>

#include <optional>

#include "backends/nnapi/driver_model.h"

namespace pinnace::nnapi_client {

inline constexpr size_t kNoState = SIZE_MAX;

/// Bytes that a run passes to or takes from a model.
struct Place {
  enum class Kind : uint8_t {
    kInput,      ///< the segment's input `index`, as it is
    kOutput,     ///< the segment's output `index`, as it is
    kWorkspace,  ///< at `offset` of the workspace
  } kind = Kind::kWorkspace;
  size_t index = 0, offset = 0, bytes = 0;
  size_t state = kNoState;  ///< of Segment::states, that it is: elsewhere if the session keeps it
};

/// A change of order or elements between the segment's bytes and the workspace.
struct Exchange {
  size_t index;   ///< of the segment's input or output
  size_t offset;  ///< in the workspace
  size_t count;   ///< elements
  size_t size;    ///< of one in the workspace
  Elements elements;
  bool exact;                  ///< a number that does not fit is an error
  std::vector<uint32_t> nchw;  ///< the workspace has channels last; empty: the same order
  size_t state = kNoState;     ///< of Segment::states: nothing to be done if the session keeps it
};
/// The segment's bytes to NNAPI's. kDeviceLost: a number that must fit 32 bits does not.
Status enter(const Exchange& exchange, const std::byte* from, std::byte* to);
/// And back.
void leave(const Exchange& exchange, const std::byte* from, std::byte* to);

/// A state that can stay with the device.
struct KeptForm {
  Exchange exchange;       ///< between the state's bytes and the device's
  uint32_t input, output;  ///< of the model
  size_t bytes;            ///< on the device
};

/// A change of layout between two models: workspace to workspace.
struct Move {
  size_t from, to, size;
  std::vector<uint32_t> nchw;
  bool to_channels_last;
};

/// What runs one after the other.
struct Stage {
  std::vector<Move> moves;  ///< before the model
  std::unique_ptr<DriverModel> model;
  std::vector<Place> inputs, outputs;
};

class NnapiExecutable final : public Executable {
 public:
  size_t workspace_bytes() const override { return workspace_; }
  std::string_view kernel(size_t i) const override { return kernels_[i]; }
  std::string notice(size_t i) const override { return i < notices_.size() ? notices_[i] : std::string(); }
  Result<std::unique_ptr<KeptStates>> keep_states(bool survives) const override;
  Status run(const RunContext& context, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs) const override;

 private:
  friend class SegmentCompiler;
  std::vector<Exchange> entries_, exits_;
  std::vector<Stage> stages_;
  std::vector<std::string> kernels_;           ///< per node of the segment
  std::vector<std::string> notices_;           ///< likewise
  std::vector<std::optional<KeptForm>> kept_;  ///< per state of the segment
  const Node* first_ = nullptr;                ///< stands for all of them in profiles
  size_t workspace_ = 0;
};

}  // namespace pinnace::nnapi_client
