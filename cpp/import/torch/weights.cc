// Weights: the bytes of a storage, as a dense tensor. Storages are read once; a tensor that is a dense, aligned run of
// its storage uses the bytes in place, anything else is copied element by element.
#include <algorithm>
#include <cstring>

#include "base/type_size.h"
#include "import/torch/builder.h"

namespace pinnace::torch_import {
namespace {

constexpr uint64_t kSlackBytes = 64u << 20;  // beyond 12 times the file: a few expanded buffers

template <class... Parts>
Status corrupt(const std::string& name, const Parts&... parts) {
  Status status(Code::kCorruptFile, str_cat("weight '", name, "': ", parts...));
  status.with_rule("T-2");
  return status;
}

void copy_strided(std::byte* to, const std::byte* from, const std::vector<int64_t>& sizes,
                  const std::vector<int64_t>& strides, size_t axis, size_t element, int64_t elements_below) {
  if (axis == sizes.size()) {
    std::memcpy(to, from, element);
    return;
  }
  elements_below /= sizes[axis];
  for (int64_t i = 0; i < sizes[axis]; ++i) {
    copy_strided(to + static_cast<size_t>(i * elements_below) * element,
                 from + i * strides[axis] * static_cast<int64_t>(element), sizes, strides, axis + 1, element,
                 elements_below);
  }
}

}  // namespace

Result<ConstantPtr> load_payload(Session& session, const std::string& name, const PayloadDef& payload,
                                 TensorType& type) {
  if (payload.use_pickle || !payload.has_meta)
    return unsupported("weight '", name,
                       "' is stored as a pickle (a tensor subclass or a script object), which is not read");
  const TensorMeta& meta = payload.meta;
  const bool complex = meta.part_dtype().has_value();  // real and imaginary part one after the other
  const auto dtype = complex ? meta.part_dtype() : meta.dtype();
  if (!dtype)
    return unsupported("weight '", name, "' is ", scalar_type_name(meta.scalar_type), ", which is not supported");
  if (meta.layout != 7) return unsupported("weight '", name, "' is not strided (layout ", meta.layout, ")");
  type = TensorType{*dtype, {}, nullptr};
  const int64_t element = dtype_bits(*dtype) / 8;
  std::vector<int64_t> sizes, strides;
  int64_t elements = 1, first_element = meta.storage_offset;
  if (complex && (first_element < 0 || first_element > INT64_MAX / 2)) return corrupt(name, "its sizes overflow");
  if (complex) first_element *= 2;
  int64_t last = first_element;
  bool empty = false, overflow = last < 0;
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    const int64_t size = meta.sizes[i].value;
    int64_t stride = meta.strides[i].value;
    if (!meta.sizes[i].expression.empty() || !meta.strides[i].expression.empty())
      return corrupt(name, "its size is symbolic");
    if (size < 0 || stride < 0) return corrupt(name, "size ", size, " with stride ", stride);
    overflow |= complex && __builtin_mul_overflow(stride, 2, &stride);
    sizes.push_back(size);
    strides.push_back(stride);
    type.shape.push_back(size);
    empty |= size == 0;
    int64_t span;
    overflow |= __builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements);
    overflow |= __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), stride, &span) ||
                __builtin_add_overflow(last, span, &last);
  }
  if (complex) {
    sizes.push_back(2);
    strides.push_back(1);
    type.shape.push_back(2);
    overflow |= __builtin_mul_overflow(elements, 2, &elements) || __builtin_add_overflow(last, 1, &last);
  }
  if (overflow) return corrupt(name, "its sizes overflow");
  if (!fits_memory(type)) return corrupt(name, "it is larger than memory can be: ", to_string(type));
  if (meta.sizes.size() > 64) return corrupt(name, "rank ", meta.sizes.size());
  if (empty) return Constant::copy_of(nullptr, 0);

  auto at = session.storages.find(payload.path_name);
  if (at == session.storages.end()) {
    // Names of storages are those of files in these two folders; nothing else in the archive is a weight.
    std::string entry;
    for (const char* folder : {"data/weights/", "data/constants/"}) {
      if (session.parts.has(folder + payload.path_name)) entry = folder + payload.path_name;
    }
    if (entry.empty()) return corrupt(name, "there is no entry '", payload.path_name, "'");
    PINNACE_ASSIGN(ConstantPtr bytes, session.parts.storage(entry));
    at = session.storages.emplace(payload.path_name, std::move(bytes)).first;
  }
  const ConstantPtr& storage = at->second;
  const int64_t stored = static_cast<int64_t>(storage->bytes()) / element;
  if (last >= stored) return corrupt(name, "its last element is number ", last, " of a storage of ", stored);
  if (*dtype == DType::kBool) {
    for (size_t i = 0; i < storage->bytes(); ++i) {
      if (static_cast<uint8_t>(storage->data()[i]) > 1)
        return corrupt(name, "a bool is ", static_cast<int>(storage->data()[i]));
    }
  }
  bool dense = true;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    dense = dense && (sizes[i] == 1 || strides[i] == expected);
    expected *= sizes[i];
  }
  const std::byte* first = storage->data() + first_element * element;
  const auto bytes = static_cast<uint64_t>(elements) * static_cast<uint64_t>(element);
  if (dense && reinterpret_cast<uintptr_t>(first) % kAlignment == 0) {
    if (bytes == storage->bytes()) return storage;
    return std::make_shared<const Constant>(storage, first, bytes);
  }
  if (elements > INT64_MAX / 16 || session.copied_bytes + bytes > 12 * session.parts.bytes() + kSlackBytes) {
    return corrupt(name, "its ", elements, " elements are an expansion of ", stored,
                   ", with others more than 12 times the file");
  }
  session.copied_bytes += bytes;
  PINNACE_ASSIGN(Buffer copy, Buffer::allocate(bytes, str_cat("weight '", name, "'")));
  if (dense) {
    std::memcpy(copy.data(), first, bytes);
  } else {
    copy_strided(copy.data(), first, sizes, strides, 0, static_cast<size_t>(element), elements);
  }
  return Constant::of(std::move(copy));
}

}  // namespace pinnace::torch_import
