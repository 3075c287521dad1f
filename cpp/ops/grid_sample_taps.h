// How grid_sample places its samples: the elements that each is made of, and their weights.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/op.h"

namespace pinnace {

enum class GridMode : uint8_t { kNearest, kLinear, kCubic };
enum class GridPadding : uint8_t { kZeros, kBorder, kReflection };
struct GridSpec {
  GridMode mode;
  GridPadding padding;
  bool align;
  int taps() const { return mode == GridMode::kNearest ? 1 : mode == GridMode::kLinear ? 2 : 4; }
};

/// The attributes of a grid_sample node, or what is wrong with them.
Result<GridSpec> grid_sample_spec(const NodeView& node);

/// x mirrored at low and high as often as it takes.
template <class F>
F grid_reflect(F x, F low, F high) {
  const F span = high - low;
  if (!(span > 0)) return low;
  const F distance = std::abs(x - low), rest = std::fmod(distance, span);
  return std::fmod(std::floor(distance / span), F(2)) == 0 ? low + rest : high - rest;
}

/// The elements along one dimension that make up a sample, with their weights; outside ones have weight 0.
struct GridTaps {
  int count = 0;
  int64_t index[4] = {};
  double weight[4] = {};
};

inline void grid_cubic_weights(double t, double* w) {
  constexpr double a = -0.75;
  const auto inner = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto outer = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  w[0] = outer(t + 1);
  w[1] = inner(t);
  w[2] = inner(1 - t);
  w[3] = outer(2 - t);
}

/// Of a place in [-1, 1] along a dimension of that size; computed in float or double, as F is.
template <class F>
GridTaps grid_taps(const GridSpec& spec, F place, int64_t size) {
  const F n = static_cast<F>(size);
  F x = spec.align ? (place + 1) / 2 * (n - 1) : ((place + 1) * n - 1) / 2;
  if (spec.mode == GridMode::kNearest) x = std::nearbyint(x);  // the default mode is half to even
  const F low = spec.align ? F(0) : F(-0.5), high = spec.align ? n - 1 : n - F(0.5);
  if (spec.padding != GridPadding::kZeros) {
    // Cubic samples near the edge mix it with the inside, so only what is so far out that all of it is edge moves.
    const F margin = spec.mode == GridMode::kCubic ? F(2) : F(0);
    if (x < low || x > high) {
      x = spec.padding == GridPadding::kBorder ? std::clamp(x, -margin, n - 1 + margin) : grid_reflect(x, low, high);
    }
    if (std::isnan(x)) x = 0;
  }
  GridTaps taps;
  taps.count = spec.taps();
  if (!(x > -4 && x < n + 4)) return taps;  // far outside, or NaN: only zeros
  const F floor = spec.mode == GridMode::kNearest ? std::nearbyint(x) : std::floor(x);
  const double t = static_cast<double>(x) - static_cast<double>(floor);
  if (spec.mode == GridMode::kNearest) taps.weight[0] = 1;
  if (spec.mode == GridMode::kLinear) {
    taps.weight[0] = 1 - t;
    taps.weight[1] = t;
  }
  if (spec.mode == GridMode::kCubic) grid_cubic_weights(t, taps.weight);
  const auto first = static_cast<int64_t>(floor) - (spec.mode == GridMode::kCubic ? 1 : 0);
  for (int k = 0; k < taps.count; ++k) {
    const int64_t at = first + k;
    taps.index[k] = std::clamp<int64_t>(at, 0, size - 1);
    if (at == taps.index[k] || spec.padding == GridPadding::kBorder) continue;
    if (spec.padding == GridPadding::kZeros) {
      taps.weight[k] = 0;
    } else {
      const F mirrored = grid_reflect(static_cast<F>(at), low, high);
      taps.index[k] = std::clamp<int64_t>(static_cast<int64_t>(mirrored), 0, size - 1);
    }
  }
  return taps;
}

}  // namespace pinnace
