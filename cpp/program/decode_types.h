// The parts of decode_graph that know no nodes: strings, operators, symbols, quantisation, types and constants of
// values.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "program/decode.h"

namespace pinnace {

template <class T>
uint32_t list_size(const flatbuffers::Vector<T>* list) {
  return list ? list->size() : 0;
}

/// The lists of the root, read once and referred to by index. Everything borrowed from the file.
class RootLists {
 public:
  RootLists(const FileView& file, const Container& container, const format::Model& model,
            std::shared_ptr<const void> owner);
  /// Reads and checks strings, operators, symbols and quantisations.
  Status read();

  /// String `index`, for field `what` of the table at `place`.
  Result<std::string> string(uint32_t index, const void* place, std::string_view what) const;
  /// Elements of a list, none if it is absent. 8-byte elements must lie at multiples of 8.
  template <class T>
  Result<std::span<const T>> list(const flatbuffers::Vector<T>* v, std::string_view what) const {
    if (!v || v->size() == 0) return std::span<const T>();
    if (reinterpret_cast<uintptr_t>(v->data()) % sizeof(T)) {
      return file_.corrupt(file_.offset_of(v), "F-17", what, " does not lie at a multiple of ", sizeof(T));
    }
    return std::span<const T>(reinterpret_cast<const T*>(v->data()), v->size());
  }
  Result<TensorType> type(const format::Value& value, std::string_view label) const;
  /// The bytes of a constant of `type` with the recorded hash (0: none).
  Result<ConstantPtr> constant(const format::Span& span, uint64_t hash, const TensorType& type,
                               std::string_view label) const;
  /// True if a constant came without a hash.
  bool unhashed() const { return unhashed_; }

  const FileView& file() const { return file_; }
  std::vector<FileOperator> operators;
  std::vector<Symbol> symbols;

 private:
  Status read_strings();
  Status read_symbols();
  Status read_quantizations();
  Result<Shape> shape(const format::Value& value, std::string_view label) const;
  Status check_quantization(const TensorType& type, const void* place, std::string_view label) const;

  const FileView& file_;
  const Container& container_;
  const format::Model& model_;
  const std::shared_ptr<const void> owner_;
  const std::span<const std::byte> weights_;
  mutable bool unhashed_ = false;
  std::vector<std::string_view> strings_;
  std::vector<std::shared_ptr<const Quantization>> quantizations_;
};

}  // namespace pinnace
