// Domain com.microsoft: what onnxruntime's quantisers write beside ONNX's own operators. Integers stay as they are
// stored: what computes on quantised tensors is dequantise, operate, quantise, of which the pass fold_quantization
// makes operators on integers, and weights of 2, 4 or 8 bits are operands of dequantize_linear.
#include <algorithm>
#include <cmath>

#include "base/sorted_table.h"
#include "import/onnx/mapping.h"
#include "import/onnx/quantized.h"
#include "ops/element.h"

namespace pinnace::onnx {
namespace {

/// Sizes that attributes state are at most this, so that no product of two of them overflows.
constexpr int64_t kMostSize = int64_t{1} << 31;

/// Rows of unsigned numbers of so many bits, low bits first, each row beginning with a byte.
struct BitRows {
  const uint8_t* bytes;
  int64_t row_bytes;
  int bits;
  int at(int64_t row, int64_t i) const {
    const int64_t bit = i * bits;
    return (bytes[row * row_bytes + bit / 8] >> (bit % 8)) & ((1 << bits) - 1);
  }
};

/// The rows as a constant [rows, columns] of 8 bits, or of 4, which products read, for fewer; signed: less half of the
/// range.
Result<ValueId> packed_constant(SourceNode& node, std::string_view what, const BitRows& from, int64_t rows,
                                int64_t columns, bool is_signed) {
  const int bits = std::max(from.bits, 4), each = 8 / bits, half = is_signed ? 1 << (from.bits - 1) : 0;
  const DType dtype = bits == 8 ? (is_signed ? DType::kI8 : DType::kU8) : is_signed ? DType::kI4 : DType::kU4;
  const TensorType type{dtype, {rows, columns}, nullptr};
  std::vector<uint8_t> made(static_cast<size_t>(type.bytes()));
  int64_t to = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; ++i, ++to) {
      const int q = (from.at(row, i) - half) & ((1 << bits) - 1);
      made[static_cast<size_t>(to / each)] |= static_cast<uint8_t>(q << (to % each * bits));
    }
  }
  PINNACE_ASSIGN(ConstantPtr data, Constant::copy_of(made.data(), made.size()));
  return node.scope().builder.add_constant(str_cat(node.name(), "/", what), type, std::move(data));
}

/// Contents of input i, of that element type and so many elements; the rule that it breaks otherwise.
Result<const std::byte*> constant_input(SourceNode& node, int i, std::string_view what, DType dtype, int64_t elements) {
  const ConstantPtr& data = node.scope().builder.data(node.in(i));
  if (!data) return refuse(str_cat(what, " must be a constant"));
  const TensorType& type = node.in_type(i);
  if (type.dtype != dtype || type.elements() != elements) {
    return refuse(str_cat(what, " must be ", elements, " elements of type ", dtype_name(dtype)), to_string(type));
  }
  PINNACE_TRY(data->check());
  return data->data();
}

Result<int> bits_of(SourceNode& node, int64_t fallback) {
  PINNACE_ASSIGN(const int64_t bits, node.int_attr("bits", fallback));
  if (bits != 2 && bits != 4 && bits != 8) return refuse("bits must be 2, 4 or 8", str_cat(bits));
  return static_cast<int>(bits);
}

/// Float zero points as integers where all of them are whole numbers of the range, which they are as quantisers write
/// them.
Result<std::vector<uint8_t>> whole_zero_points(SourceNode& node, int i, int64_t count, int bits) {
  const TensorType type = node.in_type(i);
  PINNACE_ASSIGN(const std::byte* data, constant_input(node, i, "zero points", type.dtype, count));
  if (!(dtypes(type.dtype) & kFloats)) return refuse("zero points must be u8 or floats", to_string(type));
  std::vector<uint8_t> zeros(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) {
    const double zero = visit_float(type.dtype, [&](auto kind) {
      return static_cast<double>(widen(reinterpret_cast<const decltype(kind)*>(data)[k]));
    });
    if (!(zero >= 0 && zero < 1 << bits) || zero != std::floor(zero)) {
      return refuse(str_cat("zero points must be whole numbers of ", bits, " bits"), str_cat(zero));
    }
    zeros[static_cast<size_t>(k)] = static_cast<uint8_t>(zero);
  }
  return zeros;
}

