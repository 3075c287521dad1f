// lstm, gru and rnn: one product of all inputs with the gates' weights, then steps of time inside a workgroup per
// sequence, in dispatches that are short.
#include "backends/gpu/index/params.h"
#include "backends/gpu/lowering.h"
#include "backends/gpu/matmul/params.h"
#include "backends/gpu/recurrent/params.h"
#include "ops/recurrent.h"

namespace pinnace::gpu {
namespace {

constexpr int64_t kMostHidden = 2048;  // two rows of shared memory
/// Multiply-adds of one sequence in one dispatch: a workgroup has one core of the device, 10 ms of a phone's.
constexpr int64_t kDispatchWork = 20'000'000;
/// Turns of all loops of a dispatch: half of what software Vulkan goes through, nested ones included.
constexpr int64_t kDispatchTurns = int64_t{1} << 15;

struct Cell {
  int kind, gates;
  std::span<const std::string_view> defaults;
  const char* form;  ///< the attribute that the kernel calls FORM
};

/// What the input's product adds besides W x: both biases, but of a gru's hidden gate its own only.
TensorId gate_biases(NodeLowering& n, const Recurrent& r, const Cell& cell) {
  const int64_t G = cell.gates * r.H.size, H = r.H.size, D = r.directions;
  const NodeView view = n.view();
  const bool given = n.has(3), gru = cell.kind == 1;
  return n.weights("gate biases", D * G, [=](std::span<float> to) -> Status {
    std::fill(to.begin(), to.end(), 0.0f);
    if (!given) return {};
    const auto b = view.input_floats(3);
    if (!b) return unsupported("biases are not known");
    for (int64_t d = 0; d < D; ++d) {
      for (int64_t i = 0; i < G; ++i) {
        const double own = (*b)[static_cast<size_t>(d * 2 * G + i)];
        const double other = gru && i >= 2 * H ? 0 : (*b)[static_cast<size_t>(d * 2 * G + G + i)];
        to[static_cast<size_t>(d * G + i)] = static_cast<float>(own + other);
      }
    }
    return {};
  });
}

/// w [D * gates * H, I] by fours of rows: [ceil(rows / 4)][I][4], as gemm.comp takes columns.
TensorId input_weights(NodeLowering& n, int64_t rows, int64_t I) {
  const NodeView view = n.view();
  return n.weights("inputs", std::max<int64_t>(1, (rows + 3) / 4 * I) * 4, [=](std::span<float> to) -> Status {
    const auto w = view.input_floats(1);
    if (!w) return unsupported("weights are not known");
    std::fill(to.begin(), to.end(), 0.0f);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < I; ++i) {
        to[static_cast<size_t>((row / 4 * I + i) * 4 + row % 4)] =
            static_cast<float>((*w)[static_cast<size_t>(row * I + i)]);
      }
    }
    return {};
  });
}

/// r of direction d, [gates * H, H], as the kernel takes it.
TensorId state_weights(NodeLowering& n, int64_t d, int64_t gates, int64_t H) {
  const NodeView view = n.view();
  const int64_t blocks = (H + 3) / 4;
  return n.weights(str_cat("states ", d), blocks * gates * H * 4, [=](std::span<float> to) -> Status {
    const auto r = view.input_floats(2);
    if (!r) return unsupported("weights are not known");
    std::fill(to.begin(), to.end(), 0.0f);
    for (int64_t g = 0; g < gates; ++g) {
      for (int64_t k = 0; k < H; ++k) {
        for (int64_t i = 0; i < H; ++i) {
          to[static_cast<size_t>(((i / 4 * gates + g) * H + k) * 4 + i % 4)] =
              static_cast<float>((*r)[static_cast<size_t>(((d * gates + g) * H + k) * H + i)]);
        }
      }
    }
    return {};
  });
}

/// Peepholes, or the recurrent bias of a gru's hidden gate; zeros without them.
TensorId extra_weights(NodeLowering& n, int64_t d, const Cell& cell, int64_t H) {
  const NodeView view = n.view();
  const int64_t count = cell.kind == 2 ? 3 * H : H;
  const int input = cell.kind == 2 ? 7 : 3;
  const bool given = cell.kind > 0 && n.has(input);
  const int64_t from = cell.kind == 2 ? d * count : (2 * d + 1) * 3 * H + 2 * H;
  return n.weights(str_cat("extra ", d), count, [=](std::span<float> to) -> Status {
    std::fill(to.begin(), to.end(), 0.0f);
    if (!given) return {};
    const auto all = view.input_floats(input);
    if (!all) return unsupported("weights are not known");
    for (int64_t i = 0; i < count; ++i)
      to[static_cast<size_t>(i)] = static_cast<float>((*all)[static_cast<size_t>(from + i)]);
    return {};
  });
}

