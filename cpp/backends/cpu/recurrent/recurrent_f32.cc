// gru, lstm and rnn in float32. The input's part of all gates is one matrix product for many elements of time; then
// each element of time multiplies the state with R, which is packed in blocks of hidden units so that it is read front
// to back, and makes the new state of a block of units while its sums are in registers.
//
// Every hidden unit is computed by the same instructions wherever it is computed, so the split over threads, which
// follows their number here, changes no bit.
#include <algorithm>
#include <cstring>

#include "backends/cpu/matmul/gemm_f32.h"
#include "backends/cpu/pace.h"
#include "backends/cpu/recurrent/recurrent_f32.h"
#include "backends/cpu/recurrent/step_team.h"
#include "ops/recurrent.h"

namespace pinnace::cpu {
namespace {

struct InstructionSet {
  const GemmTilesF32* tiles;
  const RecurrentF32Kernels* loops;
  Precision precision = Precision::kFp32;  ///< the tiles' too
  bool pairs = false;                      ///< rows of matrices stand in pairs
  /// Floats that n weights, an even number, take.
  constexpr int64_t floats(int64_t n) const { return precision == Precision::kFp32 ? n : n / 2; }
  /// Rows that a matrix of K rows takes.
  constexpr int64_t rows(int64_t K) const { return pairs ? (K + 1) / 2 * 2 : K; }
  void block(const RecurrentBlockF32& b) const {
    precision == Precision::kFp32   ? loops->block(b)
    : precision == Precision::kFp16 ? loops->block_f16(b)
                                    : loops->block_bf16(b);
  }
};
constexpr InstructionSet kGeneric{&gemm_f32_tiles_generic, &recurrent_f32_kernels_generic};
constexpr InstructionSet kF16Generic{&gemm_f32_tiles_f16_generic, &recurrent_f32_kernels_generic, Precision::kFp16};
constexpr InstructionSet kBf16Generic{&gemm_f32_tiles_bf16_generic, &recurrent_f32_kernels_generic, Precision::kBf16};
#if defined(__x86_64__)
constexpr InstructionSet kAvx2{&gemm_f32_tiles_avx2, &recurrent_f32_kernels_avx2};
constexpr InstructionSet kF16Avx2{&gemm_f32_tiles_f16_avx2, &recurrent_f32_kernels_avx2, Precision::kFp16};
constexpr InstructionSet kBf16Avx2{&gemm_f32_tiles_bf16_avx2, &recurrent_f32_kernels_avx2, Precision::kBf16};
constexpr InstructionSet kAvx512{&gemm_f32_tiles_avx512, &recurrent_f32_kernels_avx512};
constexpr InstructionSet kF16Avx512{&gemm_f32_tiles_f16_avx512, &recurrent_f32_kernels_avx512, Precision::kFp16};
constexpr InstructionSet kBf16Avx512{&gemm_f32_tiles_bf16_avx512, &recurrent_f32_kernels_avx512, Precision::kBf16};
constexpr InstructionSet kPairs{&gemm_f32_tiles_bf16_avx512, &recurrent_f32_kernels_avx512_bf16, Precision::kBf16,
                                true};
#endif

#if defined(PINNACE_PACKS_ARM64)
constexpr InstructionSet kNeon{&gemm_f32_tiles_neon, &recurrent_f32_kernels_generic};
#endif

constexpr std::string_view kGruDefaults[] = {"sigmoid", "tanh"};
constexpr std::string_view kLstmDefaults[] = {"sigmoid", "tanh", "tanh"};
constexpr std::string_view kRnnDefaults[] = {"tanh"};

std::span<const std::string_view> defaults_of(const KernelNode& node) {
  if (node.node().op == "gru") return kGruDefaults;
  if (node.node().op == "lstm") return kLstmDefaults;
  return kRnnDefaults;
}

/// False for activations that only the reference has.
bool map_of_gate(const GateActivation& gate, UnaryF32* map) {
  using Kind = GateActivation::Kind;
  const auto alpha = static_cast<float>(gate.alpha), beta = static_cast<float>(gate.beta);
  const auto set = [&](UnaryKind kind, float p, float q) {  // field by field: the bytes between stay 0
    map->kind = kind;
    map->p = p;
    map->q = q;
    return true;
  };
  switch (gate.kind) {
    case Kind::kRelu:
      return set(UnaryKind::kRelu, 0, 0);
    case Kind::kTanh:
      return set(UnaryKind::kTanh, 0, 0);
    case Kind::kSigmoid:
      return set(UnaryKind::kSigmoid, 0, 0);
    case Kind::kLeakyRelu:
      return set(UnaryKind::kLeakyRelu, alpha, 0);
    case Kind::kHardSigmoid:
      return set(UnaryKind::kHardSigmoid, alpha, beta);
    default:
      return false;
  }
}

/// A block of hidden units.
struct Block {
  int64_t first;
  int32_t units;
};

/// Sizes of a node and where its packed constants lie, in floats. Stands in front of them, so that a run need not look
/// at attributes; T and B are those of the plan that packed.
struct Plan {
  RecurrentKind kind;
  int32_t gates, directions;
  bool reverse, batch_first, input_forget, peepholes;
  /// Few rows: W is packed like R and streamed beside it, for tiles need rows.
  bool streamed;
  float clip;
  UnaryF32 maps[2][3];
  int64_t T, B, I, H, P;
  int32_t lanes, block;  ///< floats in a register, hidden units in a block
  int64_t padded;        ///< H, rounded up to whole registers
  int64_t blocks;        ///< of one direction
  bool projected;        ///< a step then has a second part, which makes h of what is H wide
  int64_t h_padded;      ///< P, rounded up likewise
  int64_t h_blocks;      ///< of one direction's projection; 0 without
  // One direction: W with the biases that go before the product, R, the other biases or P.
  // The projection with zeros for its biases.
  int64_t w_floats, r_floats, extra_floats, projection_floats;

