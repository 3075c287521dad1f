// Which operators give views: what a write into their results may reach.
#include <algorithm>
#include <iterator>

#include "import/torch/views.h"

namespace pinnace::torch_import {
namespace {

/// Operators whose results may lie in the memory of an argument, without the underscore of those that work in place;
/// sorted. PyTorch's schemas mark most of them, as in "view(Tensor(a) self, ...) -> Tensor(a)". Not marked there are
/// dropout outside of training, which gives its argument back, and functions that are made of views: at_least_*,
/// broadcast_tensors, einsum of one tensor, meshgrid, type_as. unsafe_chunk
/// and unsafe_split give views that their schemas call copies.
constexpr std::string_view kMayShare[] = {"aten._conj",
                                          "aten._neg_view",
                                          "aten._reshape_alias",
                                          "aten._unsafe_view",
                                          "aten.adjoint",
                                          "aten.alias",
                                          "aten.alpha_dropout",
                                          "aten.as_strided",
                                          "aten.atleast_1d",
                                          "aten.atleast_2d",
                                          "aten.atleast_3d",
                                          "aten.broadcast_tensors",
                                          "aten.broadcast_to",
                                          "aten.chunk",
                                          "aten.conj",
                                          "aten.contiguous",
                                          "aten.detach",
                                          "aten.diagonal",
                                          "aten.dropout",
                                          "aten.dsplit",
                                          "aten.einsum",
                                          "aten.expand",
                                          "aten.expand_as",
                                          "aten.feature_alpha_dropout",
                                          "aten.feature_dropout",
                                          "aten.flatten",
                                          "aten.hsplit",
                                          "aten.imag",
                                          "aten.lift",
                                          "aten.lift_fresh",
                                          "aten.linalg_diagonal",
                                          "aten.mH",
                                          "aten.mT",
                                          "aten.matrix_H",
                                          "aten.meshgrid",
                                          "aten.movedim",
                                          "aten.narrow",
                                          "aten.numpy_T",
                                          "aten.permute",
                                          "aten.positive",
                                          "aten.ravel",
                                          "aten.real",
                                          "aten.requires_grad",
                                          "aten.reshape",
                                          "aten.reshape_as",
                                          "aten.resolve_conj",
                                          "aten.resolve_neg",
                                          "aten.select",
                                          "aten.slice",
                                          "aten.split",
                                          "aten.split_with_sizes",
                                          "aten.squeeze",
                                          "aten.swapaxes",
                                          "aten.swapdims",
                                          "aten.t",
                                          "aten.tensor_split",
                                          "aten.to",
                                          "aten.transpose",
                                          "aten.type_as",
                                          "aten.unbind",
                                          "aten.unflatten",
                                          "aten.unfold",
                                          "aten.unsafe_chunk",
                                          "aten.unsafe_split",
                                          "aten.unsafe_split_with_sizes",
                                          "aten.unsqueeze",
                                          "aten.view",
                                          "aten.view_as",
                                          "aten.view_as_complex",
                                          "aten.view_as_real",
                                          "aten.vsplit",
                                          "prims.convert_element_type"};
static_assert(std::ranges::is_sorted(kMayShare));

}  // namespace

bool may_share(std::string_view op) {
  return std::ranges::binary_search(kMayShare, op);
}

}  // namespace pinnace::torch_import
