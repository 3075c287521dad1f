// Quantisation after training: classes ValueStatistics and GramMatrix, observe(), and the steps of Model as methods.
#include <pybind11/stl.h>

#include <variant>

#include <pinnace/model.h>
#include <pinnace/session.h>

#include "arrays.h"
#include "errors.h"
#include "interrupt.h"
#include "keeps_argument.h"
#include "types.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

RangeRule rule_of(const std::string& name) {
  if (name == "minmax") return RangeRule::kMinMax;
  if (name == "percentile") return RangeRule::kPercentile;
  if (name == "mse") return RangeRule::kMse;
  if (name == "entropy") return RangeRule::kEntropy;
  throw_status(
      Status(Code::kInvalidArgument, "observer '" + name + "' is not one of minmax, percentile, mse, entropy"));
}

using Range = std::pair<double, double>;
using Observed = std::tuple<int, std::variant<ValueStatistics*, GramMatrix*>, int>;

/// Runs once and adds outputs, where they lie, to what observes them.
void observe(Session& session, const py::sequence& arrays, const std::vector<Observed>& observed,
             std::optional<double> timeout, const CancelToken* cancel) {
  const RunOptions options = run_options(timeout, cancel);
  const std::vector<BorrowedArray> borrowed = borrow_inputs(session, arrays);
  std::vector<Tensor> inputs;
  for (const BorrowedArray& b : borrowed) inputs.push_back(b.tensor);
  for (const auto& [output, observer, axis] : observed) {
    if (output < 0 || static_cast<size_t>(output) >= session.outputs().size()) {
      throw_status(Status(Code::kInvalidArgument, "there is no output " + std::to_string(output)));
    }
  }
  Status added;
  std::string name;
  const auto add = [&](const Session& ran) {
    for (const auto& [output, observer, axis] : observed) {
      if (auto* const* statistics = std::get_if<ValueStatistics*>(&observer)) {
        added = (*statistics)->add(ran.output(output), axis);
      } else {
        added = std::get<GramMatrix*>(observer)->add(ran.output(output));
      }
      if (!added.ok()) {
        name = ran.outputs()[static_cast<size_t>(output)].name;
        return;
      }
    }
  };
  interruptible([&] { return session.run(inputs, {}, add, options); });
  if (!added.ok()) throw_status(added.with_prefix("value '" + name + "': "));
}

py::dict sites_dict(const QuantizationSites& sites) {
  Rows nodes, values;
  for (const QuantizationNode& n : sites.nodes) {
    py::dict d;
    d["name"] = n.name;
    d["op"] = n.op;
    d["source"] = n.source;
    d["module"] = n.module;
    d["inputs"] = n.inputs;
    d["output"] = n.output;
    d["weighted"] = n.weighted;
    d["weights"] = n.weights;
    nodes.append(d);
  }
  for (const QuantizationValue& v : sites.values) {
    py::dict d;
    d["name"] = v.name;
    d["group"] = v.group;
    d["channel_axis"] = v.channel_axis;
    values.append(d);
  }
  py::dict all;
  all["nodes"] = nodes;
  all["values"] = values;
  all["float_only"] = sites.float_only;
  return all;
}

Model quantized(const Model& model, const std::vector<std::string>& nodes,
                const std::vector<std::tuple<std::string, float, int32_t>>& values,
                const std::vector<std::pair<std::string, std::vector<double>>>& means, bool per_channel, bool fold) {
  QuantizeChoices choices;
  choices.nodes = nodes;
  for (const auto& [name, scale, zero_point] : values) choices.values.push_back({name, scale, zero_point});
  choices.means = means;
  choices.per_channel = per_channel;
  choices.fold = fold;
  return interruptible([&] { return model.quantized(choices); });
}

}  // namespace

