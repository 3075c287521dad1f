// Recurrent cells through the C interface, against cells written down here in double, one unit after the other; the
// integer ones and SVDF against numbers worked out by hand.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "cpp/nnapi/nnapi_client.h"

namespace {

using namespace nnapi_client;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

constexpr int32_t kFloat32 = 0, kBool = 6, kTensorQuant16Symm = 7, kTensorQuant8Symm = 13, kTensorQuant8Signed = 14;
constexpr int32_t kLstm = 16, kRnn = 24, kSvdf = 27, kBidirectionalLstm = 42, kBidirectionalRnn = 43;
constexpr int32_t kQuantized16BitLstm = 73, kUnidirectionalLstm = 92, kUnidirectionalRnn = 93, kQuantizedLstm = 95;
constexpr int32_t kTanh = 4, kSigmoid = 6;

struct Model : Builder {
  std::vector<uint32_t> in;
  uint32_t omitted(int32_t type) {
    const uint32_t index = operand(type, {0});
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(index), nullptr, 0), 0);
    return index;
  }
  template <class T>
  uint32_t one(int32_t type, T value) {
    const uint32_t index = operand(type, {});
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(index), &value, sizeof value), 0);
    return index;
  }
  void number(int32_t value) { in.push_back(scalar(value)); }
  void real(float value) { in.push_back(one(kFloat32, value)); }
  void flag(bool value) { in.push_back(one(kBool, static_cast<uint8_t>(value))); }
  /// Values, or nothing where there are none.
  void floats(const Floats& values, std::vector<uint32_t> dims) {
    in.push_back(values.empty() ? omitted(kTensorFloat32) : constant<float>(kTensorFloat32, std::move(dims), values));
  }
};

/// Runs a model whose first operand is its only input.
int run(const Model& model, const Floats& x, std::vector<Floats*> outputs) {
  Compiled compiled(model);
  Execution execution(compiled);
  EXPECT_EQ(execution.input(0, x), 0);
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(execution.output(static_cast<int32_t>(i), *outputs[i]), 0);
  return ANeuralNetworksExecution_compute(execution.execution);
}

