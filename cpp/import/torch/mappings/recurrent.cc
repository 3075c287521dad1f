// LSTM, GRU and plain RNN: whole (any number of layers, both directions) and single cells. PyTorch's order of gates
// becomes ONNX's: i f g o -> i o f g, r z n -> z r n (with the reset gate applied after the product).
#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

struct Kind {
  std::string_view op;
  int64_t gates;
  Ints order;  ///< which of PyTorch's gates stands at each of ONNX's places
  std::string activation;
};

Kind kind_of(std::string_view parameter) {
  if (parameter == "lstm") return {"lstm", 4, {0, 3, 1, 2}, ""};
  if (parameter == "gru") return {"gru", 3, {1, 0, 2}, ""};
  return {"rnn", 1, {0}, parameter == "relu" ? "relu" : ""};
}

/// [gates * H, ...] with its gates in ONNX's order: rows of weights, elements of biases.
ValueId reordered(Call& c, ValueId weight, const Kind& kind, int64_t hidden) {
  if (kind.gates == 1) return weight;
  const bool matrix = c.rank(weight) == 2;
  const Dim columns = c.dim(weight, 1);
  if (matrix && !columns.known()) {
    c.fail("recurrent weights of symbolic size");
    return weight;
  }
  const ValueId blocks = c.reshape(weight, matrix ? Ints{kind.gates, hidden, columns.size} : Ints{kind.gates, hidden});
  const ValueId moved = c.add("gather", {blocks, c.constant_ints(kind.order)}, {{"axis", 0}});
  return c.reshape(moved, matrix ? Ints{kind.gates * hidden, columns.size} : Ints{kind.gates * hidden});
}

void map_recurrent(Call& c) {
  const Kind kind = kind_of(c.parameter());
  if (c.overload() != "input") return c.fail("a packed sequence as input");
  ValueId x = c.tensor("input");
  const bool lstm = kind.op == "lstm";
  std::vector<ValueId> hx = lstm ? c.tensors("hx") : std::vector<ValueId>{c.tensor("hx")};
  const std::vector<ValueId> params = c.tensors("params");
  const bool biases = c.boolean("has_biases", true), both = c.boolean("bidirectional", false);
  const int64_t layers = c.integer("num_layers", 1);
  const double dropout = c.number("dropout", 0);
  if (c.boolean("train", false) && dropout > 0)
    return c.fail("dropout in training mode: export the model after model.eval()");
  const bool batch_first = c.boolean("batch_first", false);
  if (!c.ok()) return;
  // Of each layer and direction: w, r, both biases if there are any, and of an lstm with proj_size the projection.
  const int64_t directions = both ? 2 : 1, least = biases ? 4 : 2, count = static_cast<int64_t>(params.size());
  if (layers < 1 || layers > count) return c.fail("recurrent weights of so many layers", str_cat(layers));
  const bool projected = lstm && count == layers * directions * (least + 1);
  const int64_t per_cell = least + (projected ? 1 : 0);
  if (count != layers * directions * per_cell || hx.size() != (lstm ? 2u : 1u))
    return c.fail("recurrent weights of another number", str_cat(count));
  const Dim hidden = c.dim(hx.back(), 2), out_width = c.dim(hx[0], 2);
  if (!hidden.known() || !out_width.known() || c.rank(x) != 3)
    return c.fail("a recurrent layer of symbolic width or without batch");
  const int64_t width = hidden.size;
  if (batch_first) x = c.swap(x, 0, 1);
  std::vector<ValueId> last_h, last_c;
  for (int64_t layer = 0; layer < layers && c.ok(); ++layer) {
    std::vector<ValueId> w, r, b, projections;
    for (int64_t d = 0; d < directions; ++d) {
      const size_t at = static_cast<size_t>((layer * directions + d) * per_cell);
      w.push_back(c.unsqueeze(reordered(c, params[at], kind, width), {0}));
      r.push_back(c.unsqueeze(reordered(c, params[at + 1], kind, width), {0}));
      if (biases)
        b.push_back(c.unsqueeze(
            c.concat({reordered(c, params[at + 2], kind, width), reordered(c, params[at + 3], kind, width)}, 0), {0}));
      if (projected) projections.push_back(c.unsqueeze(params[at + static_cast<size_t>(least)], {0}));
    }
    const Scalar from = Scalar::of_int(layer * directions), to = Scalar::of_int((layer + 1) * directions);
    std::vector<ValueId> inputs = {
        x, c.concat(w, 0), c.concat(r, 0), biases ? c.concat(b, 0) : kNoValue, kNoValue, c.slice(hx[0], 0, from, to)};
    if (lstm) inputs.push_back(c.slice(hx[1], 0, from, to));
    if (projected) inputs.insert(inputs.end(), {kNoValue, c.concat(projections, 0)});
    std::vector<std::pair<std::string, Attr>> attrs = {{"hidden_size", width}};
    if (both) attrs.emplace_back("direction", "bidirectional");
    if (kind.op == "gru") attrs.emplace_back("linear_before_reset", int64_t{1});
    if (!kind.activation.empty())
      attrs.emplace_back("activations", std::vector<std::string>(static_cast<size_t>(directions), kind.activation));
    const std::vector<ValueId> out = c.add_node(kind.op, std::move(inputs), lstm ? 3 : 2, std::move(attrs));
    // [T, directions, B, H] -> [T, B, directions * H]
    if (both) {
      const ValueId moved = c.transpose(out[0], {0, 2, 1, 3});
      x = c.reshape(moved, {c.size_of(moved, 0), c.size_of(moved, 1), Scalar::of_int(directions * out_width.size)});
    } else {
      x = c.squeeze(out[0], {1});
    }
    last_h.push_back(out[1]);
    if (lstm) last_c.push_back(out[2]);
  }
  if (batch_first) x = c.swap(x, 0, 1);
  std::vector<ValueId> outputs = {x, c.concat(last_h, 0)};
  if (lstm) outputs.push_back(c.concat(last_c, 0));
  c.outputs(std::move(outputs));
}

