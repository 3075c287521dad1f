// The operand types that every NNAPI operation takes, one form of each, written down here rather than read from the
// table.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "nnapi/operations.h"

namespace nnapi_forms {

using pinnace::nnapi::OperandCode;
using Types = std::vector<OperandCode>;

struct Form {
  Types in, out;
  bool operator<(const Form& other) const { return std::tie(in, out) < std::tie(other.in, other.out); }
};

/// In float32 where there is such a form. IF and WHILE, which take what their models take, are not among them.
inline std::map<std::string, Form> plain_forms() {
  using enum OperandCode;
  const auto F = kTensorFloat32, I = kTensorInt32, S = kInt32, B = kBool, f = kFloat32, b8 = kTensorBool8;
  const auto many = [](OperandCode type, size_t n) { return Types(n, type); };
  const auto join = [](std::initializer_list<Types> parts) {
    Types all;
    for (const Types& p : parts) all.insert(all.end(), p.begin(), p.end());
    return all;
  };
  std::map<std::string, Form> forms;
  for (const char* name : {"ABS", "EXP", "FLOOR", "HARD_SWISH", "LOG", "LOGISTIC", "NEG", "RELU", "RELU1", "RELU6",
                           "RSQRT", "SIN", "SQRT", "TANH", "L2_NORMALIZATION"}) {
    forms[name] = {{F}, {F}};
  }
  for (const char* name : {"ADD", "SUB", "MUL", "DIV"}) forms[name] = {{F, F, S}, {F}};
  for (const char* name : {"MAXIMUM", "MINIMUM", "POW", "PRELU"}) forms[name] = {{F, F}, {F}};
  for (const char* name : {"EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"}) {
    forms[name] = {{F, F}, {b8}};
  }
  for (const char* name : {"AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"}) {
    forms[name] = {join({{F}, many(S, 9), {B}}), {F}};
  }
  for (const char* name : {"REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_SUM"}) forms[name] = {{F, I, B}, {F}};
  for (const char* name : {"RESHAPE", "SQUEEZE", "TRANSPOSE", "PAD", "TILE", "REVERSE"}) forms[name] = {{F, I}, {F}};
  for (const char* name : {"DEPTH_TO_SPACE", "SPACE_TO_DEPTH"}) forms[name] = {{F, S, B}, {F}};
  for (const char* name : {"LOGICAL_AND", "LOGICAL_OR"}) forms[name] = {{b8, b8}, {b8}};
  for (const char* name : {"REDUCE_ALL", "REDUCE_ANY"}) forms[name] = {{b8, I, B}, {b8}};
  for (const char* name : {"ARGMAX", "ARGMIN"}) forms[name] = {{F, S}, {I}};
  forms["LOGICAL_NOT"] = {{b8}, {b8}};
  forms["BATCH_MATMUL"] = {{F, F, B, B}, {F}};
  forms["BATCH_TO_SPACE_ND"] = {{F, I, B}, {F}};
  forms["CAST"] = {{F}, {I}};
  forms["CHANNEL_SHUFFLE"] = {{F, S, S}, {F}};
  forms["CONCATENATION"] = {{F, F, S}, {F}};
  forms["CONV_2D"] = {join({many(F, 3), many(S, 7), {B, S, S}}), {F}};
  forms["DEPTHWISE_CONV_2D"] = {join({many(F, 3), many(S, 8), {B, S, S}}), {F}};
  forms["GROUPED_CONV_2D"] = {join({many(F, 3), many(S, 8), {B}}), {F}};
  forms["TRANSPOSE_CONV_2D"] = {join({many(F, 3), many(S, 7), {B}}), {F}};
  forms["DEQUANTIZE"] = {{kTensorQuant8Asymm}, {F}};
  forms["QUANTIZE"] = {{F}, {kTensorQuant8Asymm}};
  forms["ELU"] = {{F, f}, {F}};
  forms["EMBEDDING_LOOKUP"] = {{I, F}, {F}};
  forms["EXPAND_DIMS"] = {{F, S}, {F}};
  forms["FILL"] = {{I, f}, {F}};
  forms["FULLY_CONNECTED"] = {{F, F, F, S}, {F}};
  forms["GATHER"] = {{F, S, I}, {F}};
  forms["HASHTABLE_LOOKUP"] = {{I, I, F}, {F, kTensorQuant8Asymm}};
  forms["INSTANCE_NORMALIZATION"] = {{F, f, f, f, B}, {F}};
  forms["LOCAL_RESPONSE_NORMALIZATION"] = {{F, S, f, f, f, S}, {F}};
  forms["LOG_SOFTMAX"] = {{F, f, S}, {F}};
  forms["LSH_PROJECTION"] = {{F, F, F, S}, {I}};
  forms["LSTM"] = {join({many(F, 20), {S, f, f}, many(F, 4)}), many(F, 4)};
  forms["MEAN"] = {{F, I, S}, {F}};
  forms["MIRROR_PAD"] = {{F, I, S}, {F}};
  forms["PACK"] = {{S, F, F}, {F}};
  forms["PAD_V2"] = {{F, I, f}, {F}};
  forms["RANK"] = {{F}, {S}};
  forms["RESIZE_BILINEAR"] = {{F, S, S, B, B, B}, {F}};
  forms["RESIZE_NEAREST_NEIGHBOR"] = {{F, S, S, B, B, B}, {F}};
  forms["RNN"] = {join({many(F, 5), {S}}), {F, F}};
  forms["SELECT"] = {{b8, F, F}, {F}};
  forms["SLICE"] = {{F, I, I}, {F}};
  forms["SOFTMAX"] = {{F, f, S}, {F}};
  forms["SPACE_TO_BATCH_ND"] = {{F, I, I, B}, {F}};
  forms["SPLIT"] = {{F, S, S}, {F, F}};
  forms["STRIDED_SLICE"] = {{F, I, I, I, S, S, S}, {F}};
  forms["SVDF"] = {join({many(F, 5), {S, S}}), {F, F}};
  forms["TOPK_V2"] = {{F, S}, {F, I}};
  forms["AXIS_ALIGNED_BBOX_TRANSFORM"] = {{F, F, I, F}, {F}};
  forms["BIDIRECTIONAL_SEQUENCE_LSTM"] = {join({many(F, 48), {S, f, f, B, B}, many(F, 8)}), {F}};
  forms["BIDIRECTIONAL_SEQUENCE_RNN"] = {join({many(F, 12), {S, B, B}}), {F}};
  forms["UNIDIRECTIONAL_SEQUENCE_LSTM"] = {join({many(F, 20), {S, f, f, B}, many(F, 4)}), {F}};
  forms["UNIDIRECTIONAL_SEQUENCE_RNN"] = {join({many(F, 5), {S, S}}), {F}};
  forms["BOX_WITH_NMS_LIMIT"] = {{F, F, I, f, S, S, f, f, f}, {F, F, I, I}};
  forms["DETECTION_POSTPROCESSING"] = {{F, F, F, f, f, f, f, B, S, S, S, f, f, B}, {F, F, I, I}};
  forms["GENERATE_PROPOSALS"] = {{F, F, F, F, f, f, S, S, f, f, B}, {F, F, I}};
  forms["HEATMAP_MAX_KEYPOINT"] = {{F, F, B}, {F, F}};
  forms["RANDOM_MULTINOMIAL"] = {{F, S, I}, {I}};
  forms["ROI_ALIGN"] = {{F, F, I, S, S, f, f, S, S, B}, {F}};
  forms["ROI_POOLING"] = {{F, F, I, S, S, f, f, B}, {F}};
  const auto q8 = kTensorQuant8Asymm, q16s = kTensorQuant16Symm, q8y = kTensorQuant8Symm,
             q8s = kTensorQuant8AsymmSigned;
  forms["QUANTIZED_16BIT_LSTM"] = {join({many(q8, 9), many(I, 4), {q16s, q8}}), {q16s, q8}};
  forms["QUANTIZED_LSTM"] = {
      join({{q8s}, many(q8y, 8), many(q16s, 3), many(I, 4), {q8y, I, q8s}, many(q16s, 5), many(f, 6), {S, f}}),
      {q8s, q16s, q8s}};
  return forms;
}

}  // namespace nnapi_forms
