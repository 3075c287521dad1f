// Shapes, activations and the time loop of recurrent operators.
#include "ops/recurrent.h"

#include <algorithm>
#include <cmath>

namespace pinnace {

std::vector<bool> find_recurrent_matrices(const Graph& graph) {
  std::vector<bool> matrices(graph.values.size()), others(graph.values.size());
  for (const auto& node : graph.nodes) {
    const bool cell = is_recurrent(node->op);
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (node->inputs[i] == kNoValue) continue;
      const bool matrix = cell && std::ranges::count(kRecurrentMatrices, i) > 0;
      (matrix ? matrices : others)[static_cast<size_t>(node->inputs[i])] = true;
    }
  }
  for (const ValueId id : graph.outputs) others[static_cast<size_t>(id)] = true;
  for (const State& state : graph.states) others[static_cast<size_t>(state.output)] = true;
  for (size_t i = 0; i < matrices.size(); ++i) matrices[i] = matrices[i] && !others[i];
  return matrices;
}

namespace {
using Kind = GateActivation::Kind;
struct Row {
  std::string_view name;
  int params;  // 0, 1: alpha, 2: alpha and beta
  double alpha, beta;
};
constexpr Row kRows[] = {{"relu", 0, 0, 0},          {"tanh", 0, 0, 0},
                         {"sigmoid", 0, 0, 0},       {"affine", 2, 1, 0},
                         {"leaky_relu", 1, 0.01, 0}, {"thresholded_relu", 1, 1, 0},
                         {"scaled_tanh", 2, 1, 1},   {"hard_sigmoid", 2, 0.2, 0.5},
                         {"elu", 1, 1, 0},           {"softsign", 0, 0, 0},
                         {"softplus", 0, 0, 0}};

Status check_shape(const NodeView& node, int input, std::initializer_list<Dim> wanted) {
  if (!node.has_input(input)) return {};
  const Shape& shape = node.input(input).shape;
  bool fits = shape.size() == wanted.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = !differ(shape[i], wanted.begin()[i]);
  if (fits) return {};
  return node.error(node.input_name(input), " is ", node.input(input), ", must be ",
                    TensorType{node.input(input).dtype, wanted, nullptr});
}
}  // namespace

double GateActivation::unclipped(double x) const {
  switch (kind) {
    case Kind::kRelu:
      return x < 0 ? 0 : x;
    case Kind::kTanh:
      return std::tanh(x);
    case Kind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Kind::kAffine:
      return alpha * x + beta;
    case Kind::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case Kind::kThresholdedRelu:
      return x < alpha ? 0 : x;
    case Kind::kScaledTanh:
      return alpha * std::tanh(beta * x);
    case Kind::kHardSigmoid: {
      const double gate = alpha * x + beta;
      return gate < 0 ? 0 : gate > 1 ? 1 : gate;
    }
    case Kind::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case Kind::kSoftsign:
      return x / (1 + std::fabs(x));
    case Kind::kSoftplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  return x;
}

Result<std::vector<GateActivation>> gate_activations(const NodeView& node, std::span<const std::string_view> defaults) {
  const size_t directions = node.attr_string("direction") == "bidirectional" ? 2 : 1;
  const auto names = node.attr_strings("activations");
  const auto alphas = node.attr_floats("activation_alpha"), betas = node.attr_floats("activation_beta");
  const double clip = node.attr_float("clip");
  if (!names.empty() && names.size() != directions * defaults.size()) {
    return node.error("activations has ", names.size(), " names, must have ", directions * defaults.size());
  }
  if (!(clip >= 0)) return node.error("clip is ", clip, ", must be 0 or more");
  std::vector<GateActivation> all;
  size_t alphas_used = 0, betas_used = 0;
  for (size_t i = 0; i < directions * defaults.size(); ++i) {
    const std::string_view name = names.empty() ? defaults[i % defaults.size()] : std::string_view(names[i]);
    const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.name == name; });
    if (row == std::end(kRows)) {
      return node.error("activation '", name,
                        "' is not one of relu, tanh, sigmoid, affine, leaky_relu, thresholded_relu, "
                        "scaled_tanh, hard_sigmoid, elu, softsign, softplus");
    }
    GateActivation a{static_cast<Kind>(row - kRows), row->alpha, row->beta, clip};
    if (row->params > 0 && alphas_used < alphas.size()) a.alpha = alphas[alphas_used++];
    if (row->params > 1 && betas_used < betas.size()) a.beta = betas[betas_used++];
    all.push_back(a);
  }
  return all;
}

