// A target whose inputs are texts includes this, once: its inputs are changed and crossed as texts.
#pragma once

#include "fuzz/fuzzing.h"
#include "fuzz/text_mutator.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return pinnace::fuzz::mutate_text(data, size, max_size, seed);
}
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  return pinnace::fuzz::cross_texts(a, a_size, b, b_size, out, max_size, seed);
}
