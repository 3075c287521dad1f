// Cases are data: what an operator is run on, with what attributes, what must come out or how close kernels must be.
// parity.cc runs every case through the reference and every kernel that lists the operator.
#pragma once

#include <span>

namespace pinnace::testing {

/// |got - want| <= abs + rel * (largest magnitude of want). Both 0: equal bits (NaN equals NaN).
struct Tolerance {
  float abs = 0;
  float rel = 0;
};

/// One call of an operator.
struct Case {
  /// Inputs separated by ';': "f32[2,3]" normal values; "f32[2,3] x1e4" scaled; "f32[4] in -3..3" uniform;
  /// "i64{1,-1}", "f32[2,2]{1,nan,-0,inf}", "i64[]{5}", "bool{1,0}" literal; "f32 0.5" is a scalar literal shorthand for
  /// "f32[]{0.5}"; "none" left out; "i8[2,3]{scale 0.5, zero 3}" a quantised type with random contents, "u8[3]{scale
  /// 0.1, zero 128}{1,2,3}" with these.
  const char* inputs;
  /// Attributes as in the graph's text form: "axis=-1, mode=\"linear\", pads=[1,1]". Empty: all defaults.
  const char* attributes = "";
  /// How many outputs the node has.
  int outputs = 1;
  /// What the reference must give, as in `inputs` separated by ';' ("f32[2]{1,2}"); "type f32[2,?]" checks only the type;
  /// "error TEXT": it must fail with a sentence that contains TEXT. Empty: only the shape rule and the kernels are held
  /// against the reference; the reference itself is held against other libraries from Python.
  const char* expect = "";
  /// For kernels against the reference, and for the reference against `expect`.
  Tolerance tolerance = {};
  /// Declared quantisation of output 0: "scale 0.5, zero 3". Empty: none.
  const char* output_quantization = "";
  /// Why the case is there and where its bound comes from.
  const char* why = "";
};

struct CaseList {
  const char* op;
  std::span<const Case> cases;
};

/// constexpr Case kCases[] = { {…}, {…} }; PINNACE_CASES(softmax, kCases) defines softmax_cases(), which ops.inc makes the
/// test program need: an operator without cases does not link.
#define PINNACE_CASES(op, list) \
  CaseList op##_cases() { return {#op, list}; }

}  // namespace pinnace::testing