Result<Recurrent> check_recurrent(const NodeView& node, int gates, std::span<TensorType> out) {
  const TensorType &x = node.input(0), &r = node.input(2);
  const std::string_view direction = node.attr_string("direction");
  Recurrent n;
  n.gates = gates;
  n.directions = direction == "bidirectional" ? 2 : 1;
  n.reverse = direction == "reverse";
  if (n.directions == 1 && !n.reverse && direction != "forward") {
    return node.error("direction '", direction, "' is not one of forward, reverse, bidirectional");
  }
  const int64_t layout = node.attr_int("layout"), hidden = node.attr_int("hidden_size");
  if (layout != 0 && layout != 1) return node.error("layout is ", layout, ", must be 0 or 1");
  n.batch_first = layout == 1;
  if (x.rank() != 3) return node.error("x is ", x, ", must have rank 3");
  if (r.rank() != 3) return node.error("r is ", r, ", must have rank 3");
  n.T = x.shape[n.batch_first ? 1 : 0];
  n.B = x.shape[n.batch_first ? 0 : 1];
  n.I = x.shape[2];
  n.P = r.shape[2];
  n.projected = node.has_input(8);
  if (n.projected && node.input(8).rank() != 3) {
    return node.error("projection is ", node.input(8), ", must have rank 3");
  }
  const Dim stated = n.projected ? node.input(8).shape[2] : n.P;
  n.H = stated.known() ? stated : hidden > 0 ? Dim(hidden) : stated;
  if (!n.projected) n.P = n.H;
  if (hidden < 0 || (hidden > 0 && differ(n.H, Dim(hidden)))) {
    return node.error("hidden_size is ", hidden, ", ", n.projected ? "projection" : "r", " is ",
                      n.projected ? node.input(8) : r);
  }
  if (n.H.known() && n.H.size > (int64_t{1} << 40)) return node.error("r ", r, " has too many hidden units");
  const auto times_h = [&](int64_t factor) { return n.H.known() ? Dim(factor * n.H.size) : Dim(); };
  const Dim D = n.directions;
  PINNACE_TRY(check_shape(node, 1, {D, times_h(gates), n.I}));
  PINNACE_TRY(check_shape(node, 2, {D, times_h(gates), n.P}));
  PINNACE_TRY(check_shape(node, 3, {D, times_h(2 * gates)}));
  PINNACE_TRY(check_shape(node, 4, {n.B}));
  const Shape state = n.batch_first ? Shape{n.B, D, n.P} : Shape{D, n.B, n.P};
  const Shape cell = {state[0], state[1], n.H};
  PINNACE_TRY(check_shape(node, 5, {state[0], state[1], state[2]}));
  PINNACE_TRY(check_shape(node, 6, {cell[0], cell[1], cell[2]}));
  PINNACE_TRY(check_shape(node, 7, {D, times_h(3)}));
  PINNACE_TRY(check_shape(node, 8, {D, n.P, n.H}));
  const Shape y = n.batch_first ? Shape{n.B, n.T, D, n.P} : Shape{n.T, D, n.B, n.P};
  for (size_t i = 0; i < out.size(); ++i) out[i] = {x.dtype, i == 0 ? y : i == 1 ? state : cell, nullptr};
  return n;
}

void affine(const double* m, const double* v, const double* b, const double* c, int64_t rows, int64_t columns,
            double* to) {
  for (int64_t row = 0; row < rows; ++row) {
    double sum = b[row] + (c ? c[row] : 0);
    for (int64_t i = 0; i < columns; ++i) sum += m[row * columns + i] * v[i];
    to[row] = sum;
  }
}

