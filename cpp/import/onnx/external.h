// The files beside an ONNX model in which it keeps the elements of tensors: each is opened once and mapped, tensors
// that lie at the same place share their bytes, and what they take together is bounded by the size of the file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/files/beneath.h"
#include "graph/graph.h"
#include "onnx_model.pb.h"

namespace pinnace::onnx {
namespace proto = pinnace::onnx_proto;

/// Where a tensor's bytes lie.
struct External {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;  ///< -1: to the end
};
/// Reads the entries of a tensor's external_data. kCorruptFile, rule O-15: no location, numbers that are none.
Result<External> external_of(const proto::TensorProto& t, const std::string& what);

class ExternalData {
 public:
  /// `folder` is the model's.
  explicit ExternalData(Folder folder) : folder_(std::move(folder)) {}

  /// The elements of a tensor of that type, which stay in the mapped file where they are aligned there and need no
  /// change. Files must not be rewritten while the model is used, as for programs.
  ///
  /// kCorruptFile: the location leaves the folder or is no file (rule O-14), the file is too short (O-15), the length
  /// is not that of the type (O-12), or tensors at different places take more than twice the file's bytes together
  /// (O-17). kFile: it cannot be read.
  Result<ConstantPtr> get(const External& where, const TensorType& type, const std::string& what);

  /// Bytes of a tensor that were read from the model itself, for where a piece of it is read again, or null.
  ConstantPtr read_before(const proto::TensorProto* tensor) const;
  void keep(const proto::TensorProto* tensor, const ConstantPtr& bytes) { read_[tensor] = bytes; }

 private:
  struct File;
  Result<File*> file_at(const std::string& location, const std::string& what);

  Folder folder_;
  std::map<std::string, std::shared_ptr<File>> files_;
  std::unordered_map<const proto::TensorProto*, std::weak_ptr<const Constant>> read_;
};

/// True if bytes that a file holds for `type` are not those of its elements: bools other than 0 and 1, something behind
/// the last packed element.
bool needs_cleaning(const TensorType& type, std::span<const std::byte> bytes);
/// Makes them so.
void clean(const TensorType& type, std::span<std::byte> bytes);

}  // namespace pinnace::onnx