  int64_t columns() const { return gates * padded; }
  int64_t direction_floats() const { return w_floats + r_floats + extra_floats + projection_floats; }
  /// Whole blocks, then 2 registers, then 1.
  Block block_at(int64_t i) const { return block_at(i, padded); }
  Block block_at(int64_t i, int64_t width) const {
    const int64_t whole = width / block;
    if (i < whole) return {i * block, block};
    int64_t first = whole * block;
    for (;;) {
      const auto units = static_cast<int32_t>(width - first >= 2 * lanes ? 2 * lanes : lanes);
      if (i-- == whole) return {first, units};
      first += units;
    }
  }
  /// Elements of time whose input parts are computed at a time: 2 MB of them.
  int64_t chunk() const {
    return std::clamp<int64_t>((int64_t{1} << 19) / (directions * B * columns()), 16, std::max<int64_t>(T, 16));
  }
  /// Floats of one state, h or as wide as the cell.
  int64_t state_floats() const { return directions * B * state_width(); }
  int64_t state_width() const { return std::max(padded, h_padded); }
};
constexpr int64_t kPlanFloats = (sizeof(Plan) + 63) / 64 * 16;

bool plan_of(const KernelNode& node, const InstructionSet& isa, Plan* plan) {
  std::memset(static_cast<void*>(plan), 0, sizeof *plan);
  const std::string& op = node.node().op;
  Plan& p = *plan;
  p.kind = op == "gru" ? RecurrentKind::kGru : op == "lstm" ? RecurrentKind::kLstm : RecurrentKind::kRnn;
  if (p.kind == RecurrentKind::kGru && node.attr_int("linear_before_reset") == 0) p.kind = RecurrentKind::kGruReset;
  p.gates = op == "gru" ? 3 : op == "lstm" ? 4 : 1;
  TensorType outputs[3];
  const auto sizes = check_recurrent(node, p.gates, std::span(outputs, static_cast<size_t>(node.output_count())));
  const auto activations = gate_activations(node, defaults_of(node));
  if (!sizes.ok() || !activations.ok()) return false;
  p.directions = sizes->directions;
  p.reverse = sizes->reverse;
  p.batch_first = sizes->batch_first;
  p.T = sizes->T.size;
  p.B = sizes->B.size;
  p.I = sizes->I.size;
  p.H = sizes->H.size;
  p.P = sizes->P.size;
  p.projected = sizes->projected;
  if (p.T < 1 || p.B < 1 || p.I < 1 || p.H < 1 || p.P < 1) return false;
  const size_t each = defaults_of(node).size();
  for (size_t i = 0; i < activations->size(); ++i) {
    if (!map_of_gate((*activations)[i], &p.maps[i / each][i % each])) return false;
  }
  p.clip = static_cast<float>(node.attr_float("clip"));
  if (node.attr_float("clip") > 0 && !(p.clip > 0)) return false;
  p.input_forget = op == "lstm" && node.attr_int("input_forget") != 0;
  p.peepholes = node.has_input(7);
  p.lanes = isa.loops->lanes;
  p.block = (p.gates == 1 ? 4 : 2) * p.lanes;
  p.padded = (p.H + p.lanes - 1) / p.lanes * p.lanes;
  const auto blocks_of = [&](int64_t width) {
    const int64_t rest = width % p.block / p.lanes;
    return width / p.block + rest / 2 + rest % 2;
  };
  p.blocks = blocks_of(p.padded);
  p.h_padded = (p.P + p.lanes - 1) / p.lanes * p.lanes;
  p.h_blocks = p.projected ? blocks_of(p.h_padded) : 0;
  p.streamed = p.T * p.B <= 2;
  p.w_floats = p.streamed ? p.columns() + isa.floats(isa.rows(p.I) * p.columns())
                          : panel_floats(*isa.tiles, padded_columns(*isa.tiles, p.columns()), p.I);
  p.r_floats = isa.floats(isa.rows(p.P) * p.columns());
  p.extra_floats = p.peepholes ? 3 * p.padded : p.kind == RecurrentKind::kGru ? p.padded : 0;
  p.projection_floats = p.projected ? isa.floats(isa.rows(p.H) * p.h_padded) + p.h_padded : 0;
  return true;
}

template <const InstructionSet& isa>
bool takes(const KernelNode& node) {
  // Pairs round the state before every step, which a node of bfloat16 does not.
  if (isa.pairs && node.stored_as() != DType::kF32) return false;
  Plan plan;
  return plan_of(node, isa, &plan);
}

template <const InstructionSet& isa>
int64_t packed_bytes(const KernelNode& node) {
  Plan p;
  if (!plan_of(node, isa, &p)) return 0;
  // Two ways to pack W have different sizes: plans for different lengths share only what is packed alike.
  return 4 * (kPlanFloats + p.directions * p.direction_floats() + (p.streamed ? 16 : 0));
}

/// The plan in front is followed without further checks, so a file's must be the one that is made here.
template <const InstructionSet& isa>
bool valid(const KernelNode& node, const std::byte* packed) {
  Plan here, there;
  if (!plan_of(node, isa, &here)) return false;
  std::memcpy(static_cast<void*>(&there), packed, sizeof there);
  there.T = here.T;  // every run has its own
  there.B = here.B;
  return std::memcmp(&here, &there, sizeof here) == 0;  // NOLINT: plan_of() clears what lies between members
}

/// Rows [gate][H] of `from` [.., K], gates [first_gate, first_gate + gates), as [block][K][gates][units]; with `pairs`
/// as [block][K / 2][gates][units][2]. With `projection` its rows [P] instead.
void pack_matrix(const Plan& p, const float* from, int64_t K, int first_gate, int gates, bool pairs, float* to,
                 bool projection = false) {
  const int64_t H = projection ? p.P : p.H, padded = projection ? p.h_padded : p.padded;
  const int64_t blocks = projection ? p.h_blocks : p.blocks;
  const int64_t pair = pairs ? 2 : 1, rows = (K + pair - 1) / pair * pair;
  for (int64_t i = 0; i < blocks; ++i) {
    const Block b = p.block_at(i, padded);
    const int64_t row = gates * b.units;
    for (int g = 0; g < gates; ++g) {
      for (int64_t u = 0; u < b.units; ++u) {
        const float* line = from + ((first_gate + g) * H + b.first + u) * K;
        const bool real = b.first + u < H;
        for (int64_t k = 0; k < rows; ++k) {
          to[(k / pair * row + g * b.units + u) * pair + k % pair] = real && k < K ? line[k] : 0;
        }
      }
    }
    to += rows * row;
  }
}

/// `count` weights from `from`, as the isa holds them. Returns what follows them.
float* put_weights(const InstructionSet& isa, const float* from, int64_t count, float* to) {
  if (isa.precision == Precision::kFp32) {
    std::memcpy(to, from, sizeof(float) * static_cast<size_t>(count));
  } else {
    const HalfKind kind = isa.precision == Precision::kFp16 ? HalfKind::kF16 : HalfKind::kBf16;
    half_f32_kernels_generic.narrow(kind, from, count, reinterpret_cast<uint16_t*>(to));
  }
  return to + isa.floats(count);
}

/// [block][gates][units] from [gates][H].
void pack_vector(const Plan& p, const float* from, int gates, float* to) {
  for (int64_t i = 0; i < p.blocks; ++i) {
    const Block b = p.block_at(i);
    for (int g = 0; g < gates; ++g) {
      for (int64_t u = 0; u < b.units; ++u) *to++ = b.first + u < p.H ? from[g * p.H + b.first + u] : 0;
    }
  }
}

Status pack_for(const InstructionSet& isa, const KernelNode& node, std::byte* packed) {
  Plan p;
  if (!plan_of(node, isa, &p)) return unsupported(node.label());
  std::memset(packed, 0, kPlanFloats * sizeof(float));
  std::memcpy(packed, &p, sizeof p);
  auto* at = reinterpret_cast<float*>(packed) + kPlanFloats;
  const int64_t G = p.gates * p.H;
  const auto* w = static_cast<const float*>(node.input_data(1));
  const auto* r = static_cast<const float*>(node.input_data(2));
  const auto* b = node.has_input(3) ? static_cast<const float*>(node.input_data(3)) : nullptr;
  const auto* holes = p.peepholes ? static_cast<const float*>(node.input_data(7)) : nullptr;
  const auto* projection = p.projected ? static_cast<const float*>(node.input_data(8)) : nullptr;
  PINNACE_ASSIGN(auto biases, Scratch<float>::allocate(G + p.columns(), node.label()));
  // Matrices, then one panel of the widest tile, before they are put where they belong.
  const int64_t most = std::max(isa.rows(std::max(p.I, p.P)) * p.columns(), isa.rows(p.H) * p.h_padded);
  PINNACE_ASSIGN(auto dense, Scratch<float>::allocate(most + p.I * kMostColumns, node.label()));
  const auto put_matrix = [&](const float* from, int64_t K, int first_gate, int gates, float* to) {
    pack_matrix(p, from, K, first_gate, gates, isa.pairs, dense.data());
    return put_weights(isa, dense.data(), isa.rows(K) * gates * p.padded, to);
  };
  for (int d = 0; d < p.directions; ++d, at += p.direction_floats()) {
    // Biases of W and R together, but for the one of R h that the reset gate multiplies.
    for (int64_t i = 0; i < G; ++i) {
      const bool own = p.kind == RecurrentKind::kGru && i >= 2 * p.H;
      biases[i] = b ? b[d * 2 * G + i] + (own ? 0 : b[d * 2 * G + G + i]) : 0;
    }
    float* columns = biases.data() + G;
    pack_vector(p, biases.data(), p.gates, columns);
    if (p.streamed) {
      std::memcpy(at, columns, sizeof(float) * static_cast<size_t>(p.columns()));
      put_matrix(w + d * G * p.I, p.I, 0, p.gates, at + p.columns());
    } else {
      // Panels of the tiles over the same order of columns.
      pack_matrix(p, w + d * G * p.I, p.I, 0, p.gates, false, dense.data());
      float *to = at, *panel = dense.data() + p.I * p.columns();
      for (int64_t first = 0; first < p.columns(); first += isa.tiles->nr) {
        const int64_t width = panel_width(*isa.tiles, first, p.columns());
        const int64_t last = std::min(first + width, p.columns());
        if (last - first < width) {
          std::memset(to, 0, sizeof(float) * static_cast<size_t>(width));
          std::memset(panel, 0, sizeof(float) * static_cast<size_t>(p.I * width));
        }
        std::memcpy(to, columns + first, sizeof(float) * static_cast<size_t>(last - first));
        for (int64_t c = first; c < last; ++c) {
          // Column c stands in the block that holds it.
          int64_t i = std::min(c / (p.gates * p.block), p.blocks - 1);
          Block block = p.block_at(i);
          while (c >= p.gates * (block.first + block.units)) block = p.block_at(++i);
          const float* from = dense.data() + p.gates * block.first * p.I + (c - p.gates * block.first);
          for (int64_t k = 0; k < p.I; ++k) panel[k * width + c - first] = from[k * p.gates * block.units];
        }
        to = put_weights(isa, panel, p.I * width, to + width);
      }
    }
    float* matrix = at + p.w_floats;
    if (p.kind == RecurrentKind::kGruReset) {
      float* update = put_matrix(r + d * G * p.P, p.P, 0, 2, matrix);
      put_matrix(r + d * G * p.P, p.P, 2, 1, update);
    } else {
      put_matrix(r + d * G * p.P, p.P, 0, p.gates, matrix);
    }
    float* extra = matrix + p.r_floats;
    if (p.kind == RecurrentKind::kGru) {
      for (int64_t u = 0; u < p.padded; ++u) extra[u] = b && u < p.H ? b[d * 2 * G + G + 2 * p.H + u] : 0;
    } else if (holes) {
      pack_vector(p, holes + d * 3 * p.H, 3, extra);
    }
    if (projection) {
      pack_matrix(p, projection + d * p.P * p.H, p.H, 0, 1, isa.pairs, dense.data(), true);
      float* zeros = put_weights(isa, dense.data(), isa.rows(p.H) * p.h_padded, extra + p.extra_floats);
      std::fill_n(zeros, p.h_padded, 0.0f);
    }
  }
  if (p.streamed) std::fill_n(at, 16, 0.0f);
  return {};
}

/// Floats of scratch: input parts, two states (before and after a step), cells, reset states or what is projected.
int64_t scratch_floats(const Plan& p) {
  const int64_t steps = std::min(p.chunk(), p.T);
  return p.directions * p.B * steps * p.columns() + 4 * p.state_floats();
}

template <const InstructionSet& isa>
int64_t scratch_bytes(const KernelNode& node, int) {
  Plan p;
  return plan_of(node, isa, &p) ? 4 * scratch_floats(p) : 0;
}

/// One call.
class Run {
 public:
  Run(const InstructionSet& isa, const Plan& plan, const KernelContext& context, std::span<const TensorView> in,
      std::span<const TensorView> out)
      : isa_(isa), p_(plan), context_(context), in_(in), out_(out) {
    constants_ = reinterpret_cast<const float*>(context.packed) + kPlanFloats;
    lengths_ = given(4) ? in[4].data<int32_t>() : nullptr;
    h_ = reinterpret_cast<float*>(context.scratch);
    c_ = h_ + 2 * p_.state_floats();
    reset_ = c_ + p_.state_floats();
    parts_ = reset_ + p_.state_floats();
    merged_ = !p_.batch_first && !lengths_;
  }

