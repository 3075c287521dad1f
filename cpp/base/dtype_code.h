// Short names of element types: those of the text form of graphs ("f32[2,3]") and of attributes that name a type.
// Messages have the long ones, dtype_name().
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pinnace/tensor.h>

namespace pinnace {

/// "f32", "bf16", "i8", "bool", "f8e4m3fn", …
std::string_view dtype_code(DType dtype);
/// The inverse of dtype_code; nothing if there is no such code.
std::optional<DType> dtype_from_code(std::string_view code);
/// A type without symbols in the text form: "f32[2,3,?]", "i8[4]{scale 0.5, zero 3}".
std::string type_code(const TensorType& type);

}  // namespace pinnace
