// Types, specs and nodes as plain Python values: what the package pinnace builds its classes from.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include <span>

#include <pinnace/model.h>

namespace pinnace::bindings {

/// Rows of one kind: dicts with the names of a dataclass's fields, which the package makes of them.
using Rows = pybind11::typing::List<pybind11::dict>;
using Arrays = pybind11::typing::List<pybind11::array>;

/// {"name", "dtype": numpy dtype, "shape": [int | index of a symbol as (index,) | None], "quantization": dict | None}
pybind11::dict spec_dict(const TensorSpec& spec);
Rows spec_dicts(std::span<const TensorSpec> specs);
/// The same with "bytes" of each, which are constants.
Rows constant_dicts(std::span<const TensorSpec> specs);
/// {"name", "min", "max": int | None, "multiple_of"}
Rows symbol_dicts(std::span<const Symbol> symbols);
/// The fields of NodeInfo; output_types as text.
Rows node_dicts(const std::vector<NodeInfo>& nodes, std::span<const Symbol> symbols);
/// {"fits", "inferred", "failure"}, and with details "nodes" and "values".
pybind11::dict trial_dict(const ShapeTrial& trial);
/// What a shape trial takes inputs to hold: place of the input, and its elements.
using Contents = std::vector<std::pair<size_t, std::vector<int64_t>>>;
std::vector<InputContents> input_contents(const Contents& contents);

void add_program(pybind11::module_& module);
void add_session(pybind11::module_& module);
void add_model(pybind11::module_& module);
void add_custom_op(pybind11::module_& module);
void add_quantize(pybind11::module_& module);

}  // namespace pinnace::bindings