  void operator()() {
    load_states();
    const int64_t chunk = std::min(p_.chunk(), p_.T);
    const int phases = p_.kind == RecurrentKind::kGruReset || p_.projected ? 2 : 1;
    for (first_ = 0; first_ < p_.T; first_ += chunk) {
      last_ = std::min(p_.T, first_ + chunk);
      chunk_ = chunk;
      if (!p_.streamed) project();
      const int64_t blocks[] = {p_.blocks, p_.projected ? p_.h_blocks : p_.blocks};
      const int64_t items = p_.directions * std::max(blocks[0], blocks[1]);
      const int64_t products =
          p_.directions * p_.B * (p_.columns() * (p_.P + (p_.streamed ? p_.I : 0)) + (p_.projected ? p_.H * p_.P : 0));
      // A step of less than a microsecond, or a loop of less than a job of the pool, is not worth sharing.
      const int64_t worth = products * (last_ - first_) < (1 << 17) ? 1 : 1 + products / (1 << 15);
      StepTeam team(static_cast<int>(std::min<int64_t>({context_.threads, items, worth})), (last_ - first_) * phases);
      team.run(context_, [&](int64_t step, int part) {
        const int phase = static_cast<int>(step % phases);
        const int64_t own = blocks[phase], all = p_.directions * own;
        const int64_t begin = all * part / team.parts(), end = all * (part + 1) / team.parts();
        Pace pace(p_.B * std::max(p_.P, p_.H));
        for (int64_t at = begin; at < end && !pace.stops(); ++at) {
          const int64_t item = step & 1 ? begin + end - 1 - at : at;
          if (phase == 1 && p_.projected) {
            project_state(first_ + step / phases, item / own, p_.block_at(item % own, p_.h_padded));
          } else {
            advance(first_ + step / phases, phase, item / own, p_.block_at(item % own));
          }
        }
      });
    }
    store_states();
  }

