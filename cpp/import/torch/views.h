// What views and writes into them read alike: the arguments that say what a view shows; and writes by places.
#pragma once

#include <span>
#include <vector>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {

inline const Scalar kStart = Scalar::of_int(0), kEnd = Scalar::of_int(INT64_MAX);

struct SliceOf {
  int64_t axis;
  Scalar start, end;
  int64_t step;
};

/// dims of permute: where each axis of the result comes from.
std::vector<int64_t> permutation(Call& c, int rank);
/// source and destination of movedim, in the same form.
std::vector<int64_t> movedim_order(Call& c, int rank);
SliceOf slice_of(Call& c, int rank);
/// Sizes of the parts along an axis: from a size, a number of chunks, or a list.
std::vector<int64_t> split_sizes(Call& c, ValueId x, int64_t axis);

/// Elements of a matrix's diagonal, `offset` columns right of the main one (left where negative), as a new last axis:
/// of the matrices that axes `a` (rows) and `b` (columns) make.
ValueId diagonal_of(Call& c, ValueId x, int64_t a, int64_t b, int64_t offset);

/// Whether results of an operator, named without overload as in Target::op, may lie in the memory of an argument. Every
/// mapping that calls Call::shares() is of one of these.
bool may_share(std::string_view op);
/// What an output of a view shares memory with: the node's first tensor argument, or, where the tensors come as a list,
/// the output's own item of it or the list's only one. Null if there is none.
const Argument* shared_tensor(const NodeDef& node, size_t output);

/// True for views that may show an element several times, or elements along a line of their own (expand, unfold,
/// as_strided, diagonal): what is written through them, and through views of them, is put by places.
bool writes_by_places(const NodeDef& view);
/// Gives `base` with `written` where the views, from the one of `base` to the innermost, show it: the same views of the
/// elements' numbers say where each written element goes. Fails where elements lie on one another in the innermost.
void write_by_places(Call& c, std::span<const Handle> views, ValueId base, ValueId written);

}  // namespace pinnace::torch_import