Status check_operands(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  for (int i : {1, 2, 3, 7}) {
    if (i >= n.view().input_count() || !n.has(i)) continue;
    if (!n.constant(i)) return n.refuse(Rule::kConstant, str_cat(n.view().input_name(i)));
  }
  return {};
}

Result<TensorId> lengths_of(NodeLowering& n, const Recurrent& r) {
  if (n.view().input_count() > 4 && n.has(4) && !n.constant(4)) {
    const TensorId checked = n.make_scratch(r.B.size, DType::kI32);
    n.step(KernelId::lengths, LengthsConstants{.FORM = 0},
           LengthsParams{.count = r.B.size, .time = r.T.size, .batch = r.B.size},
           {n.dense(4), checked, n.error_record()}, line_groups(r.B.size, 64), static_cast<double>(r.B.size));
    return checked;
  }
  std::vector<int64_t> lengths(static_cast<size_t>(r.B.size), r.T.size);
  if (n.view().input_count() > 4 && n.has(4) && !n.all().dry()) {
    const auto given = n.view().input_ints(4);
    if (!given) return unsupported("sequence_lens is not known");
    lengths = *given;
    for (size_t k = 0; k < lengths.size(); ++k) {
      if (lengths[k] >= 0 && lengths[k] <= r.T.size) continue;
      return n.view().error("sequence_lens[", k, "] is ", lengths[k], ", must be in [0, ", r.T.size, "]");
    }
  }
  // The sizes of x may vary: the lengths without an operand are those of this x.
  return n.size_table(str_cat("lengths ", r.B.size, " ", r.T.size), r.B.size, [lengths](std::span<float> to) {
    for (size_t k = 0; k < lengths.size(); ++k) to[k] = std::bit_cast<float>(static_cast<int32_t>(lengths[k]));
    return Status();
  });
}