 private:
  bool given(size_t i) const { return i < in_.size() && in_[i].present(); }
  int64_t length(int64_t b) const { return lengths_ ? lengths_[b] : p_.T; }
  bool backwards(int64_t d) const { return p_.reverse || d == 1; }
  int64_t state(int64_t d, int64_t b) const { return (d * p_.B + b) * p_.state_width(); }
  float* h(int64_t d, int64_t b, int64_t step) const { return h_ + (step & 1) * p_.state_floats() + state(d, b); }
  int64_t outer_state(int64_t d, int64_t b) const { return p_.batch_first ? b * p_.directions + d : d * p_.B + b; }
  const float* x(int64_t b, int64_t t) const {
    return in_[0].data<float>() + (p_.batch_first ? b * p_.T + t : t * p_.B + b) * p_.I;
  }
  float* y(int64_t d, int64_t b, int64_t t) const {
    return out_[0].data<float>() +
           (p_.batch_first ? (b * p_.T + t) * p_.directions + d : (t * p_.directions + d) * p_.B + b) * p_.P;
  }
  const float* direction(int64_t d) const { return constants_ + d * p_.direction_floats(); }

  /// Elements of time of this chunk in a sequence: [first, last).
  struct Times {
    int64_t first, last;
  };
  Times times(int64_t d, int64_t b) const {
    const int64_t n = length(b), last = std::min(n, last_), first = std::min(first_, last);
    return backwards(d) ? Times{n - last, n - first} : Times{first, last};
  }
  /// The input's part for element t of time, which is in this chunk: [columns].
  float* part(int64_t d, int64_t b, int64_t t) const {
    const int64_t at = t - times(d, b).first;
    return parts_ + ((merged_ ? at * p_.B + b : b * chunk_ + at) + d * p_.B * chunk_) * p_.columns();
  }