void add_quantize(py::module_& module) {
  py::class_<ValueStatistics>(module, "ValueStatistics",
                              "What the elements of one float32 value were like over any number of runs.")
      .def(py::init<>())
      .def(
          "add",
          [](ValueStatistics& s, const py::object& array, int channel_axis) {
            const BorrowedArray borrowed = borrow_array(array, "a value");
            check(s.add(borrowed.tensor, channel_axis));
          },
          py::arg("array"), py::arg("channel_axis") = -1,
          "Adds samples, counted by the first dimension. channel_axis: the axis whose indices get a mean each.")
      .def(
          "merge", [](ValueStatistics& s, const ValueStatistics& other) { check(s.merge(other)); }, py::arg("other"))
      .def_property_readonly("samples", &ValueStatistics::samples)
      .def_property_readonly("extremes",
                             [](const ValueStatistics& s) {
                               const ValueRange r = s.extremes();
                               return Range(r.low, r.high);
                             })
      .def_property_readonly("channel_means", &ValueStatistics::channel_means)
      .def(
          "range",
          [](const ValueStatistics& s, const std::string& rule, double percentile) {
            const ValueRange r = s.range(rule_of(rule), percentile);
            return Range(r.low, r.high);
          },
          py::arg("rule"), py::arg("percentile") = 99.99,
          "The range by \"minmax\", \"percentile\", \"mse\" or \"entropy\".")
      .def(
          "histogram",
          [](const ValueStatistics& s) {
            const ValueStatistics::Histogram h = s.histogram();
            return std::tuple(h.low, h.step, h.counts);
          },
          "(low, step, counts) of sampled elements.")
      .def("to_bytes",
           [](const ValueStatistics& s) {
             const std::vector<std::byte> bytes = s.to_bytes();
             return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
           })
      .def_static(
          "from_bytes",
          [](const py::bytes& bytes) {
            const auto text = static_cast<std::string_view>(bytes);
            return check(ValueStatistics::from_bytes(std::as_bytes(std::span(text))));
          },
          py::arg("bytes"));
  py::class_<GramMatrix>(module, "GramMatrix", "X^T X of the rows of one float32 value, over any number of runs.")
      .def(py::init<>())
      .def(
          "add",
          [](GramMatrix& g, const py::object& array) {
            const BorrowedArray borrowed = borrow_array(array, "a value");
            const py::gil_scoped_release release;
            const Status added = g.add(borrowed.tensor);
            const py::gil_scoped_acquire acquire;
            check(added);
          },
          py::arg("array"), "Adds the rows of its last dimension.")
      .def_property_readonly("rows", &GramMatrix::rows)
      .def_property_readonly("length", &GramMatrix::length);
  module.def(
      "observe", observe, py::arg("session"), py::arg("inputs"), py::arg("observed"), py::arg("timeout") = py::none(),
      py::arg("cancel") = py::none(),
      "Runs a session once and adds outputs, where they lie: each (its place, ValueStatistics or GramMatrix, channel "
      "axis or -1).");
  module.def(
      "byte_scale", [](double low, double high) { return byte_scale({low, high}); }, py::arg("low"), py::arg("high"),
      "(scale, zero point) of unsigned bytes that cover the range and 0.");
  auto model = py::reinterpret_borrow<py::class_<Model>>(module.attr("Model"));
  model
      .def(
          "ready_to_quantize",
          [](const Model& m, bool equalize) {
            return interruptible([&] { return m.ready_to_quantize({.equalize = equalize}); });
          },
          py::arg("equalize") = false, KeepsArgument<1>(), "The same function with every value that needs a range.")
      .def(
          "quantization_sites",
          [](const Model& m) { return sites_dict(interruptible([&] { return m.quantization_sites(); })); },
          "{\"nodes\", \"values\", \"float_only\"}: what can compute in 8-bit integers, what has to be observed, and "
          "the "
          "nodes of operators without an 8-bit form.")
      .def(
          "weight_sites",
          [](const Model& m) {
            Rows rows;
            for (const WeightSite& site : interruptible([&] { return m.weight_sites(); })) {
              py::dict d;
              d["name"] = site.name;
              d["op"] = site.op;
              d["module"] = site.module;
              d["weights"] = site.weights;
              d["matrix"] = site.matrix;
              d["rows"] = site.rows;
              d["length"] = site.length;
              d["why_not_dynamic"] = site.why_not_dynamic;
              rows.append(d);
            }
            return rows;
          },
          "Nodes whose weights can be stored as integers.")
      .def(
          "with_stored_weights",
          [](const Model& m, const std::vector<std::string>& nodes, int bits, int64_t block, bool symmetric,
             bool dynamic, bool integers, bool passes, const std::vector<std::pair<std::string, GramMatrix*>>& grams) {
            WeightChoices choices{nodes, bits, block, symmetric, dynamic, integers};
            choices.passes = passes;
            choices.grams.assign(grams.begin(), grams.end());
            return interruptible([&] { return m.with_stored_weights(choices); });
          },
          py::arg("nodes"), py::arg("bits"), py::arg("block"), py::arg("symmetric"), py::arg("dynamic") = false,
          py::arg("integers") = true, py::arg("passes") = true,
          py::arg("grams") = std::vector<std::pair<std::string, GramMatrix*>>(), KeepsArgument<1>(),
          "The model with the weights of these nodes as integers, or, with integers=False, as the floats that they "
          "stand for. dynamic: products round what they multiply, row by row, and are of integers. "
          "passes: False where quantized(), or this again, follows. grams: (node, GramMatrix of the rows that it "
          "multiplies), to round its weights by.")
      .def(
          "float16_sites",
          [](const Model& m) {
            Rows rows;
            for (const Float16Site& site : interruptible([&] { return m.float16_sites(); })) {
              py::dict d;
              d["name"] = site.name;
              d["op"] = site.op;
              d["module"] = site.module;
              d["weights"] = site.weights;
              d["why_not"] = site.why_not;
              rows.append(d);
            }
            return rows;
          },
          "Nodes that have float32 operands, and why those that stay in float32 do.")
      .def(
          "in_float16",
          [](const Model& m, const std::vector<std::string>& nodes, bool values) {
            return interruptible([&] { return m.in_float16(nodes, values); });
          },
          py::arg("nodes"), py::arg("values") = true, KeepsArgument<1>(),
          "The model with these nodes in float16, between float32 inputs and outputs. values: False leaves all in "
          "float32 and rounds what these nodes read that no such node makes.")
      .def(
          "cut",
          [](const Model& m, const std::vector<std::string>& values) {
            return interruptible([&] { return m.cut(values); });
          },
          py::arg("values"), KeepsArgument<1>(),
          "The model with these inner values as inputs, and what they would have been as outputs of their "
          "names with \".made\" behind them.")
      .def("quantized", quantized, py::arg("nodes"), py::arg("values"),
           py::arg("means") = std::vector<std::pair<std::string, std::vector<double>>>{}, py::arg("per_channel") = true,
           py::arg("fold") = true, KeepsArgument<1>(),
           "The model that computes these nodes in integers. values: (name, scale, zero point). fold: False leaves "
           "quantize and dequantize between operators on floats.");
}

}  // namespace pinnace::bindings
