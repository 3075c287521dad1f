// Copies between strided regions, and one element everywhere.
#pragma once

#include "backends/gpu/strided.h"

namespace pinnace::gpu {

/// A region of up to six dimensions and how it lies on both sides; strides in elements.
struct Region {
  Six size, from_stride{}, to_stride{};
  int64_t from = 0, to = 0;
  Region() { size.fill(1); }
  int64_t count() const {
    int64_t all = 1;
    for (int64_t n : size) all *= n;
    return all;
  }
};

/// All of a dense result; how it lies on the other side is the caller's to say.
Region whole_region(const Shape& shape);

void move_step(NodeLowering& n, DType type, TensorId x, TensorId y, const Region& r);

/// y = the element, in all of output 0: `real` of floats, else `whole`.
void fill_step(NodeLowering& n, TensorId y, double real, int64_t whole);

/// Refuses an input i of more dimensions than regions have.
Status check_region_rank(NodeLowering& n, int i);

}  // namespace pinnace::gpu