Status run_recurrent(const NodeView& node, int gates, std::span<const std::string_view> defaults,
                     std::span<const TensorView> in, std::span<const TensorView> out,
                     const std::function<void(const RecurrentStep&)>& step) {
  std::vector<TensorType> types(out.size());
  PINNACE_ASSIGN(const Recurrent n, check_recurrent(node, gates, types));
  PINNACE_ASSIGN(const std::vector<GateActivation> activations, gate_activations(node, defaults));
  const int64_t D = n.directions, T = n.T.size, B = n.B.size, I = n.I.size, H = n.H.size, P = n.P.size, G = gates * H;
  const auto given = [&](size_t i) { return i < in.size() && in[i].present(); };
  PINNACE_ASSIGN(auto w, Scratch<double>::allocate(D * G * I, "a recurrent node's w"));
  PINNACE_ASSIGN(auto r, Scratch<double>::allocate(D * G * P, "a recurrent node's r"));
  PINNACE_ASSIGN(auto b, Scratch<double>::allocate(D * 2 * G, "a recurrent node's b"));
  PINNACE_ASSIGN(auto p, Scratch<double>::allocate(D * 3 * H, "a recurrent node's p"));
  PINNACE_ASSIGN(auto projection,
                 Scratch<double>::allocate(n.projected ? D * P * H : 0, "a recurrent node's projection"));
  load_line(in[1], 0, 1, D * G * I, w.data());
  load_line(in[2], 0, 1, D * G * P, r.data());
  if (n.projected) load_line(in[8], 0, 1, D * P * H, projection.data());
  std::fill_n(b.data(), D * 2 * G, 0.0);
  if (given(3)) load_line(in[3], 0, 1, D * 2 * G, b.data());
  if (given(7)) load_line(in[7], 0, 1, D * 3 * H, p.data());
  const double cost = static_cast<double>(T) * static_cast<double>(G) * static_cast<double>(I + P + 10);
  // Directions and sequences depend on each other in nothing; steps do.
  return node.threads().ranges(D * B, cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto x, Scratch<double>::allocate(I, "a recurrent node's x"));
    PINNACE_ASSIGN(auto state, Scratch<double>::allocate(P + 3 * H + G, "a recurrent node's state"));
    double *h = state.data(), *c = h + P, *scratch = c + H;
    for (int64_t sequence = begin; sequence < end; ++sequence) {
      const int64_t d = sequence / B, k = sequence % B;
      const bool backwards = n.reverse || d == 1;
      const RecurrentStep now{I,
                              H,
                              P,
                              x.data(),
                              w.data() + d * G * I,
                              r.data() + d * G * P,
                              b.data() + d * 2 * G,
                              b.data() + d * 2 * G + G,
                              given(7) ? p.data() + d * 3 * H : nullptr,
                              n.projected ? projection.data() + d * P * H : nullptr,
                              activations.data() + static_cast<size_t>(d) * defaults.size(),
                              h,
                              c,
                              scratch + 2 * H,
                              scratch};
      const int64_t length = given(4) ? in[4].data<int32_t>()[k] : T;
      if (length < 0 || length > T)
        return node.error("sequence_lens[", k, "] is ", length, ", must be in [0, ", T, "]");
      const int64_t at_state = n.batch_first ? k * D + d : d * B + k;
      const auto at_y = [&](int64_t t) { return (n.batch_first ? (k * T + t) * D + d : (t * D + d) * B + k) * P; };
      std::fill_n(h, P + H, 0.0);
      if (given(5)) load_line(in[5], at_state * P, 1, P, h);
      if (given(6)) load_line(in[6], at_state * H, 1, H, c);
      for (int64_t i = 0; i < length; ++i) {
        if (loop_stops()) return {};
        const int64_t t = backwards ? length - 1 - i : i;
        load_line(in[0], (n.batch_first ? k * T + t : t * B + k) * I, 1, I, x.data());
        step(now);
        store_line(out[0], at_y(t), 1, P, h);
      }
      if (out.size() > 1) store_line(out[1], at_state * P, 1, P, h);
      if (out.size() > 2) store_line(out[2], at_state * H, 1, H, c);
      std::fill_n(h, P, 0.0);
      if (out[0].elements() == 0) continue;
      for (int64_t t = length; t < T; ++t) store_line(out[0], at_y(t), 1, P, h);
    }
    return {};
  });
}

double recurrent_multiply_adds(std::span<const TensorType* const> inputs, const TensorType&) {
  const TensorType& x = *inputs[0];
  const double steps = elements_if_known(x) / std::max(1.0, last_if_known(x));
  const double projection = inputs.size() > 8 && inputs[8] ? elements_if_known(*inputs[8]) : 0;
  return steps * (elements_if_known(*inputs[1]) + elements_if_known(*inputs[2]) + projection);
}

}  // namespace pinnace
