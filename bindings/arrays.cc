// Arrays in and out. Element types go by their name in numpy, which ml_dtypes' types have too.
#include "arrays.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "errors.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

/// Whether numpy itself has the type, and not ml_dtypes alone.
bool in_numpy(DType dtype) {
  return dtype <= DType::kBool && dtype != DType::kBF16;
}

/// numpy's own object for one of its types, which every array of that type in native byte order has; never released.
/// Looking a type up by name is Python code, 3 us of a run.
py::handle numpy_object(DType dtype) {
  static PyObject* objects[kDTypeCount] = {};
  PyObject*& object = objects[static_cast<int>(dtype)];
  if (!object) object = py::dtype(std::string(dtype_name(dtype))).release().ptr();
  return object;
}

std::optional<DType> dtype_of(const py::dtype& dtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto own = static_cast<DType>(i);
    if (in_numpy(own) && dtype.is(numpy_object(own))) return own;
  }
  return dtype_from_name(py::cast<std::string>(dtype.attr("name")));
}

bool packed(DType dtype) {
  return dtype_bits(dtype) < 8;
}

/// Without a copy where it is one already.
py::array array_from(const py::handle& object, const std::string& what) {
  py::array array = py::array::ensure(object);
  if (!array) throw_status(Status(Code::kInvalidArgument, what + " is not an array"));
  return array;
}

DType known_dtype(const py::array& array, const std::string& what) {
  const auto dtype = dtype_of(array.dtype());
  if (!dtype) {
    throw_status(Status(Code::kInvalidArgument, what + " has element type " +
                                                    py::cast<std::string>(array.dtype().attr("name")) +
                                                    ", which is none of pinnace's"));
  }
  return *dtype;
}

/// False: the input takes no array of this type, whatever the others are. A run says why.
bool takes(const TensorSpec& spec, std::span<const Symbol> symbols, const TensorType& type) {
  if (type.dtype != spec.type.dtype || type.rank() != spec.type.rank()) return false;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const Dim& want = spec.type.shape[d];
    const int64_t size = type.shape[d].size;
    if (want.known() ? size != want.size : want.max >= 0 && size > want.max) return false;
    if (want.known() || want.symbol < 0) continue;
    const Symbol& symbol = symbols[static_cast<size_t>(want.symbol)];
    if (size < symbol.min || size > symbol.max) return false;
  }
  return true;
}

}  // namespace

py::dtype numpy_dtype(DType dtype) {
  if (in_numpy(dtype)) return py::reinterpret_borrow<py::dtype>(numpy_object(dtype));
  const std::string name(dtype_name(dtype));
  try {
    return py::dtype::from_args(py::module_::import("ml_dtypes").attr(name.c_str()));
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    throw_status(Status(Code::kUnsupported, name + " needs the ml_dtypes package: pip install ml_dtypes"));
  }
}

BorrowedArray borrow_array(const py::handle& object, const std::string& what) {
  BorrowedArray borrowed;
  borrowed.array = array_from(object, what);
  const DType dtype = known_dtype(borrowed.array, what);
  // C order, aligned, native byte order: numpy copies if and only if one is missing.
  borrowed.array =
      py::array::ensure(borrowed.array, static_cast<int>(py::array::c_style) | py::detail::npy_api::NPY_ARRAY_ALIGNED_);
  if (!borrowed.array) throw_status(Status(Code::kInvalidArgument, what + " is not an array"));
  if (!py::cast<bool>(borrowed.array.dtype().attr("isnative"))) {
    borrowed.array = py::array::ensure(borrowed.array.attr("astype")(borrowed.array.dtype().attr("newbyteorder")("=")));
  }
  Tensor& tensor = borrowed.tensor;
  tensor.type.dtype = dtype;
  for (py::ssize_t i = 0; i < borrowed.array.ndim(); ++i) tensor.type.shape.push_back(Dim(borrowed.array.shape(i)));
  tensor.memory.host = const_cast<void*>(borrowed.array.data());
  tensor.memory.bytes = static_cast<size_t>(borrowed.array.nbytes());
  if (packed(dtype)) {
    const auto* elements = static_cast<const uint8_t*>(borrowed.array.data());
    const auto bits = static_cast<size_t>(dtype_bits(dtype));
    borrowed.packed.resize((tensor.memory.bytes * bits + 7) / 8);
    for (size_t i = 0; i < tensor.memory.bytes; ++i) {
      const unsigned element = (elements[i] & ((1u << bits) - 1)) << (i * bits % 8);  // 6 bits may lie in two bytes
      borrowed.packed[i * bits / 8] |= static_cast<std::byte>(element & 255);
      if (element > 255) borrowed.packed[i * bits / 8 + 1] |= static_cast<std::byte>(element >> 8);
    }
    tensor.memory.host = borrowed.packed.data();
    tensor.memory.bytes = borrowed.packed.size();
  }
  return borrowed;
}

