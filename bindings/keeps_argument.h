// KeepsArgument: the result of a call keeps one of its arguments alive.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>

namespace pinnace::bindings {
/// In place of py::keep_alive<0, Argument>. That of pybind11 3.1 also acts where the arguments are of other types: it
/// takes the mark of such a call, an address of no object, for the result, and the process ends.
template <size_t Argument>
struct KeepsArgument {};
}  // namespace pinnace::bindings

template <size_t Argument>
struct pybind11::detail::process_attribute<pinnace::bindings::KeepsArgument<Argument>>
    : process_attribute_default<pinnace::bindings::KeepsArgument<Argument>> {
  static void postcall(function_call& call, handle result) {
    if (result.ptr() != PYBIND11_TRY_NEXT_OVERLOAD) keep_alive_impl(0, Argument, call, result);
  }
};