Floats random_floats(size_t count) {
  static std::mt19937 engine(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats values(count);
  for (float& v : values) v = uniform(engine);
  return values;
}

void expect_near(const Floats& got, const Doubles& wanted, const char* what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(static_cast<double>(got[i]), wanted[i], 2e-5) << what << " " << i;
}

double activate(int32_t code, double x) {
  switch (code) {
    case 1:
      return std::max(x, 0.0);
    case 3:
      return std::clamp(x, 0.0, 6.0);
    case kTanh:
      return std::tanh(x);
    case kSigmoid:
      return 1 / (1 + std::exp(-x));
    default:
      return x;
  }
}

/// Row `row` of a matrix times v.
double dot(const Floats& m, size_t row, const Doubles& v) {
  double sum = 0;
  for (size_t i = 0; i < v.size(); ++i) sum += static_cast<double>(m[row * v.size() + i]) * v[i];
  return sum;
}

/// Part `i` of equal parts of `size`.
Doubles part(const Floats& all, size_t i, size_t size) {
  return {all.begin() + static_cast<ptrdiff_t>(i * size), all.begin() + static_cast<ptrdiff_t>((i + 1) * size)};
}

// --------------------------------------------------------------------------------------------------------- LSTM

constexpr size_t kBatch = 2, kIn = 3, kUnits = 4;

struct LstmVariant {
  const char* name;
  bool coupled = false, peephole = false, normalised = false, projected = false, clipped = false;
  int32_t activation = kTanh;
  size_t aux = 0;  ///< features of an auxiliary input with weights
  size_t outputs() const { return projected ? 2 : kUnits; }
};

/// Gates in the order input, forget, cell, output; what a variant lacks is empty.
struct LstmWeights {
  Floats w[4], r[4], p[3], b[4], norm[4], aux[4], projection, projection_bias, h, c;
};

LstmWeights random_weights(const LstmVariant& v, size_t features = kIn) {
  LstmWeights weights;
  for (size_t g = v.coupled ? 1 : 0; g < 4; ++g) {
    weights.w[g] = random_floats(kUnits * features);
    weights.r[g] = random_floats(kUnits * v.outputs());
    weights.b[g] = random_floats(kUnits);
    if (v.normalised) weights.norm[g] = random_floats(kUnits);
    if (v.aux) weights.aux[g] = random_floats(kUnits * v.aux);
    if (v.peephole && g != 2) weights.p[g == 3 ? 2 : g] = random_floats(kUnits);
  }
  if (v.projected) {
    weights.projection = random_floats(v.outputs() * kUnits);
    weights.projection_bias = random_floats(v.outputs());
  }
  weights.h = random_floats(kBatch * v.outputs());
  weights.c = random_floats(kBatch * kUnits);
  return weights;
}

constexpr double kCellClip = 0.5, kProjectionClip = 0.3;

/// One row's h and c by one element of time.
void lstm_step(const LstmVariant& v, const LstmWeights& weights, const Doubles& x, const Doubles& aux, Doubles& h,
               Doubles& c) {
  Doubles gates[4];
  const auto gate = [&](size_t g, const Doubles& state) {
    Doubles z(kUnits);
    for (size_t u = 0; u < kUnits; ++u) {
      z[u] = dot(weights.w[g], u, x) + dot(weights.r[g], u, h);
      if (v.aux) z[u] += dot(weights.aux[g], u, aux);
      if (v.peephole && g != 2) z[u] += static_cast<double>(weights.p[g == 3 ? 2 : g][u]) * state[u];
    }
    if (v.normalised) {
      double mean = 0, variance = 0;
      for (double value : z) mean += value / kUnits;
      for (double value : z) variance += (value - mean) * (value - mean) / kUnits;
      for (size_t u = 0; u < kUnits; ++u) {
        z[u] = (z[u] - mean) / std::sqrt(variance + 1e-8) * static_cast<double>(weights.norm[g][u]);
      }
    }
    for (size_t u = 0; u < kUnits; ++u) {
      z[u] = activate(g == 2 ? v.activation : kSigmoid, z[u] + static_cast<double>(weights.b[g][u]));
    }
    gates[g] = z;
  };
  for (size_t g = v.coupled ? 1 : 0; g < 3; ++g) gate(g, c);
  Doubles next(kUnits), made(kUnits);
  for (size_t u = 0; u < kUnits; ++u) {
    const double input = v.coupled ? 1 - gates[1][u] : gates[0][u];
    next[u] = gates[1][u] * c[u] + input * gates[2][u];
    if (v.clipped) next[u] = std::clamp(next[u], -kCellClip, kCellClip);
  }
  gate(3, next);
  c = next;
  for (size_t u = 0; u < kUnits; ++u) made[u] = gates[3][u] * activate(v.activation, c[u]);
  h = made;
  if (!v.projected) return;
  h.resize(v.outputs());
  for (size_t o = 0; o < v.outputs(); ++o) {
    h[o] = dot(weights.projection, o, made) + static_cast<double>(weights.projection_bias[o]);
    if (v.clipped) h[o] = std::clamp(h[o], -kProjectionClip, kProjectionClip);
  }
}

struct Walked {
  Doubles y, h, c;  ///< y [T, B, O]
};

/// x and aux are [time, B, .]; `backwards` walks from the last to the first and stores where it is.
Walked lstm_walk(const LstmVariant& v, const LstmWeights& weights, const Floats& x, size_t features, const Floats& aux,
                 size_t time, bool backwards) {
  Walked walked{Doubles(time * kBatch * v.outputs()), {}, {}};
  for (size_t b = 0; b < kBatch; ++b) {
    Doubles h = part(weights.h, b, v.outputs()), c = part(weights.c, b, kUnits);
    for (size_t step = 0; step < time; ++step) {
      const size_t t = backwards ? time - 1 - step : step;
      const Doubles now = v.aux ? part(aux, t * kBatch + b, v.aux) : Doubles();
      lstm_step(v, weights, part(x, t * kBatch + b, features), now, h, c);
      std::copy(h.begin(), h.end(), walked.y.begin() + static_cast<ptrdiff_t>((t * kBatch + b) * v.outputs()));
    }
    walked.h.insert(walked.h.end(), h.begin(), h.end());
    walked.c.insert(walked.c.end(), c.begin(), c.end());
  }
  return walked;
}

/// Inputs 1 to 17: weights, recurrent weights, peepholes, biases, projection.
void add_weights(Model& m, const LstmVariant& v, const LstmWeights& weights, uint32_t features = kIn) {
  const auto outputs = static_cast<uint32_t>(v.outputs());
  for (const Floats& w : weights.w) m.floats(w, {kUnits, features});
  for (const Floats& r : weights.r) m.floats(r, {kUnits, outputs});
  for (const Floats& p : weights.p) m.floats(p, {kUnits});
  for (const Floats& b : weights.b) m.floats(b, {kUnits});
  m.floats(weights.projection, {outputs, kUnits});
  m.floats(weights.projection_bias, {outputs});
}
void add_states(Model& m, const LstmVariant& v, const LstmWeights& weights) {
  m.floats(weights.h, {kBatch, static_cast<uint32_t>(v.outputs())});
  m.floats(weights.c, {kBatch, kUnits});
}
void add_settings(Model& m, const LstmVariant& v) {
  m.number(v.activation);
  m.real(v.clipped ? static_cast<float>(kCellClip) : 0);
  m.real(v.clipped ? static_cast<float>(kProjectionClip) : 0);
}
void add_norms(Model& m, const LstmWeights& weights) {
  for (const Floats& n : weights.norm) m.floats(n, {kUnits});
}

constexpr LstmVariant kVariants[] = {
    {.name = "plain"},
    {.name = "coupled", .coupled = true},
    {.name = "peephole", .peephole = true},
    {.name = "coupled peephole", .coupled = true, .peephole = true, .activation = kSigmoid},
    {.name = "normalised", .normalised = true},
    {.name = "projected", .projected = true},
    {.name = "clipped", .projected = true, .clipped = true},
    {.name = "everything", .peephole = true, .normalised = true, .projected = true, .clipped = true},
    {.name = "coupled with the rest", .coupled = true, .peephole = true, .normalised = true, .projected = true},
    {.name = "relu", .activation = 1},
    {.name = "relu6", .activation = 3},
    {.name = "linear", .activation = 0},
};

TEST(NnapiCells, LstmOfOneElementOfTime) {
  for (const LstmVariant& v : kVariants) {
    SCOPED_TRACE(v.name);
    const LstmWeights weights = random_weights(v);
    const Floats x = random_floats(kBatch * kIn);
    Model m;
    m.in.push_back(m.operand(kTensorFloat32, {kBatch, kIn}));
    add_weights(m, v, weights);
    add_states(m, v, weights);
    add_settings(m, v);
    add_norms(m, weights);
    const auto outputs = static_cast<uint32_t>(v.outputs());
    const uint32_t buffer_size = v.coupled ? 3 * kUnits : 4 * kUnits;
    const std::vector<uint32_t> out = {
        m.operand(kTensorFloat32, {kBatch, buffer_size}), m.operand(kTensorFloat32, {kBatch, outputs}),
        m.operand(kTensorFloat32, {kBatch, kUnits}), m.operand(kTensorFloat32, {kBatch, outputs})};
    m.add(kLstm, m.in, out);
    m.finish({m.in[0]}, out);
    Floats buffer(kBatch * buffer_size), h(kBatch * outputs), c(kBatch * kUnits), y(kBatch * outputs);
    ASSERT_EQ(run(m, x, {&buffer, &h, &c, &y}), 0);
    const Walked wanted = lstm_walk(v, weights, x, kIn, {}, 1, false);
    expect_near(h, wanted.h, "h");
    expect_near(c, wanted.c, "c");
    expect_near(y, wanted.h, "y");
  }
}

/// [time, B, n] as [B, time, n].
template <class T>
std::vector<T> batch_first(const std::vector<T>& x, size_t time, size_t n) {
  std::vector<T> swapped;
  for (size_t b = 0; b < kBatch; ++b) {
    for (size_t t = 0; t < time; ++t) {
      const auto from = x.begin() + static_cast<ptrdiff_t>((t * kBatch + b) * n);
      swapped.insert(swapped.end(), from, from + static_cast<ptrdiff_t>(n));
    }
  }
  return swapped;
}

TEST(NnapiCells, SequencesOfAnLstm) {
  for (const LstmVariant& v : kVariants) {
    for (const auto& [time, time_major] : {std::pair{3u, true}, {3u, false}, {1u, true}, {50u, false}}) {
      SCOPED_TRACE(v.name);
      const LstmWeights weights = random_weights(v);
      const Floats x = random_floats(time * kBatch * kIn);
      const auto outputs = static_cast<uint32_t>(v.outputs());
      const auto dims = [&, time = time, major = time_major](uint32_t n) {
        return major ? std::vector<uint32_t>{time, kBatch, n} : std::vector<uint32_t>{kBatch, time, n};
      };
      Model m;
      m.in.push_back(m.operand(kTensorFloat32, dims(kIn)));
      add_weights(m, v, weights);
      add_states(m, v, weights);
      add_settings(m, v);
      m.flag(time_major);
      add_norms(m, weights);
      const std::vector<uint32_t> out = {m.operand(kTensorFloat32, dims(outputs)),
                                         m.operand(kTensorFloat32, {kBatch, outputs}),
                                         m.operand(kTensorFloat32, {kBatch, kUnits})};
      m.add(kUnidirectionalLstm, m.in, out);
      m.finish({m.in[0]}, out);
      Floats y(time * kBatch * outputs), h(kBatch * outputs), c(kBatch * kUnits);
      ASSERT_EQ(run(m, time_major ? x : batch_first(x, time, kIn), {&y, &h, &c}), 0);
      const Walked wanted = lstm_walk(v, weights, x, kIn, {}, time, false);
      expect_near(y, time_major ? wanted.y : batch_first(wanted.y, time, outputs), "y");
      expect_near(h, wanted.h, "h");
      expect_near(c, wanted.c, "c");
    }
  }
}

enum class AuxUse { kNone, kCross, kParallel };

TEST(NnapiCells, SequencesOfAnLstmInBothDirections) {
  constexpr uint32_t kTime = 3, kAuxIn = 2;
  for (LstmVariant v : {kVariants[0], kVariants[1], kVariants[7]}) {
    for (const AuxUse use : {AuxUse::kNone, AuxUse::kCross, AuxUse::kParallel}) {
      for (const bool merged : {false, true}) {
        SCOPED_TRACE(v.name);
        v.aux = use == AuxUse::kCross ? kAuxIn : 0;
        const uint32_t backward_in = use == AuxUse::kParallel ? kAuxIn : kIn;
        const LstmWeights first = random_weights(v), second = random_weights(v, backward_in);
        const Floats x = random_floats(kTime * kBatch * kIn);
        const Floats aux = use == AuxUse::kNone ? Floats() : random_floats(kTime * kBatch * kAuxIn);
        const auto outputs = static_cast<uint32_t>(v.outputs());
        Model m;
        m.in.push_back(m.operand(kTensorFloat32, {kTime, kBatch, kIn}));
        add_weights(m, v, first);
        add_weights(m, v, second, backward_in);
        add_states(m, v, first);
        add_states(m, v, second);
        m.floats(aux, {kTime, kBatch, kAuxIn});
        for (const LstmWeights* weights : {&first, &second}) {
          for (const Floats& a : weights->aux) m.floats(a, {kUnits, kAuxIn});
        }
        add_settings(m, v);
        m.flag(merged);
        m.flag(true);
        add_norms(m, first);
        add_norms(m, second);
        std::vector<uint32_t> out = {m.operand(kTensorFloat32, {kTime, kBatch, merged ? 2 * outputs : outputs})};
        if (!merged) out.push_back(m.operand(kTensorFloat32, {kTime, kBatch, outputs}));
        for (int i = 0; i < 2; ++i) {
          out.push_back(m.operand(kTensorFloat32, {kBatch, outputs}));
          out.push_back(m.operand(kTensorFloat32, {kBatch, kUnits}));
        }
        m.add(kBidirectionalLstm, m.in, out);
        m.finish({m.in[0]}, out);
        const size_t size = kTime * kBatch * outputs;
        Floats y(merged ? 2 * size : size), z(size), h1(kBatch * outputs), c1(kBatch * kUnits), h2(h1), c2(c1);
        std::vector<Floats*> made = {&y, &h1, &c1, &h2, &c2};
        if (!merged) made.insert(made.begin() + 1, &z);
        ASSERT_EQ(run(m, x, made), 0);
        const Walked forward = lstm_walk(v, first, x, kIn, aux, kTime, false);
        const Walked backward = lstm_walk(v, second, use == AuxUse::kParallel ? aux : x, backward_in, aux, kTime, true);
        if (merged) {
          Doubles both;
          for (size_t row = 0; row < kTime * kBatch; ++row) {
            for (const Walked* w : {&forward, &backward}) {
              const auto from = w->y.begin() + static_cast<ptrdiff_t>(row * outputs);
              both.insert(both.end(), from, from + outputs);
            }
          }
          expect_near(y, both, "merged");
        } else {
          expect_near(y, forward.y, "forward");
          expect_near(z, backward.y, "backward");
        }
        expect_near(h1, forward.h, "forward h");
        expect_near(c1, forward.c, "forward c");
        expect_near(h2, backward.h, "backward h");
        expect_near(c2, backward.c, "backward c");
      }
    }
  }
}

TEST(NnapiCells, ASequenceIsNoLoopOfTheClients) {
  // Weights too large to be computed ahead by the way, and a loop time-out that no loop keeps.
  constexpr uint32_t kTime = 20, kWide = 70;
  Model m;
  m.in.push_back(m.operand(kTensorFloat32, {kTime, 1, 1}));
  const auto repeated = [&](size_t times, float value, const std::vector<uint32_t>& dims) {
    for (size_t i = 0; i < times; ++i) {
      size_t count = 1;
      for (uint32_t d : dims) count *= d;
      m.floats(i == 0 && times == 4 ? Floats() : Floats(count, value), dims);
    }
  };
  repeated(4, 0, {kWide, 1});  // no input gate
  repeated(4, 0, {kWide, kWide});
  for (int i = 0; i < 3; ++i) m.floats({}, {kWide});
  repeated(4, 0, {kWide});
  m.floats({}, {kWide});
  m.floats({}, {kWide});
  repeated(1, 0.5f, {1, kWide});
  repeated(1, 1, {1, kWide});
  m.number(0);
  m.real(0);
  m.real(0);
  m.flag(true);
  for (int i = 0; i < 4; ++i) m.floats({}, {kWide});
  const uint32_t y = m.operand(kTensorFloat32, {kTime, 1, kWide});
  m.add(kUnidirectionalLstm, m.in, {y});
  m.finish({m.in[0]}, {y});
  Compiled compiled(m);
  Execution execution(compiled);
  const Floats x(kTime, 1);
  Floats made(kTime * kWide);
  ASSERT_EQ(execution.input(0, x) + execution.output(0, made), 0);
  ASSERT_EQ(ANeuralNetworksExecution_setLoopTimeout(execution.execution, 1), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(execution.execution), 0);
  // Gates of a half and nothing new: each element of time halves the cell, and half of it comes out.
  for (uint32_t t = 0; t < kTime; ++t) EXPECT_EQ(made[t * kWide], std::ldexp(1.0f, -static_cast<int>(t) - 2)) << t;
}

TEST(NnapiCells, OptionalInputsOfAnLstmGoTogether) {
  const LstmVariant all{.name = "", .peephole = true, .normalised = true, .projected = true};
  const std::pair<const char*, std::function<void(LstmWeights&)>> kBreaks[] = {
      {"weights of the input gate", [](LstmWeights& w) { w.w[0].clear(); }},
      {"recurrent weights of the input gate", [](LstmWeights& w) { w.r[0].clear(); }},
      {"bias of the input gate", [](LstmWeights& w) { w.b[0].clear(); }},
      {"bias of the forget gate", [](LstmWeights& w) { w.b[1].clear(); }},
      {"one peephole", [](LstmWeights& w) { w.p[0].clear(); }},
      {"the output's peephole", [](LstmWeights& w) { w.p[2].clear(); }},
      {"weights of the projection", [](LstmWeights& w) { w.projection.clear(); }},
      {"one normalisation", [](LstmWeights& w) { w.norm[2].clear(); }},
      {"the first normalisation", [](LstmWeights& w) { w.norm[0].clear(); }},
      {"nothing", [](LstmWeights&) {}},
  };
  for (const auto& [what, break_it] : kBreaks) {
    SCOPED_TRACE(what);
    LstmWeights weights = random_weights(all);
    break_it(weights);
    Model m;
    m.in.push_back(m.operand(kTensorFloat32, {kBatch, kIn}));
    add_weights(m, all, weights);
    add_states(m, all, weights);
    add_settings(m, all);
    add_norms(m, weights);
    const std::vector<uint32_t> out = {m.operand(kTensorFloat32, {kBatch, 0}), m.operand(kTensorFloat32, {kBatch, 2}),
                                       m.operand(kTensorFloat32, {kBatch, kUnits}),
                                       m.operand(kTensorFloat32, {kBatch, 2})};
    m.add(kLstm, m.in, out);
    m.finish({m.in[0]}, out);
    Floats buffer(kBatch * 4 * kUnits), h(kBatch * 2), c(kBatch * kUnits), y(kBatch * 2);
    const int code = run(m, random_floats(kBatch * kIn), {&buffer, &h, &c, &y});
    EXPECT_EQ(code, std::string(what) == "nothing" ? 0 : ANEURALNETWORKS_OP_FAILED);
  }
}

// ---------------------------------------------------------------------------------------------------------- RNN

struct RnnWeights {
  Floats w, r, b, h, aux;
  explicit RnnWeights(size_t features, size_t aux_features = 0)
      : w(random_floats(kUnits * features)),
        r(random_floats(kUnits * kUnits)),
        b(random_floats(kUnits)),
        h(random_floats(kBatch * kUnits)),
        aux(random_floats(kUnits * aux_features)) {}
  void add(Model& m) const {
    m.floats(w, {kUnits, static_cast<uint32_t>(w.size() / kUnits)});
    m.floats(r, {kUnits, kUnits});
    m.floats(b, {kUnits});
    m.floats(h, {kBatch, kUnits});
  }
};

Walked rnn_walk(const RnnWeights& weights, const Floats& x, const Floats& aux, size_t time, int32_t code,
                bool backwards) {
  const size_t features = weights.w.size() / kUnits, more = weights.aux.size() / kUnits;
  Walked walked{Doubles(time * kBatch * kUnits), {}, {}};
  for (size_t b = 0; b < kBatch; ++b) {
    Doubles h = part(weights.h, b, kUnits);
    for (size_t step = 0; step < time; ++step) {
      const size_t t = backwards ? time - 1 - step : step, row = t * kBatch + b;
      Doubles next(kUnits);
      for (size_t u = 0; u < kUnits; ++u) {
        double z = dot(weights.w, u, part(x, row, features)) + dot(weights.r, u, h) + static_cast<double>(weights.b[u]);
        if (more) z += dot(weights.aux, u, part(aux, row, more));
        next[u] = activate(code, z);
      }
      h = next;
      std::copy(h.begin(), h.end(), walked.y.begin() + static_cast<ptrdiff_t>(row * kUnits));
    }
    walked.h.insert(walked.h.end(), h.begin(), h.end());
  }
  return walked;
}

TEST(NnapiCells, RnnAndItsSequences) {
  constexpr uint32_t kTime = 4;
  for (const int32_t code : {0, 1, 3, kTanh, kSigmoid}) {
    const RnnWeights weights(kIn);
    const Floats x = random_floats(kBatch * kIn), sequence = random_floats(kTime * kBatch * kIn);
    Model cell;
    cell.in.push_back(cell.operand(kTensorFloat32, {kBatch, kIn}));
    weights.add(cell);
    cell.number(code);
    const std::vector<uint32_t> out = {cell.operand(kTensorFloat32, {kBatch, kUnits}),
                                       cell.operand(kTensorFloat32, {kBatch, kUnits})};
    cell.add(kRnn, cell.in, out);
    cell.finish({cell.in[0]}, out);
    Floats h(kBatch * kUnits), y(kBatch * kUnits);
    ASSERT_EQ(run(cell, x, {&h, &y}), 0);
    const Walked step = rnn_walk(weights, x, {}, 1, code, false);
    expect_near(h, step.h, "h");
    expect_near(y, step.h, "y");
    for (const bool time_major : {true, false}) {
      const auto outer = static_cast<uint32_t>(time_major ? kTime : kBatch);
      const auto inner = static_cast<uint32_t>(time_major ? kBatch : kTime);
      Model m;
      m.in.push_back(m.operand(kTensorFloat32, {outer, inner, kIn}));
      weights.add(m);
      m.number(code);
      m.number(time_major);
      const std::vector<uint32_t> made = {m.operand(kTensorFloat32, {outer, inner, kUnits}),
                                          m.operand(kTensorFloat32, {kBatch, kUnits})};
      m.add(kUnidirectionalRnn, m.in, made);
      m.finish({m.in[0]}, made);
      Floats all(kTime * kBatch * kUnits);
      ASSERT_EQ(run(m, time_major ? sequence : batch_first(sequence, kTime, kIn), {&all, &h}), 0);
      const Walked wanted = rnn_walk(weights, sequence, {}, kTime, code, false);
      expect_near(all, time_major ? wanted.y : batch_first(wanted.y, kTime, kUnits), "sequence");
      expect_near(h, wanted.h, "last");
    }
  }
}

TEST(NnapiCells, SequencesOfAnRnnInBothDirections) {
  constexpr uint32_t kTime = 3, kAuxIn = 2;
  for (const AuxUse use : {AuxUse::kNone, AuxUse::kCross, AuxUse::kParallel}) {
    const size_t aux_weights = use == AuxUse::kCross ? kAuxIn : 0;
    const RnnWeights first(kIn, aux_weights), second(use == AuxUse::kParallel ? kAuxIn : kIn, aux_weights);
    const Floats x = random_floats(kTime * kBatch * kIn);
    const Floats aux = use == AuxUse::kNone ? Floats() : random_floats(kTime * kBatch * kAuxIn);
    Model m;
    m.in.push_back(m.operand(kTensorFloat32, {kTime, kBatch, kIn}));
    first.add(m);
    second.add(m);
    m.floats(aux, {kTime, kBatch, kAuxIn});
    m.floats(first.aux, {kUnits, kAuxIn});
    m.floats(second.aux, {kUnits, kAuxIn});
    m.number(kTanh);
    m.flag(true);
    m.flag(false);
    const std::vector<uint32_t> out = {
        m.operand(kTensorFloat32, {kTime, kBatch, kUnits}), m.operand(kTensorFloat32, {kTime, kBatch, kUnits}),
        m.operand(kTensorFloat32, {kBatch, kUnits}), m.operand(kTensorFloat32, {kBatch, kUnits})};
    m.add(kBidirectionalRnn, m.in, out);
    m.finish({m.in[0]}, out);
    Floats y(kTime * kBatch * kUnits), z(y), h1(kBatch * kUnits), h2(h1);
    ASSERT_EQ(run(m, x, {&y, &z, &h1, &h2}), 0);
    const Walked forward = rnn_walk(first, x, aux, kTime, kTanh, false);
    const Walked backward = rnn_walk(second, use == AuxUse::kParallel ? aux : x, aux, kTime, kTanh, true);
    expect_near(y, forward.y, "forward");
    expect_near(z, backward.y, "backward");
    expect_near(h1, forward.h, "forward h");
    expect_near(h2, backward.h, "backward h");
  }
}

// --------------------------------------------------------------------------------------------------------- SVDF

TEST(NnapiCells, SvdfFiltersFeaturesAndThenTime) {
  // One unit of rank 2, a memory of 3. New features: 2 * 3 = 6 and 2 * -1 = -2; over time 1 * 20 + 2 * 30 + 3 * 6 = 98
  // and 10 * 50 + 1 * 60 + 100 * -2 = 360; with the bias 461. What was newest before is overwritten: 40 and 70.
  for (const bool biased : {true, false}) {
    Model m;
    m.in.push_back(m.operand(kTensorFloat32, {1, 1}));
    m.floats({3, -1}, {2, 1});
    m.floats({1, 2, 3, 10, 1, 100}, {2, 3});
    m.floats(biased ? Floats{3} : Floats(), {1});
    m.floats({20, 30, 40, 50, 60, 70}, {1, 6});
    m.number(2);
    m.number(0);
    const std::vector<uint32_t> out = {m.operand(kTensorFloat32, {1, 6}), m.operand(kTensorFloat32, {1, 1})};
    m.add(kSvdf, m.in, out);
    m.finish({m.in[0]}, out);
    Floats state(6), y(1);
    ASSERT_EQ(run(m, {2}, {&state, &y}), 0);
    EXPECT_EQ(state, (Floats{30, 6, 0, 60, -2, 0}));
    EXPECT_EQ(y, (Floats{biased ? 461.0f : 458.0f}));
  }
}

// --------------------------------------------------------------------------------------------------- in integers

TEST(NnapiCells, QuantizedLstm) {
  // The cell's gate sees 64 * 64 / 4096 = 1, the others nothing: c = 0.5 * 1 + 0.5 tanh(1) = 0.881, of scale 2^-11;
  // h = 0.5 tanh(c) = 0.353, of scale 1/128.
  Model m;
  constexpr float kScale = 1.0f / 64, kGateScale = 1.0f / 4096, kCellScale = 1.0f / 2048;
  m.in.push_back(m.operand(kTensorQuant8Signed, {1, 1}, kScale, 0));
  for (const int8_t w : {0, 0, 64, 0}) {
    m.in.push_back(m.constant<int8_t>(kTensorQuant8Symm, {1, 1}, {w}, kScale));
  }
  for (int i = 0; i < 4; ++i) m.in.push_back(m.constant<int8_t>(kTensorQuant8Symm, {1, 1}, {0}, kScale));
  for (int i = 0; i < 3; ++i) {
    const uint32_t p = m.operand(kTensorQuant16Symm, {0}, 1);
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m.model, static_cast<int32_t>(p), nullptr, 0), 0);
    m.in.push_back(p);
  }
  // Biases of gates that are not normalised are not read.
  for (int i = 0; i < 4; ++i) m.in.push_back(m.constant<int32_t>(kTensorInt32, {1}, {1 << 20}, kScale * kScale));
  const auto left_out = [&](int32_t type, float scale) {
    const uint32_t index = m.operand(type, {0}, scale);
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m.model, static_cast<int32_t>(index), nullptr, 0), 0);
    m.in.push_back(index);
  };
  left_out(kTensorQuant8Symm, 1);
  left_out(kTensorInt32, 0);
  m.in.push_back(m.constant<int8_t>(kTensorQuant8Signed, {1, 1}, {0}, 1.0f / 128));
  m.in.push_back(m.constant<int16_t>(kTensorQuant16Symm, {1, 1}, {2048}, kCellScale));
  for (int i = 0; i < 4; ++i) left_out(kTensorQuant16Symm, 1);
  m.real(0);
  m.real(0);
  for (int i = 0; i < 4; ++i) m.real(kGateScale);
  m.number(0);
  m.real(1.0f / 128);
  const std::vector<uint32_t> out = {m.operand(kTensorQuant8Signed, {1, 1}, 1.0f / 128, 0),
                                     m.operand(kTensorQuant16Symm, {1, 1}, kCellScale, 0),
                                     m.operand(kTensorQuant8Signed, {1, 1}, 1.0f / 128, 0)};
  m.add(kQuantizedLstm, m.in, out);
  m.finish({m.in[0]}, out);
  Compiled compiled(m);
  Execution execution(compiled);
  const std::vector<int8_t> x = {64};
  std::vector<int8_t> h(1), again(1);
  std::vector<int16_t> c(1);
  ASSERT_EQ(execution.input(0, x) + execution.output(0, h) + execution.output(1, c) + execution.output(2, again), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(execution.execution), 0);
  EXPECT_EQ(c[0], 1804);
  EXPECT_EQ(h[0], 45);
  EXPECT_EQ(again, h);
}