ValueId product(Call& c, ValueId x, ValueId weight, ValueId bias) {
  return c.add("gemm", {x, weight, bias}, {{"trans_b", 1}});
}

// lstm_cell, gru_cell, rnn_*_cell: x [B, I], h [B, H]
void map_cell(Call& c) {
  const std::string_view form = c.parameter();
  const ValueId x = c.tensor("input");
  std::vector<ValueId> hx = form == "lstm" ? c.tensors("hx") : std::vector<ValueId>{c.tensor("hx")};
  const ValueId w_ih = c.tensor("w_ih"), w_hh = c.tensor("w_hh"), b_ih = c.optional_tensor("b_ih"),
                b_hh = c.optional_tensor("b_hh");
  if (!c.ok()) return;
  if (hx.size() != (form == "lstm" ? 2u : 1u) || c.rank(x) != 2)
    return c.fail("a recurrent cell without batch, or with another state");
  const ValueId from_x = product(c, x, w_ih, b_ih), from_h = product(c, hx[0], w_hh, b_hh);
  const Dim hidden = c.dim(w_hh, 1);
  if (!hidden.known()) return c.fail("a recurrent cell of symbolic width");
  const auto gate = [&](ValueId all, int64_t i) {
    return c.slice(all, 1, Scalar::of_int(i * hidden.size), Scalar::of_int((i + 1) * hidden.size));
  };
  if (form == "lstm") {
    const ValueId all = c.add("add", {from_x, from_h});
    const ValueId i = c.add("sigmoid", {gate(all, 0)}), f = c.add("sigmoid", {gate(all, 1)});
    const ValueId g = c.add("tanh", {gate(all, 2)}), o = c.add("sigmoid", {gate(all, 3)});
    const ValueId cell = c.add("add", {c.add("mul", {f, hx[1]}), c.add("mul", {i, g})});
    return c.outputs({c.add("mul", {o, c.add("tanh", {cell})}), cell});
  }
  if (form == "gru") {
    const ValueId r = c.add("sigmoid", {c.add("add", {gate(from_x, 0), gate(from_h, 0)})});
    const ValueId z = c.add("sigmoid", {c.add("add", {gate(from_x, 1), gate(from_h, 1)})});
    const ValueId n = c.add("tanh", {c.add("add", {gate(from_x, 2), c.add("mul", {r, gate(from_h, 2)})})});
    return c.output(c.add("add", {n, c.add("mul", {z, c.add("sub", {hx[0], n})})}));
  }
  c.output(c.add(form, {c.add("add", {from_x, from_h})}));
}

constexpr Mapping kMappings[] = {
    {"aten.gru", map_recurrent, "gru"},       {"aten.gru_cell", map_cell, "gru"},
    {"aten.lstm", map_recurrent, "lstm"},     {"aten.lstm_cell", map_cell, "lstm"},
    {"aten.rnn_relu", map_recurrent, "relu"}, {"aten.rnn_relu_cell", map_cell, "relu"},
    {"aten.rnn_tanh", map_recurrent, "tanh"}, {"aten.rnn_tanh_cell", map_cell, "tanh"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> recurrent_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
