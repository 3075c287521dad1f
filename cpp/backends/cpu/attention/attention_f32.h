// What the kernels of attention share: its sizes, which nodes they take, its mask.
#pragma once

#include "backends/cpu/kernel.h"

namespace pinnace::cpu {

/// As the operator has them; steps between tokens and heads are in elements.
struct Heads {
  int64_t B, Hq, Hk, Sq, Sk, E, F;
  ptrdiff_t q_token, k_token, v_token, y_token;
  ptrdiff_t q_head, k_head, v_head, y_head;
};

Heads heads_of(const KernelNode& node);

/// Without a past, lengths, windows, softcap and further outputs, in float32.
bool attention_takes(const KernelNode& node);
float attention_scale(const KernelNode& node, const Heads& s);

/// A mask's row for a query, as numbers to add: -inf where a key takes no part.
struct Mask {
  const std::byte* data = nullptr;
  bool boolean = false;
  int64_t batch = 0, head = 0, token = 0;  ///< elements from one to the next, 0 where it broadcasts

  Mask(const TensorView& mask, int64_t Sk) : data(mask.bytes), boolean(mask.dtype() == DType::kBool) {
    int64_t* steps[] = {&token, &head, &batch};
    int64_t step = Sk;
    for (int d = mask.rank() - 2, i = 0; d >= 0; --d, ++i) {
      *steps[i] = mask.dim(d) == 1 ? 0 : step;
      step *= mask.dim(d);
    }
  }
  /// Of `count` keys from `key` on; in `room` where they have to be made.
  const float* row(int64_t b, int64_t h, int64_t i, int64_t key, int64_t count, float* room) const {
    const int64_t first = b * batch + h * head + i * token + key;
    if (!boolean) return reinterpret_cast<const float*>(data) + first;
    const auto* seen = reinterpret_cast<const uint8_t*>(data) + first;
    for (int64_t j = 0; j < count; ++j) room[j] = seen[j] ? 0.0f : -__builtin_inff();
    return room;
  }
};

}  // namespace pinnace::cpu