TEST(NnapiCells, Quantized16BitLstm) {
  // Weights of the state come first and so meet the input: the cell's gate sees 64 * 64 / 4096 = 1 by its recurrent
  // weight, and nothing by the other, which meets a state of 0.
  Model m;
  constexpr float kScale = 1.0f / 32;
  const auto weights = [&](uint8_t of_cell) {
    for (const uint8_t w : {uint8_t{0}, uint8_t{0}, of_cell, uint8_t{0}}) {
      m.in.push_back(m.constant<uint8_t>(kTensorQuant8, {1, 1}, {w}, kScale));
    }
  };
  m.in.push_back(m.operand(kTensorQuant8, {1, 1}, 1.0f / 128, 128));
  weights(100);
  weights(64);
  for (int i = 0; i < 4; ++i) m.in.push_back(m.constant<int32_t>(kTensorInt32, {1}, {0}, kScale / 128));
  m.in.push_back(m.constant<int16_t>(kTensorQuant16Symm, {1, 1}, {2048}, 1.0f / 2048));
  const uint32_t h_in = m.operand(kTensorQuant8, {1, 1}, 1.0f / 128, 128);
  m.in.push_back(h_in);
  const std::vector<uint32_t> out = {m.operand(kTensorQuant16Symm, {1, 1}, 1.0f / 2048, 0),
                                     m.operand(kTensorQuant8, {1, 1}, 1.0f / 128, 128)};
  m.add(kQuantized16BitLstm, m.in, out);
  m.finish({m.in[0], h_in}, out);
  Compiled compiled(m);
  Execution execution(compiled);
  const std::vector<uint8_t> x = {192}, before = {128};
  std::vector<uint8_t> h(1);
  std::vector<int16_t> c(1);
  ASSERT_EQ(execution.input(0, x) + execution.input(1, before) + execution.output(0, c) + execution.output(1, h), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(execution.execution), 0);
  EXPECT_EQ(c[0], 1804);
  EXPECT_EQ(h[0], 173);
}

}  // namespace