  size_t h_bytes() const { return sizeof(float) * static_cast<size_t>(p_.P); }
  size_t c_bytes() const { return sizeof(float) * static_cast<size_t>(p_.H); }

  void load_states() {
    std::memset(h_, 0, sizeof(float) * static_cast<size_t>(4 * p_.state_floats()));
    for (int64_t d = 0; d < p_.directions; ++d) {
      for (int64_t b = 0; b < p_.B; ++b) {
        if (given(5)) std::memcpy(h(d, b, 0), in_[5].data<float>() + outer_state(d, b) * p_.P, h_bytes());
        if (given(6)) std::memcpy(c_ + state(d, b), in_[6].data<float>() + outer_state(d, b) * p_.H, c_bytes());
      }
    }
  }

  void store_states() const {
    for (int64_t d = 0; d < p_.directions; ++d) {
      for (int64_t b = 0; b < p_.B; ++b) {
        const int64_t at = outer_state(d, b);
        if (out_.size() > 1) std::memcpy(out_[1].data<float>() + at * p_.P, h(d, b, p_.T), h_bytes());
        if (out_.size() > 2) std::memcpy(out_[2].data<float>() + at * p_.H, c_ + state(d, b), c_bytes());
      }
    }
  }

  /// The input's part of all gates for this chunk: matrix products, all sequences in one where their rows touch.
  void project() const {
    const int64_t products = merged_ ? 1 : p_.B, nr = isa_.tiles->nr, panels = (p_.columns() + nr - 1) / nr;
    const int64_t rows = merged_ ? (last_ - first_) * p_.B : last_ - first_;
    const int64_t together = std::clamp<int64_t>((1 << 18) / (rows * p_.I * nr), 1, panels);
    const int64_t groups = (panels + together - 1) / together;
    const ptrdiff_t stride = merged_ || p_.batch_first ? p_.I : p_.B * p_.I;
    context_.parallel(p_.directions * products * groups, [&](int64_t task) {
      const int64_t d = task / (products * groups), b = task / groups % products;
      const Times t = times(d, b);
      if (t.first == t.last) return;
      const ptrdiff_t start = 0;
      const int64_t end = std::min(panels, (task % groups + 1) * together);
      for (int64_t panel = task % groups * together; panel < end; ++panel) {
        const int64_t first = panel * nr, width = panel_width(*isa_.tiles, first, p_.columns());
        isa_.tiles->rows({.a = x(b, t.first),
                          .a_row = stride,
                          .blocks = &start,
                          .block_count = 1,
                          .k = p_.I,
                          .b = direction(d) + panel_floats(*isa_.tiles, first, p_.I),
                          .c = part(d, b, t.first) + first,
                          .c_row = p_.columns(),
                          .residual = nullptr,
                          .residual_row = 0,
                          .M = (t.last - t.first) * (merged_ ? p_.B : 1),
                          .columns = static_cast<int32_t>(std::min(width, p_.columns() - first)),
                          .map = {}},
                         static_cast<int32_t>(width));
      }
    });
  }

