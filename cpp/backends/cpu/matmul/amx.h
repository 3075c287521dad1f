// Matrix products on tile registers (AMX): what their two element types share, and how they are tested. Their bodies
// are compiled for the set itself and, over a model of the tiles in memory, for the baseline, so that every processor
// can check what they compute. Plain numbers only.
#pragma once

#include <cstdint>

namespace pinnace::cpu {

/// For tests: from now on products run on the model, on any processor; or on tiles again.
void model_tiles(bool modelled);
bool tiles_modelled();
/// For tests: the model's tiles become zero after each so many products of a thread; 0: never.
void lose_model_tiles(int64_t each);
/// Counts a product of this thread; true if tiles are to be lost now.
bool model_loses_tiles();

/// What a body calls where tiles turned out to be lost: a virtual machine may fail to save them. The log says so once.
void note_lost_tiles();
/// How often that was, in this process.
int64_t lost_tiles();

}  // namespace pinnace::cpu