/// The sum of int32 products as real numbers: times both scales, plus a bias if there is one.
Status finish_scaled(SourceNode& node, ValueId sums, ValueId a_scale, ValueId b_scale, int bias) {
  PINNACE_ASSIGN(const ValueId scale, node.emit("mul", {a_scale, b_scale}));
  PINNACE_ASSIGN(const ValueId real, node.emit("cast", {sums}, {{"to", std::string("f32")}}));
  if (!node.has(bias)) return node.finish("mul", {real, scale});
  PINNACE_ASSIGN(const ValueId scaled, node.emit("mul", {real, scale}));
  return node.finish("add", {scaled, node.in(bias)});
}

Status refuse_channels_last(SourceNode& node) {
  PINNACE_ASSIGN(const int64_t last, node.int_attr("channels_last", 0));
  return last == 0 ? Status() : refuse("attribute 'channels_last' is not supported", str_cat(last));
}
}  // namespace

MapFn find_microsoft_mapping(std::string_view op_type) {
  static constexpr SortedTable kMappings({
#define MAP(name, function) TableLine<std::string_view, MapFn>{#name, map_##function},
#include "import/onnx/microsoft.inc"
#undef MAP
  });
  return kMappings.find(op_type);
}

/// Inputs: a [..., K], integers of b in blocks along K, scales, zero points, an order of groups, bias [N].
Status map_mat_mul_n_bits(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(3));
  PINNACE_ASSIGN(const int bits, bits_of(node, 4));
  PINNACE_ASSIGN(const int64_t K, node.int_attr("K", 0));
  PINNACE_ASSIGN(const int64_t N, node.int_attr("N", 0));
  PINNACE_ASSIGN(const int64_t block, node.int_attr("block_size", 0));
  PINNACE_ASSIGN(const int64_t prepacked, node.int_attr("weight_prepacked", 0));
  PINNACE_ASSIGN(const int64_t accuracy, node.int_attr("accuracy_level", 0));
  if (accuracy > 1) {
    constexpr const char* kNote =
        "MatMulNBits: accuracy_level allows activations of fewer bits, which it does not ask for: they stay floats";
    std::vector<std::string>& notes = node.scope().builder.import.notes;
    if (std::find(notes.begin(), notes.end(), kNote) == notes.end()) notes.emplace_back(kNote);
  }
  if (K < 1 || N < 1 || K > kMostSize || N > kMostSize) {
    return refuse(str_cat("K and N must be 1 to ", kMostSize), str_cat(K, " and ", N));
  }
  if (block < 16 || block > kMostSize || (block & (block - 1)) != 0) {
    return refuse(str_cat("block_size must be a power of 2 from 16 to ", kMostSize), str_cat(block));
  }
  if (prepacked != 0) return refuse("weights are in the order of one device's kernels", str_cat(prepacked));
  const int64_t blocks = (K + block - 1) / block, row_bytes = blocks * (block * bits / 8);
  PINNACE_ASSIGN(const std::byte* b, constant_input(node, 1, "B", DType::kU8, N * row_bytes));
  if (node.has(4)) {  // which block each row of the weights belongs to: in order it says nothing
    const auto order = node.known_ints(4);
    bool in_order = order && static_cast<int64_t>(order->size()) == K;
    for (int64_t k = 0; in_order && k < K; ++k) in_order = (*order)[static_cast<size_t>(k)] == k / block;
    if (!in_order) return refuse("rows of the weights that are in another order than their blocks (g_idx)");
  }
  const auto bytes = [](const std::byte* data) { return reinterpret_cast<const uint8_t*>(data); };
  PINNACE_ASSIGN(const ValueId q,
                 packed_constant(node, "weights", {bytes(b), row_bytes, bits}, N, K, /*is_signed=*/!node.has(3)));
  ValueId zeros = kNoValue;
  if (node.has(3) && node.in_type(3).dtype == DType::kU8) {
    const int64_t zero_bytes = (blocks * bits + 7) / 8;
    PINNACE_ASSIGN(const std::byte* data, constant_input(node, 3, "zero points", DType::kU8, N * zero_bytes));
    PINNACE_ASSIGN(zeros, packed_constant(node, "zeros", {bytes(data), zero_bytes, bits}, N, blocks, false));
  } else if (node.has(3)) {
    PINNACE_ASSIGN(const std::vector<uint8_t> whole, whole_zero_points(node, 3, N * blocks, bits));
    std::vector<uint8_t> rows(static_cast<size_t>(N * ((blocks * bits + 7) / 8)));
    const int64_t zero_bytes = static_cast<int64_t>(rows.size()) / N;
    for (int64_t k = 0; k < N * blocks; ++k) {
      const int64_t bit = k % blocks * bits;
      rows[static_cast<size_t>(k / blocks * zero_bytes + bit / 8)] |=
          static_cast<uint8_t>(whole[static_cast<size_t>(k)] << (bit % 8));
    }
    PINNACE_ASSIGN(zeros, packed_constant(node, "zeros", {rows.data(), zero_bytes, bits}, N, blocks, false));
  }
  PINNACE_TRY(constant_input(node, 2, "scales", node.in_type(2).dtype, N * blocks).status());
  const ValueId scales = node.scope().builder.add_constant(str_cat(node.name(), "/scales"),
                                                           TensorType{node.in_type(2).dtype, {N, blocks}, nullptr},
                                                           node.scope().builder.data(node.in(2)));
  PINNACE_ASSIGN(const ValueId w,
                 node.emit("dequantize_linear", {q, scales, zeros}, {{"axis", int64_t{1}}, {"block_size", block}}));
  PINNACE_ASSIGN(const ValueId turned, node.emit("transpose", {w}, {{"perm", std::vector<int64_t>{1, 0}}}));
  if (!node.has(5)) return node.finish("mat_mul", {node.in(0), turned});
  PINNACE_ASSIGN(const ValueId product, node.emit("mat_mul", {node.in(0), turned}));
  return node.finish("add", {product, node.in(5)});
}