Status lower_cell(NodeLowering& n, const Cell& cell) {
  PINNACE_TRY(check_operands(n));
  std::vector<TensorType> types(static_cast<size_t>(n.view().output_count()));
  PINNACE_ASSIGN(const Recurrent r, check_recurrent(n.view(), cell.gates, types));
  if (r.projected) return n.refuse(Rule::kAttribute, "a projection");
  PINNACE_ASSIGN(const auto activations, gate_activations(n.view(), cell.defaults));
  const int64_t D = r.directions, T = r.T.size, B = r.B.size, I = r.I.size, H = r.H.size, G = cell.gates * H;
  if (H > kMostHidden) return n.refuse(Rule::kAttribute, str_cat(H, " hidden units, has ", kMostHidden));
  constexpr int64_t kMost = (int64_t{128} << 20) / 4;
  if (T * B > kMost / std::max<int64_t>(1, D * G)) {
    return n.refuse(Rule::kBytes, str_cat(T * B, " steps of ", D * G, " gates"));
  }
  const bool bf = r.batch_first;
  const bool form = cell.form && n.view().attr_int(cell.form) != 0;
  const auto given = [&](int i) { return i < n.view().input_count() && n.has(i); };
  const TensorId x = n.dense(0), inputs = input_weights(n, D * G, I), biases = gate_biases(n, r, cell);
  PINNACE_ASSIGN(const TensorId lengths, lengths_of(n, r));
  const TensorId h0 = given(5) ? n.dense(5) : lengths, c0 = given(6) ? n.dense(6) : lengths;
  const TensorId gates = n.make_scratch(std::max<int64_t>(1, T * B * D * G));
  if (T > 0) {
    n.loops(loop_turns(I));
    n.step(KernelId::gemm_packed, GemmConstants{.BIAS = 1},
           GemmParams{.M = T * B,
                      .N = D * G,
                      .K = I,
                      .a_row = I,
                      .a_col = 1,
                      .b_row = 1,
                      .b_col = I,
                      .c_row = 0,
                      .c_col = 1,
                      .inner = 1,
                      .alpha = 1,
                      .beta = 1},
           {x, inputs, biases, gates}, {groups_of(D * G, 64), groups_of(T * B, 16), 1},
           static_cast<double>(T * B * D * G) * static_cast<double>(I));
  }
  std::vector<TensorId> y;
  for (int o = 0; o < n.view().output_count(); ++o) y.push_back(n.make_dense(o));
  const int64_t step_work = std::max<int64_t>(1, G * H);
  // Of a step, 11 for one hidden unit: an invocation's units, their gates, four elements of the state at a time.
  const int64_t step_turns = 16 + 2 * cell.gates * (H / 4 + 1) * ((H + 255) / 256);
  const int64_t most_steps = std::max<int64_t>(1, std::min(kDispatchWork / step_work, kDispatchTurns / step_turns));
  for (int64_t d = 0; d < D; ++d) {
    std::array<GateActivation, 3> a{};
    for (size_t i = 0; i < cell.defaults.size(); ++i) {
      a[i] = activations[static_cast<size_t>(d) * cell.defaults.size() + i];
      if (a[i].kind == GateActivation::Kind::kTanh) a[i] = {GateActivation::Kind::kScaledTanh, 1, 1, a[i].clip};
      if (a[i].kind == GateActivation::Kind::kRelu) a[i] = {GateActivation::Kind::kThresholdedRelu, 0, 0, a[i].clip};
    }
    const TensorId weights = state_weights(n, d, cell.gates, H), extra = extra_weights(n, d, cell, H);
    const TensorId state = n.all().add_tensor(DeviceTensor::Place::kActivation, 0, static_cast<size_t>(B * 2 * H) * 4);
    const TensorId yh = y.size() > 1 ? y[1] : state, yc = y.size() > 2 ? y[2] : state;
    for (int64_t first = 0; first == 0 || first < T; first += most_steps) {
      const int64_t steps = std::min(most_steps, T - first);
      const bool last = first + steps >= T;
      const RecurrentParams params{.time = T,
                                   .batch = B,
                                   .H = H,
                                   .first = first,
                                   .steps = steps,
                                   .g_row = D * G,
                                   .g_at = d * G,
                                   .x_t = bf ? 1 : B,
                                   .x_b = bf ? T : 1,
                                   .y_t = bf ? D * H : D * B * H,
                                   .y_b = bf ? T * D * H : H,
                                   .y_at = bf ? d * H : d * B * H,
                                   .s_b = bf ? D * H : H,
                                   .s_at = bf ? d * H : d * B * H,
                                   .y_h = last && y.size() > 1 ? 1 : 0,
                                   .y_c = last && y.size() > 2 ? 1 : 0,
                                   .clip = a[0].clip,
                                   .a0 = a[0].alpha,
                                   .b0 = a[0].beta,
                                   .a1 = a[1].alpha,
                                   .b1 = a[1].beta,
                                   .a2 = a[2].alpha,
                                   .b2 = a[2].beta};
      // Beside the steps, the state of up to 8 units per invocation is loaded and stored.
      n.loops(2 * loop_turns(8) + loop_turns(steps, step_turns));
      n.step(
          KernelId::recurrent,
          RecurrentConstants{.KIND = cell.kind,
                             .F0 = static_cast<int32_t>(a[0].kind),
                             .F1 = static_cast<int32_t>(a[1].kind),
                             .F2 = static_cast<int32_t>(a[2].kind),
                             .BACK = r.reverse || d == 1,
                             .FORM = form,
                             .H0 = given(5),
                             .C0 = given(6),
                             .HOLES = given(7)},
          params, {gates, weights, extra, lengths, h0, c0, state, y[0], yh, yc}, row_groups(B),
          // Few sequences leave most of the device idle: their steps count as if all of it worked.
          static_cast<double>(std::max<int64_t>(B, 16) * std::max<int64_t>(1, steps)) * static_cast<double>(step_work));
    }
  }
  return {};
}

}  // namespace

Status lower_gru(NodeLowering& n) {
  static constexpr std::string_view kDefaults[] = {"sigmoid", "tanh"};
  return lower_cell(n, {1, 3, kDefaults, "linear_before_reset"});
}
Status lower_lstm(NodeLowering& n) {
  static constexpr std::string_view kDefaults[] = {"sigmoid", "tanh", "tanh"};
  return lower_cell(n, {2, 4, kDefaults, "input_forget"});
}
Status lower_rnn(NodeLowering& n) {
  static constexpr std::string_view kDefaults[] = {"tanh"};
  return lower_cell(n, {0, 1, kDefaults, nullptr});
}

}  // namespace pinnace::gpu