  /// Step i of one block of hidden units, for every sequence.
  void advance(int64_t i, int phase, int64_t d, const Block& block) const {
    const float* w = direction(d);
    const float* r = w + p_.w_floats;
    RecurrentRowF32 rows[kRows];
    RecurrentBlockF32 b{};
    b.kind = phase == 1 ? RecurrentKind::kGruUpdate : p_.kind;
    b.gates = p_.kind == RecurrentKind::kGruReset ? 2 - phase : p_.gates;
    b.units = block.units;
    b.valid = static_cast<int32_t>(std::min<int64_t>(block.units, p_.H - block.first));
    b.matrix = r + isa_.floats(isa_.rows(p_.P) * ((phase == 1 ? 2 * p_.padded : 0) + b.gates * block.first));
    b.K = p_.P;
    b.extra = p_.kind == RecurrentKind::kGru ? r + p_.r_floats + block.first
              : p_.peepholes                 ? r + p_.r_floats + 3 * block.first
                                             : nullptr;
    b.rows = rows;
    b.f = p_.maps[d][0];
    b.g = p_.maps[d][1];
    b.h = p_.maps[d][2];
    b.clip = p_.clip;
    b.input_forget = p_.input_forget;
    b.in_order = context_.shape_invariant;
    const bool resets = b.kind == RecurrentKind::kGruReset;
    const auto flush = [&] {
      if (b.row_count) isa_.block(b);
      b.row_count = 0;
    };
    for (int64_t k = 0; k < p_.B; ++k) {
      const float* before = h(d, k, i) + block.first;
      float* after = h(d, k, i + 1) + block.first;
      if (i >= length(k)) {  // over: the state stays, y is 0
        if (resets || p_.projected) continue;
        std::memcpy(after, before, sizeof(float) * static_cast<size_t>(block.units));
        std::memset(y(d, k, i) + block.first, 0, sizeof(float) * static_cast<size_t>(b.valid));
        continue;
      }
      const int64_t t = backwards(d) ? length(k) - 1 - i : i;
      float* input = part(d, k, t) + p_.gates * block.first;
      if (p_.streamed && phase == 0) {
        RecurrentRowF32 row{};
        row.vector = x(k, t);
        row.before = input;
        RecurrentBlockF32 product{};
        product.kind = RecurrentKind::kProject;
        product.gates = p_.gates;
        product.units = block.units;
        product.matrix = w + p_.columns() + isa_.floats(isa_.rows(p_.I) * p_.gates * block.first);
        product.K = p_.I;
        product.extra = w + p_.gates * block.first;
        product.rows = &row;
        product.row_count = 1;
        product.in_order = context_.shape_invariant;
        isa_.block(product);
      }
      float* reset = reset_ + state(d, k);
      rows[b.row_count++] = {phase == 1 ? reset : h(d, k, i),
                             input,
                             before,
                             resets || p_.projected ? reset + block.first : after,
                             c_ + state(d, k) + block.first,
                             resets || p_.projected ? nullptr : y(d, k, t) + block.first};
      if (b.row_count == kRows) flush();
    }
    flush();
  }

