// Whether two arrays count as equal, by the rules of docs/verification.md that need no source model: shape and type,
// integers, places of what is not finite, the whole and its slices.
#pragma once

#include <string>
#include <vector>

#include <pinnace/pinnace.h>

namespace pinnace::report {

struct Difference {
  bool equal = true;
  double largest = 0;            ///< absolute difference; infinite where there is none to be had
  double relative = 0;           ///< that relative to the largest magnitude of what was wanted
  std::vector<int64_t> element;  ///< where it is largest
  double got = 0, wanted = 0;    ///< what stands there
  std::string why;               ///< what is wrong; empty where nothing is
};

/// Judges `got` by `wanted`.
///
/// bound  largest difference of floats, relative to the largest magnitude of the whole; of a slice ten times as much of
///        its own magnitude, at most a tenth. Slices are every index of every axis, rows of the last axis, [n, c] maps;
///        at least eight elements each, of up to 64 elements each element. Integers and bools must be equal.
/// Elements of other types than floats of 16 bits and more, integers of 8 bits and more and bools are compared as
/// bytes.
Difference judge(const pnc_tensor& got, const pnc_tensor& wanted, double bound);

}  // namespace pinnace::report
