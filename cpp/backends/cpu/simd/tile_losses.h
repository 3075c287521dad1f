// The model of tile registers (tiles.h) on a machine that fails to save them, as some virtual machines do. Defined with
// the products on tiles, in matmul/amx.cc.
#pragma once

#include <cstdint>

namespace pinnace::cpu {

/// For tests: the model's tiles become zero after each so many products of a thread; 0: never.
void lose_model_tiles(int64_t each);
/// Counts a product of this thread; true if its tiles are to be lost now.
bool model_loses_tiles();

}  // namespace pinnace::cpu
