// Which steps pay when they are run in fused runs, and how many rows at a time.
#include "backends/cpu/plan/row_tiled_fusion.h"

namespace pinnace::cpu {
namespace {

/// Images smaller than this stay in the second-level cache by themselves: MobileNetV2 is 4 % faster with fused runs of
/// the images above it on Zen 4 (1 MB of that cache), and not faster with fused runs of those above half of it. What is
/// only brought into another layout costs as much to read and write as to compute.
constexpr int64_t kLeastNhwc = 1024 * 1024, kLeastDense = kLeastNhwc / 4;
/// All buffers of a task, which share the second-level cache with weights and with what the fused run reads and leaves;
/// and rows made at a time. 192 to 512 KB and 2 to 16 rows differ by 2 %.
constexpr size_t kBufferBytes = 384 * 1024;
constexpr int64_t kMostBlock = 6;
/// Weights are read again for every block of rows.
constexpr int64_t kMostWeights = 64 * 1024;

class Finder {
 public:
  explicit Finder(const Lowered& lowered) : lowered_(lowered), readers_(lowered.types.size(), 0) {
    for (const LoweredNode& node : lowered.nodes) {
      for (const LoweredNode::Read& read : node.reads()) ++readers_[static_cast<size_t>(read.id)];
    }
    for (ValueId id : lowered.outputs) ++readers_[static_cast<size_t>(id)];
  }

  std::vector<FusedRun> run() {
    std::vector<FusedRun> found;
    for (size_t k = 0; k < lowered_.nodes.size();) {
      size_t last = k;
      while (last - k + 1 < kFusedSteps && joins(last)) ++last;
      while (last > k) {
        if (auto fused_run = make(k, last); fused_run.block > 0) {
          found.push_back(std::move(fused_run));
          break;
        }
        --last;
      }
      k = last + 1;
    }
    return found;
  }

 private:
  const LoweredNode& node(size_t k) const { return lowered_.nodes[k]; }

  bool makes_rows(const LoweredNode& n) const {
    if (n.inputs.size() > kFusedInputs) return false;
    if (n.stored_as != DType::kF32) return false;  // whole results are rounded
    return n.kind == LoweredNode::Kind::kToNhwc || (n.line && n.line->kernel->rows);
  }

  /// True if step k + 1 alone reads what step k leaves, both can work on rows, and that value is large.
  bool joins(size_t k) const {
    if (k + 1 >= lowered_.nodes.size()) return false;
    const LoweredNode &a = node(k), &b = node(k + 1);
    const ValueId id = a.outputs[0];
    const auto i = static_cast<size_t>(id);
    if (!makes_rows(a) || !makes_rows(b) || !b.line || !b.line->kernel->reads_rows) return false;
    if (b.inputs[0] != id || readers_[i] != 1 || !lowered_.layouts[i].nhwc) return false;
    const int64_t least = a.kind == LoweredNode::Kind::kToNhwc ? kLeastDense : kLeastNhwc;
    return layout_bytes(lowered_.types[i], lowered_.layouts[i]) >= least;
  }

  FusedRun make(size_t first, size_t last) const {
    FusedRun fused_run{static_cast<int32_t>(first), static_cast<int32_t>(last), {}, 0, 0, 0};
    const auto made = static_cast<size_t>(node(last).outputs[0]);
    const NhwcSizes y = nhwc_sizes(lowered_.types[made]);
    fused_run.batch = y.n;
    fused_run.height = y.h;
    for (size_t k = first; k <= last; ++k) {
      const LoweredNode& n = node(k);
      if (n.line && n.inputs.size() > 1) {
        if (lowered_.types[static_cast<size_t>(n.inputs[1])].bytes() > kMostWeights) return fused_run;
      }
    }
    for (size_t k = first; k < last; ++k) {
      const auto id = static_cast<size_t>(node(k).outputs[0]);
      const TensorType& type = lowered_.types[id];
      const Layout& layout = lowered_.layouts[id];
      const NhwcSizes s = nhwc_sizes(type);
      FusedValue value;
      const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements * dtype_bits(type.dtype) / 8); };
      value.row_bytes = bytes(nhwc_row(type, layout));
      value.left_bytes = bytes(layout.border.left * layout.pitch);
      value.right_bytes = bytes(layout.border.right * layout.pitch);
      value.top = layout.border.top;
      value.height = s.h;
      value.bottom = layout.border.bottom;
      value.zero = type.dtype == DType::kF32 ? 0 : nhwc_zero(type);
      value.window = reads(node(k + 1));
      fused_run.between.push_back(value);
    }
    // The most rows at a time that fit; kernels take two together.
    for (int64_t block = kMostBlock; block >= 2; block -= 2) {
      if (fits(fused_run, block)) break;
    }
    return fused_run;
  }

  RowWindow reads(const LoweredNode& n) const {
    std::vector<const TensorType*> types;
    for (ValueId id : n.inputs) types.push_back(id == kNoValue ? nullptr : &lowered_.types[static_cast<size_t>(id)]);
    return n.line->kernel->reads_rows(NodeView(*n.node, *n.op, types));
  }

  static bool fits(FusedRun& fused_run, int64_t block) {
    int64_t rows = block;
    size_t total = 0;
    for (size_t i = fused_run.between.size(); i-- > 0;) {
      FusedValue& value = fused_run.between[i];
      rows = std::min((rows - 1) * value.window.stride + value.window.span, value.rows());
      value.capacity = rows;
      value.offset = total;
      total += aligned_size(static_cast<size_t>(rows) * value.row_bytes + kNhwcSlackI8);
    }
    if (total > kBufferBytes) return false;
    fused_run.block = block;
    fused_run.task_bytes = total;
    return true;
  }

  const Lowered& lowered_;
  std::vector<int32_t> readers_;  // of each value, the segment's caller included
};

}  // namespace

std::vector<FusedRun> find_fused_runs(const Lowered& lowered) {
  return Finder(lowered).run();
}

}  // namespace pinnace::cpu
