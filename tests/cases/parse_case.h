// From a Case, which is text, to what a test runs: a node, its operator, inputs with contents, and what is expected.
// Random contents depend only on the seed, the operator and the case's place in its list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/case.h"
#include "ops/type_inference.h"

namespace pinnace::testing {

/// PINNACE_TEST_SEED of the environment, else a fixed number.
uint64_t test_seed();

/// A small generator that gives the same numbers with every standard library (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  double uniform(double low, double high);
  double normal();
  int64_t integer(int64_t low, int64_t high);  ///< both ends included

 private:
  uint64_t state_;
};

/// A concrete type and its contents; not present where an input is left out.
struct CaseTensor {
  bool present = true;
  TensorType type;
  ConstantPtr bytes;  ///< null where only the type is stated (`expect` "type …")
};

struct Expectation {
  bool error = false;
  std::string error_text;           ///< the sentence must contain this
  std::vector<CaseTensor> outputs;  ///< per output; empty: nothing is expected
};

struct BuiltCase {
  std::string op_name;
  const Case* source = nullptr;
  const OpDef* op = nullptr;
  Graph graph;  ///< inputs in order, one node, its outputs
  std::vector<CaseTensor> inputs;
  Expectation expect;

  const Node& node() const { return *graph.nodes[0]; }
  /// Views of the inputs; reference code and kernels only read them.
  std::vector<TensorView> input_views() const;
  /// Types that the graph states for the outputs.
  std::vector<const TensorType*> declared() const;
};

/// kInvalidArgument: the case itself is wrong; the sentence says where.
Result<BuiltCase> build_case(const char* op, const Case& source, uint64_t seed);

/// Contents drawn for a type: floats normal, integers small, quantised and 8-bit types over their whole range.
Result<ConstantPtr> random_contents(const TensorType& type, Random& random);

/// The type in the text form.
Result<TensorType> parse_type(std::string_view text);

/// Where `got` is not `want` within the tolerance, as a sentence; empty if nowhere. Types are compared first, with '?'
/// in `want` standing for any size. Without tolerance bits are compared, and NaN equals NaN.
std::string difference(const CaseTensor& want, const TensorView& got, const Tolerance& tolerance);

}  // namespace pinnace::testing