  /// The second part of step i, of one block of the projection: h of what advance() left in `reset_`.
  void project_state(int64_t i, int64_t d, const Block& block) const {
    const float* matrix = direction(d) + p_.w_floats + p_.r_floats + p_.extra_floats;
    const auto valid = static_cast<size_t>(std::min<int64_t>(block.units, p_.P - block.first));
    RecurrentRowF32 rows[kRows];
    RecurrentBlockF32 b{};
    b.kind = RecurrentKind::kProject;
    b.gates = 1;
    b.units = block.units;
    b.matrix = matrix + isa_.floats(isa_.rows(p_.H) * block.first);
    b.K = p_.H;
    b.in_order = context_.shape_invariant;
    b.extra = matrix + isa_.floats(isa_.rows(p_.H) * p_.h_padded) + block.first;
    b.rows = rows;
    for (int64_t first = 0; first < p_.B; first += kRows) {
      const int64_t last = std::min(p_.B, first + kRows);
      b.row_count = 0;
      for (int64_t k = first; k < last; ++k) {
        if (i >= length(k)) continue;
        RecurrentRowF32& row = rows[b.row_count++];
        row = {};
        row.vector = reset_ + state(d, k);
        row.before = h(d, k, i + 1) + block.first;
      }
      if (b.row_count) isa_.block(b);
      for (int64_t k = first; k < last; ++k) {
        float* after = h(d, k, i + 1) + block.first;
        if (i >= length(k)) {  // over: the state stays, y is 0
          std::memcpy(after, h(d, k, i) + block.first, sizeof(float) * static_cast<size_t>(block.units));
          std::memset(y(d, k, i) + block.first, 0, sizeof(float) * valid);
          continue;
        }
        const int64_t t = backwards(d) ? length(k) - 1 - i : i;
        std::memcpy(y(d, k, t) + block.first, after, sizeof(float) * valid);
      }
    }
  }