std::vector<BorrowedArray> borrow_inputs(const Session& session, const py::sequence& arrays) {
  std::vector<BorrowedArray> borrowed;
  const auto specs = session.inputs();
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::string what = i < specs.size() ? "input '" + specs[i].name + "'" : "input " + std::to_string(i);
    BorrowedArray
        unread;  // of an array that does not fit only the type, which a run refuses: no copy of all its elements
    unread.array = array_from(arrays[i], what);
    unread.tensor.type.dtype = known_dtype(unread.array, what);
    for (py::ssize_t d = 0; d < unread.array.ndim(); ++d)
      unread.tensor.type.shape.push_back(Dim(unread.array.shape(d)));
    const bool fits = i < specs.size() && takes(specs[i], session.symbols(), unread.tensor.type);
    borrowed.push_back(fits ? borrow_array(unread.array, what) : std::move(unread));
  }
  return borrowed;
}

py::array array_of(const TensorType& type, std::span<const std::byte> bytes) {
  std::vector<py::ssize_t> shape;
  for (const Dim& d : type.shape) shape.push_back(static_cast<py::ssize_t>(d.size));
  py::array array(numpy_dtype(type.dtype), shape);
  auto* to = static_cast<uint8_t*>(array.mutable_data());
  const auto count = static_cast<size_t>(type.elements());
  if (!packed(type.dtype)) {
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    return array;
  }
  const auto bits = static_cast<size_t>(dtype_bits(type.dtype));
  const bool is_signed = type.dtype == DType::kI4 || type.dtype == DType::kI2;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = i * bits / 8, shift = i * bits % 8;
    unsigned window = static_cast<unsigned>(bytes[at]);
    if (shift + bits > 8) window |= static_cast<unsigned>(bytes[at + 1]) << 8;
    const unsigned element = window >> shift & ((1u << bits) - 1), sign = 1u << (bits - 1);
    to[i] = static_cast<uint8_t>(is_signed ? (element ^ sign) - sign : element);
  }
  return array;
}

OwnedBytes OwnedBytes::copy_of(const Tensor& tensor) {
  const size_t size = tensor.memory.bytes;
  OwnedBytes made{tensor.type, std::shared_ptr<std::byte[]>(new (std::nothrow) std::byte[std::max<size_t>(1, size)]),
                  size};
  if (made.bytes && size) std::memcpy(made.bytes.get(), tensor.memory.host, size);
  return made;
}

py::array array_of(const OwnedBytes& owned) {
  if (!owned.bytes) {
    check(Status(Code::kOutOfMemory, "an output of " + std::to_string(owned.size) + " bytes cannot be copied"));
  }
  if (packed(owned.type.dtype)) return array_of(owned.type, {owned.bytes.get(), owned.size});
  std::vector<py::ssize_t> shape;
  for (const Dim& d : owned.type.shape) shape.push_back(static_cast<py::ssize_t>(d.size));
  using Held = std::shared_ptr<std::byte[]>;
  auto held = std::make_unique<Held>(owned.bytes);
  const py::capsule keeper(held.get(), [](void* p) { delete static_cast<Held*>(p); });
  [[maybe_unused]] const Held* deleted_by_keeper = held.release();
  return py::array(numpy_dtype(owned.type.dtype), shape, owned.bytes.get(), keeper);
}

}  // namespace pinnace::bindings