/// Inputs: a table of rows whose last dimension is in blocks, indices, scales, zero points. The rows that are read are
/// dequantised, not the table.
Status map_gather_block_quantized(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(3));
  const TensorType data = node.in_type(0), scale = node.in_type(2);
  const int rank = data.rank();
  const bool bytes = data.dtype == DType::kU8, is_signed = data.dtype == DType::kI4;
  if (!bytes && !is_signed && data.dtype != DType::kU4) {
    return refuse("data must be of type u8, i4 or u4", to_string(data));
  }
  int bits = 4;
  if (bytes) {
    PINNACE_ASSIGN(bits, bits_of(node, 4));
  }
  PINNACE_ASSIGN(const int64_t block, node.int_attr("block_size", 128));
  PINNACE_ASSIGN(const int64_t gather_axis, node.int_attr("gather_axis", 0));
  PINNACE_ASSIGN(const int64_t along, node.int_attr("quantize_axis", 1));
  if (rank != 2 || gather_axis != 0 || (along != 1 && along != -1)) {
    return refuse("data must be [rows, columns], with rows that are read and columns in blocks",
                  str_cat(to_string(data), ", gather_axis ", gather_axis, ", quantize_axis ", along));
  }
  if (block < 16 || block > kMostSize) return refuse(str_cat("block_size must be 16 to ", kMostSize), str_cat(block));
  const int each = 8 / bits;
  const int64_t rows = data.shape[0].size, columns = data.shape[1].size * (bytes ? each : 1);
  const int64_t blocks = (columns + block - 1) / block;
  if (columns % each != 0) return refuse("rows must have whole bytes", to_string(data));
  if (scale.elements() != rows * blocks) {
    return refuse(str_cat("scales must be ", rows, " by ", blocks), to_string(scale));
  }
  PINNACE_ASSIGN(const std::byte* stored, constant_input(node, 0, "data", data.dtype, data.elements()));
  // i4 and u4 as bytes, with the lowest number 0.
  std::vector<uint8_t> packed(static_cast<size_t>(data.bytes()));
  for (size_t i = 0; i < packed.size(); ++i) {
    packed[i] = static_cast<uint8_t>(static_cast<uint8_t>(stored[i]) ^ (is_signed ? 0x88 : 0));
  }
  const auto table = [&](std::string_view what, const std::vector<uint8_t>& from, int64_t width) -> Result<ValueId> {
    PINNACE_ASSIGN(ConstantPtr constant, Constant::copy_of(from.data(), from.size()));
    const ValueId id = node.scope().builder.add_constant(
        str_cat(node.name(), "/", what), TensorType{DType::kU8, {rows, width}, nullptr}, std::move(constant));
    return node.emit("gather", {id, node.in(1)});
  };
  PINNACE_ASSIGN(ValueId q, table("data", packed, columns / each));
  PINNACE_ASSIGN(const ValueId scales, node.emit("gather", {node.in(2), node.in(1)}));
  const int made_rank = node.type(q).rank();
  if (each > 1) {  // bytes [..., columns / each] to numbers
    PINNACE_ASSIGN(const ValueId mask, node.constant_scalar(DType::kU8, (1 << bits) - 1));
    PINNACE_ASSIGN(const ValueId behind, node.constant_ints(std::vector<int64_t>{made_rank}));
    std::vector<ValueId> parts;
    for (int i = 0; i < each; ++i) {
      ValueId part = q;
      if (i > 0) {
        PINNACE_ASSIGN(const ValueId by, node.constant_scalar(DType::kU8, i * bits));
        PINNACE_ASSIGN(part, node.emit("bit_shift", {q, by}, {{"direction", std::string("RIGHT")}}));
      }
      if (i + 1 < each) {
        PINNACE_ASSIGN(part, node.emit("bitwise_and", {part, mask}));
      }
      PINNACE_ASSIGN(part, node.emit("unsqueeze", {part, behind}));
      parts.push_back(part);
    }
    PINNACE_ASSIGN(q, node.emit("concat", std::move(parts), {{"axis", int64_t{made_rank}}}));
    std::vector<int64_t> sizes(static_cast<size_t>(made_rank), 0);
    sizes.back() = columns;
    PINNACE_ASSIGN(const ValueId shape, node.constant_ints(sizes));
    PINNACE_ASSIGN(q, node.emit("reshape", {q, shape}));
  }
  ValueId zeros = kNoValue;
  if (node.has(3)) {
    const TensorType zero_type = node.in_type(3);
    const bool as_bytes = zero_type.dtype == DType::kU8;
    const int64_t width = as_bytes ? (blocks * bits + 7) / 8 : blocks;
    PINNACE_ASSIGN(const std::byte* from, constant_input(node, 3, "zero points", data.dtype, rows * width));
    std::vector<uint8_t> whole(static_cast<size_t>(rows * blocks));
    // Bytes begin anew with each row, numbers of four bits do not.
    const BitRows numbers{reinterpret_cast<const uint8_t*>(from), as_bytes ? width : 0, bits};
    for (int64_t k = 0; k < rows * blocks; ++k) {
      const int zero = as_bytes ? numbers.at(k / blocks, k % blocks) : numbers.at(0, k);
      whole[static_cast<size_t>(k)] = static_cast<uint8_t>(is_signed ? zero ^ 8 : zero);
    }
    PINNACE_ASSIGN(zeros, table("zeros", whole, blocks));
  } else if (const int zero = bytes ? 1 << (bits - 1) : is_signed ? 8 : 0; zero != 0) {
    PINNACE_ASSIGN(const ValueId one, node.constant_scalar(DType::kU8, zero));
    PINNACE_ASSIGN(const ValueId shape, node.emit("shape", {scales}));
    PINNACE_ASSIGN(zeros, node.emit("expand", {one, shape}));
  }
  return node.finish("dequantize_linear", {q, scales, zeros},
                     {{"axis", int64_t{made_rank - 1}}, {"block_size", block}});
}

