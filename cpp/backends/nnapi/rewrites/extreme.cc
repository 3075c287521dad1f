// max and min: MAXIMUM and MINIMUM from feature level 3 on. Below, floats and a constant b: max(a, b) = b + relu(a -
// b), min(a, b) = b - relu(b - a): two roundings, within 2^-23 (|a| + |b|) of the exact result.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"

namespace pinnace::nnapi_client {

Status extreme(NodeLowering& n, bool larger, OperandId a, OperandId b, OperandId y) {
  if (n.feature_level() >= 3) return n.add(larger ? Op::MAXIMUM : Op::MINIMUM, {a, b}, y);
  if (quantized_type(n.operand(y).type))
    return n.refuse(Rule::kFeatureLevel, "quantised max and min need feature level 3");
  n.rewritten("max and min by relu");
  Chain c{n, y};
  const OperandId part = c.relu(larger ? c.sub(a, b) : c.sub(b, a));
  if (larger) {
    c.add(b, part, y);
  } else {
    c.sub(b, part, y);
  }
  return c.status;
}

}  // namespace pinnace::nnapi_client