  static constexpr int kRows = 16;
  const InstructionSet& isa_;
  const Plan& p_;
  const KernelContext& context_;
  std::span<const TensorView> in_, out_;
  const float* constants_;
  const int32_t* lengths_;
  float *h_, *c_, *reset_, *parts_;
  bool merged_;  // the input parts of all sequences are one product
  int64_t first_ = 0, last_ = 0, chunk_ = 0;
};

Status run_on(const InstructionSet& isa, const KernelNode& node, const KernelContext& context,
              std::span<const TensorView> in, std::span<const TensorView> out) {
  // Packed for other lengths, perhaps: those are this run's own.
  Plan plan = *reinterpret_cast<const Plan*>(context.packed);
  plan.T = in[0].dim(plan.batch_first ? 1 : 0);
  plan.B = in[0].dim(plan.batch_first ? 0 : 1);
  if (in.size() > 4 && in[4].present()) {
    for (int64_t k = 0; k < plan.B; ++k) {
      const int32_t length = in[4].data<int32_t>()[k];
      if (length < 0 || length > plan.T) {
        return node.error("sequence_lens[", k, "] is ", length, ", must be in [0, ", plan.T, "]");
      }
    }
  }
  Run(isa, plan, context, in, out)();
  return {};
}

template <const InstructionSet& isa>
Status pack(const KernelNode& node, std::byte* packed) {
  return pack_for(isa, node, packed);
}

template <const InstructionSet& isa>
Status run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  return run_on(isa, node, context, in, out);
}

template <const InstructionSet& isa>
constexpr CpuKernel make() {
  return {.takes = takes<isa>,
          .packed_bytes = packed_bytes<isa>,
          .pack = pack<isa>,
          .packs = 0b1'1000'1110,
          .stores = isa.precision == Precision::kFp32,
          .valid = valid<isa>,
          .precision = isa.precision,
          .error = isa.precision == Precision::kFp16   ? 8e-3f
                   : isa.precision == Precision::kBf16 ? 6e-2f
                                                       : 0,
          .by_shape = isa.precision == Precision::kFp32 ? nullptr : always_by_shape,
          .scratch_bytes = scratch_bytes<isa>,
          .run = run<isa>};
}

}  // namespace

extern const CpuKernel recurrent_f32_generic, recurrent_f16_weights_generic, recurrent_bf16_weights_generic;
#if defined(PINNACE_PACKS_ARM64)
static constexpr CpuKernel recurrent_f32_neon = packing_only(make<kNeon>());
const CpuKernel recurrent_f32_generic = with_neon(make<kGeneric>(), &recurrent_f32_neon);
#else
const CpuKernel recurrent_f32_generic = make<kGeneric>();
#endif
const CpuKernel recurrent_f16_weights_generic = make<kF16Generic>(),
                recurrent_bf16_weights_generic = make<kBf16Generic>();
#if defined(__x86_64__)
extern const CpuKernel recurrent_f32_avx2, recurrent_f16_weights_avx2, recurrent_bf16_weights_avx2;
const CpuKernel recurrent_f32_avx2 = make<kAvx2>(), recurrent_f16_weights_avx2 = make<kF16Avx2>(),
                recurrent_bf16_weights_avx2 = make<kBf16Avx2>();
extern const CpuKernel recurrent_f32_avx512, recurrent_f16_weights_avx512, recurrent_bf16_weights_avx512;
const CpuKernel recurrent_f32_avx512 = make<kAvx512>(), recurrent_f16_weights_avx512 = make<kF16Avx512>(),
                recurrent_bf16_weights_avx512 = make<kBf16Avx512>();
extern const CpuKernel recurrent_bf16_weights_avx512_bf16;
const CpuKernel recurrent_bf16_weights_avx512_bf16 = make<kPairs>();
#endif

}  // namespace pinnace::cpu