/// Inputs: a in float, b, its scale and zero point, bias. a is quantised to u8 by its own range, as a whole.
Status map_dynamic_quantize_mat_mul(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(3));
  PINNACE_ASSIGN(const std::vector<ValueId> a, node.emit_many("dynamic_quantize_linear", {node.in(0)}, {}, 3));
  PINNACE_ASSIGN(const ValueId sums, node.emit("mat_mul_integer", {a[0], node.in(1), a[2], node.in(3)}));
  return finish_scaled(node, sums, a[1], node.in(2), 4);
}

/// Inputs: a, b, their scales, their zero points, bias.
Status map_mat_mul_integer_to_float(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(4));
  if (node.in_type(2).rank() > 0 && node.in_type(2).elements() != 1) {
    return refuse("a_scale must have one element", to_string(node.in_type(2)));
  }
  PINNACE_ASSIGN(const ValueId sums, node.emit("mat_mul_integer", {node.in(0), node.in(1), node.in(4), node.in(5)}));
  return finish_scaled(node, sums, node.in(2), node.in(3), 6);
}

/// Inputs: a, its scale and zero point, b and its, c in units of a's scale times b's, y's. Without y's the result is
/// float.
Status map_q_gemm(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(6));
  PINNACE_ASSIGN(const int64_t turned, node.int_attr("transB", 0));
  PINNACE_ASSIGN(const double alpha, node.float_attr("alpha", 1));
  PINNACE_ASSIGN(const ValueId a, dequantize(node, node.in(0), node.in(1), node.in(2), 1));
  PINNACE_ASSIGN(const ValueId b, dequantize(node, node.in(3), node.in(4), node.in(5), turned != 0 ? 0 : 1));
  std::vector<ValueId> inputs = {a, b};
  if (node.has(6)) {
    PINNACE_ASSIGN(ValueId scale, node.emit("mul", {node.in(1), node.in(4)}));
    if (alpha != 1) {
      PINNACE_ASSIGN(const ValueId by, node.constant_scalar(DType::kF32, alpha));
      PINNACE_ASSIGN(scale, node.emit("mul", {scale, by}));
    }
    const int64_t last = std::max(node.in_type(6).rank() - 1, 0);
    PINNACE_ASSIGN(const ValueId c, dequantize(node, node.in(6), scale, kNoValue, last));
    inputs.push_back(c);
  }
  PINNACE_ASSIGN(const OpDef* gemm, node.find("gemm"));
  PINNACE_ASSIGN(Attrs attrs, convert_attributes(node, *gemm));
  if (!node.has(7)) return node.finish("gemm", std::move(inputs), std::move(attrs));
  PINNACE_ASSIGN(const ValueId y, node.emit("gemm", std::move(inputs), std::move(attrs)));
  return quantize(node, y, node.in(7), node.in(8));
}

