// FilePath: an argument that names a file, in the bytes by which the system knows it. A name that is not of the
// locale's encoding is in Python a str that is not Unicode (os.fsdecode), which std::string does not take.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace pinnace::bindings {
struct FilePath {
  std::string bytes;
};
}  // namespace pinnace::bindings

template <>
struct pybind11::detail::type_caster<pinnace::bindings::FilePath> {
  PYBIND11_TYPE_CASTER(pinnace::bindings::FilePath, const_name("str"));
  bool load(handle source, bool) {
    object bytes = reinterpret_borrow<object>(source);
    if (PyUnicode_Check(source.ptr())) {
      bytes = reinterpret_steal<object>(PyUnicode_EncodeFSDefault(source.ptr()));
      if (!bytes) throw error_already_set();  // a half of a surrogate pair, which names no file
    }
    if (!PyBytes_Check(bytes.ptr())) return false;
    value.bytes.assign(PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr())));
    return true;
  }
};
