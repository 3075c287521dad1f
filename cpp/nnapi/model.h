// A model of Android's Neural Networks API (NNAPI) as plain data: operands, operations, constants, referenced models.
// The host library fills one from C calls, the importer from a file, and the back end makes one of a segment.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"

namespace pinnace::nnapi {

/// Operand types by NNAPI's numbers. "q8" and the like are the short names of signatures.inc.
enum class OperandCode : int32_t {
  kFloat32 = 0,
  kInt32 = 1,
  kUint32 = 2,
  kTensorFloat32 = 3,
  kTensorInt32 = 4,
  kTensorQuant8Asymm = 5,  ///< q8: unsigned
  kBool = 6,
  kTensorQuant16Symm = 7,  ///< q16s: signed
  kTensorFloat16 = 8,
  kTensorBool8 = 9,
  kFloat16 = 10,
  kTensorQuant8SymmPerChannel = 11,  ///< q8c: signed
  kTensorQuant16Asymm = 12,          ///< q16: unsigned
  kTensorQuant8Symm = 13,            ///< q8y: signed
  kTensorQuant8AsymmSigned = 14,     ///< q8s
  kModel = 15,
  kOemScalar = 10000,
  kTensorOemByte = 10001,
};

/// What is known of an operand type. `since` is the feature level that introduced it, 1 to 8.
struct OperandCodeInfo {
  OperandCode code;
  const char* name;        ///< NNAPI's, "TENSOR_FLOAT32"
  const char* short_name;  ///< that of signatures.inc, "f32"; empty for OEM types
  uint8_t bytes;           ///< of one element; 0 for a model
  uint8_t since;
  bool tensor;
  bool quantized;          ///< scale > 0 is required
  int32_t zero_point_min;  ///< of quantised types
  int32_t zero_point_max;
};
/// Null if there is no such type.
const OperandCodeInfo* operand_code_info(int32_t code);
inline const OperandCodeInfo& info(OperandCode code) {
  return *operand_code_info(static_cast<int32_t>(code));
}

/// Where an operand's value comes from.
enum class Lifetime : uint8_t {
  kTemporary,  ///< made and read by operations
  kInput,      ///< of the model
  kOutput,     ///< of the model
  kConstant,   ///< `data` holds it
  kOmitted,    ///< an optional operand without a value
  kModel,      ///< `model` is it
};

struct Model;

struct Operand {
  OperandCode type = OperandCode::kFloat32;
  std::vector<uint32_t> dims;  ///< 0: unknown; empty for a tensor: rank unknown
  float scale = 0;
  int32_t zero_point = 0;
  std::vector<float> channel_scales;  ///< q8c only: one per index of channel_dim
  uint32_t channel_dim = 0;
  Lifetime lifetime = Lifetime::kTemporary;
  std::span<const std::byte> data;    ///< kConstant; not aligned
  std::shared_ptr<const void> owner;  ///< keeps `data`; null where the client does
  std::shared_ptr<const Model> model;

  bool tensor() const { return info(type).tensor; }
  /// True for a tensor of unknown rank.
  bool dynamic_rank() const { return tensor() && dims.empty(); }
  /// True if rank and every dimension are known; always for scalars.
  bool shape_known() const;
  /// Dense bytes, of which nothing is known (0) if shape_known() is false. No overflow: addOperand refuses such shapes.
  uint64_t bytes() const;
};

struct Operation {
  int32_t code = 0;  ///< an Op, or one that no signature accepts
  std::vector<uint32_t> inputs, outputs;
};

/// Indices are of `operands`. The operations of a finished model stand in an order in which values are made before they
/// are read.
struct Model {
  std::vector<Operand> operands;
  std::vector<Operation> operations;
  std::vector<uint32_t> inputs, outputs;
  bool relaxed = false;  ///< float32 may be computed as float16
  int depth = 0;         ///< of models that it refers to, and they to others; finish_model() finds it
};

/// A model may refer to others, and these to further ones, so many levels deep.
inline constexpr int kDeepestNesting = 64;

/// Checks an operand type by itself: code, dimensions, scale and zero point. `rank` and `dims` are as a client gives
/// them; a null `dims` with rank 0 is a dynamic rank for tensors. kInvalidArgument says which rule is broken.
Status validate_operand(int32_t code, uint32_t rank, const uint32_t* dims, float scale, int32_t zero_point);

/// Finds the depth of a model, and sorts its operations so that values are made before they are read; others keep their
/// order. kInvalidArgument: no operations; a cycle; an operand that is read, or an output of the model, and never
/// written; one that is written twice, or is an input or constant; one that nothing uses and nobody writes; an input or
/// output of the model that has a value. kUnsupported: it is deeper than kDeepestNesting. `order` receives for each
/// operation of the sorted model its index in the unsorted one.
Status finish_model(Model& model, std::vector<uint32_t>* order = nullptr);

}  // namespace pinnace::nnapi