/// QLinearAdd, QLinearMul. Inputs: a, its scale and zero point, b and its, y's.
Status map_q_linear_binary(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(7));
  PINNACE_ASSIGN(const ValueId a, dequantize(node, node.in(0), node.in(1), node.in(2), 1));
  PINNACE_ASSIGN(const ValueId b, dequantize(node, node.in(3), node.in(4), node.in(5), 1));
  PINNACE_ASSIGN(const ValueId y, node.emit(node.proto().op_type() == "QLinearAdd" ? "add" : "mul", {a, b}));
  return quantize(node, y, node.in(6), node.in(7));
}

/// Operators of one quantised operand. Inputs: x, its scale and zero point, y's.
Status map_q_linear_unary(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(4));
  PINNACE_TRY(refuse_channels_last(node));
  const std::string op = snake_case(node.proto().op_type().substr(7));  // without "QLinear"
  PINNACE_ASSIGN(const ValueId x, dequantize(node, node.in(0), node.in(1), node.in(2), 1));
  std::vector<ValueId> inputs = {x};
  PINNACE_ASSIGN(const OpDef* def, node.find(op));
  PINNACE_ASSIGN(Attrs attrs, convert_attributes(node, *def, {"channels_last", "axes", "opset"}));
  if (op == "reduce_mean") {
    PINNACE_ASSIGN(const std::vector<int64_t> axes, node.ints_attr("axes"));
    PINNACE_ASSIGN(const ValueId over, node.constant_ints(axes));
    inputs.push_back(over);
  }
  if (op == "leaky_relu" && !node.attr("alpha")) attrs.emplace_back("alpha", 0.01);
  if (op == "softmax") {
    PINNACE_ASSIGN(const int64_t opset, node.int_attr("opset", 13));
    PINNACE_ASSIGN(const int64_t axis, node.int_attr("axis", -1));
    const int64_t rank = node.in_type(0).rank();
    if (opset < 13 && axis != -1 && axis != rank - 1) {
      return refuse("softmax over several dimensions at once", str_cat("axis ", axis, " of opset ", opset));
    }
  }
  PINNACE_ASSIGN(const ValueId y, node.emit(op, std::move(inputs), std::move(attrs)));
  return quantize(node, y, node.in(3), node.in(4));
}

/// Inputs: y's scale and zero point, then each part with its.
Status map_q_linear_concat(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(5));
  if ((node.input_count() - 2) % 3 != 0) return refuse("inputs must come in threes", str_cat(node.input_count() - 2));
  std::vector<ValueId> parts;
  for (int i = 2; i < node.input_count(); i += 3) {
    PINNACE_ASSIGN(const ValueId part, dequantize(node, node.in(i), node.in(i + 1), node.in(i + 2), 1));
    parts.push_back(part);
  }
  PINNACE_ASSIGN(const OpDef* concat, node.find("concat"));
  PINNACE_ASSIGN(Attrs attrs, convert_attributes(node, *concat));
  PINNACE_ASSIGN(const ValueId y, node.emit("concat", std::move(parts), std::move(attrs)));
  return quantize(node, y, node.in(0), node.in(1));
}

/// Inputs: condition, x, its scale and zero point, y and its, the result's.
Status map_q_linear_where(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(9));
  PINNACE_ASSIGN(const ValueId x, dequantize(node, node.in(1), node.in(2), node.in(3), 1));
  PINNACE_ASSIGN(const ValueId y, dequantize(node, node.in(4), node.in(5), node.in(6), 1));
  PINNACE_ASSIGN(const ValueId z, node.emit("where", {node.in(0), x, y}));
  return quantize(node, z, node.in(7), node.in(8));
}

}  // namespace pinnace::onnx
