// A walk over protobuf's wire format with just enough of ONNX's schema to tell messages from strings and numbers.
#include "import/onnx/wire_cost.h"

#include "onnx_model.pb.h"

namespace pinnace::onnx {
namespace {
namespace proto = pinnace::onnx_proto;

enum Kind : uint8_t {
  kModel,
  kTraining,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kValueInfo,
  kType,
  kTensorType,
  kElementType,
  kMapType,
  kShape,
  kDimension,
  kFunction,
  kEntry,
  kAnnotation,
  kDevices,
  kSharding,
  kShardedDim,
  kLeaf,
  kPacked32,
  kPacked64,
  kText,  // anything else that has a length
};

struct Child {
  Kind parent;
  uint32_t field;
  Kind child;
};
constexpr Child kChildren[] = {
    {kModel, 7, kGraph},         {kModel, 8, kLeaf},         {kModel, 14, kEntry},        {kModel, 20, kTraining},
    {kModel, 25, kFunction},     {kModel, 26, kLeaf},        {kTraining, 1, kGraph},      {kTraining, 2, kGraph},
    {kTraining, 3, kEntry},      {kTraining, 4, kEntry},     {kGraph, 1, kNode},          {kGraph, 5, kTensor},
    {kGraph, 15, kSparse},       {kGraph, 11, kValueInfo},   {kGraph, 12, kValueInfo},    {kGraph, 13, kValueInfo},
    {kGraph, 14, kAnnotation},   {kGraph, 16, kEntry},       {kNode, 5, kAttribute},      {kNode, 9, kEntry},
    {kNode, 10, kDevices},       {kAttribute, 5, kTensor},   {kAttribute, 10, kTensor},   {kAttribute, 6, kGraph},
    {kAttribute, 11, kGraph},    {kAttribute, 22, kSparse},  {kAttribute, 23, kSparse},   {kAttribute, 14, kType},
    {kAttribute, 15, kType},     {kAttribute, 7, kPacked32}, {kAttribute, 8, kPacked64},  {kFunction, 7, kNode},
    {kFunction, 11, kAttribute}, {kFunction, 9, kLeaf},      {kFunction, 12, kValueInfo}, {kFunction, 14, kEntry},
    {kValueInfo, 2, kType},      {kValueInfo, 4, kEntry},    {kType, 1, kTensorType},     {kType, 8, kTensorType},
    {kType, 4, kElementType},    {kType, 9, kElementType},   {kType, 5, kMapType},        {kType, 7, kLeaf},
    {kElementType, 1, kType},    {kMapType, 2, kType},       {kTensorType, 2, kShape},    {kShape, 1, kDimension},
    {kTensor, 1, kPacked64},     {kTensor, 3, kLeaf},        {kTensor, 4, kPacked32},     {kTensor, 5, kPacked32},
    {kTensor, 7, kPacked64},     {kTensor, 10, kPacked64},   {kTensor, 11, kPacked64},    {kTensor, 13, kEntry},
    {kTensor, 16, kEntry},       {kSparse, 1, kTensor},      {kSparse, 2, kTensor},       {kSparse, 3, kPacked64},
    {kAnnotation, 2, kEntry},    {kDevices, 2, kSharding},   {kSharding, 2, kPacked64},   {kSharding, 3, kLeaf},
    {kSharding, 4, kShardedDim}, {kShardedDim, 2, kLeaf},
};

Kind child_of(Kind parent, uint32_t field) {
  for (const Child& c : kChildren) {
    if (c.parent == parent && c.field == field) return c.child;
  }
  return kText;
}

/// Size of the object, its pointer in the parent and malloc's own 16 bytes.
int64_t object_bytes(Kind kind) {
  const auto bytes = [&]() -> size_t {
    switch (kind) {
      case kGraph:
        return sizeof(proto::GraphProto);
      case kNode:
        return sizeof(proto::NodeProto);
      case kAttribute:
        return sizeof(proto::AttributeProto);
      case kTensor:
        return sizeof(proto::TensorProto);
      case kValueInfo:  // and what becomes of an input or output: names and types in the graph and in its lists
        return sizeof(proto::ValueInfoProto) + 160;
      case kType:
        return sizeof(proto::TypeProto);
      case kTensorType:
        return sizeof(proto::TypeProto_Tensor);
      case kShape:
        return sizeof(proto::TensorShapeProto);
      case kDimension:
        return sizeof(proto::TensorShapeProto_Dimension);
      case kFunction:
        return sizeof(proto::FunctionProto);
      case kEntry:
        return sizeof(proto::StringStringEntryProto);
      default:
        return 128;
    }
  }();
  return static_cast<int64_t>(bytes) + 24;
}

class Walk {
 public:
  explicit Walk(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Status message(Kind kind, size_t from, size_t to, int depth) {
    if (depth > 100) return corrupt(from, "messages nest deeper than 100");
    size_t at = from;
    while (at < to) {
      const size_t start = at;
      uint64_t tag = 0, length = 0;
      if (!varint(at, to, tag)) return corrupt(start, "a field's tag is cut off");
      const auto field = static_cast<uint32_t>(tag >> 3);
      if (field == 0 || tag >> 32) return corrupt(start, "a field has no legal number");
      switch (tag & 7) {
        case 0:
          if (!varint(at, to, length)) return corrupt(start, "a number is cut off");
          cost_ += 16;  // 8 bytes, in a list that grows by doubling
          break;
        case 1:
          if (to - at < 8) return corrupt(start, "a number is cut off");
          at += 8, cost_ += 16;
          break;
        case 5:
          if (to - at < 4) return corrupt(start, "a number is cut off");
          at += 4, cost_ += 8;
          break;
        case 2: {
          if (!varint(at, to, length) || length > to - at) return corrupt(start, "a field is longer than what is left");
          PINNACE_TRY(content(child_of(kind, field), at, at + length, depth));
          at += length;
          break;
        }
        default:
          return corrupt(start, "groups are not part of ONNX");
      }
    }
    return {};
  }

  int64_t cost() const { return cost_; }

 private:
  Status content(Kind kind, size_t from, size_t to, int depth) {
    const auto length = static_cast<int64_t>(to - from);
    if (kind == kText) {
      cost_ += 56 + (length > 15 ? length + 16 : 0);  // a std::string on the heap, its pointer, its bytes if long
    } else if (kind == kPacked32 || kind == kPacked64) {
      int64_t numbers = 0;  // at most: fixed-size numbers are counted too high
      for (size_t i = from; i < to; ++i) numbers += (static_cast<uint8_t>(bytes_[i]) & 0x80) == 0;
      cost_ += numbers * (kind == kPacked32 ? 8 : 16);
    } else {
      cost_ += object_bytes(kind);
      return message(kind, from, to, depth + 1);
    }
    return {};
  }

  bool varint(size_t& at, size_t to, uint64_t& value) const {
    value = 0;
    for (int shift = 0; shift < 70 && at < to; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at++]);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return true;
    }
    return false;
  }

  static Status corrupt(size_t at, const char* what) {
    Status status(Code::kCorruptFile, str_cat("not an ONNX model: ", what, " at byte ", at));
    return status.with_offset(static_cast<int64_t>(at)).with_rule("O-1");
  }

  std::span<const std::byte> bytes_;
  int64_t cost_ = 0;
};
}  // namespace

Result<int64_t> wire_cost(std::span<const std::byte> bytes) {
  Walk walk(bytes);
  PINNACE_TRY(walk.message(kModel, 0, bytes.size(), 0));
  return walk.cost();
}

}  // namespace pinnace::onnx
