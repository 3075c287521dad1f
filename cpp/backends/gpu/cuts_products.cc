// Cuts of products and attention: batches, rows, columns. See gemm.comp and attention.comp for what words mean.
#include "backends/gpu/cut_walks.h"
#include "backends/gpu/lower/product.h"

namespace pinnace::gpu::cut {

void product(Cuts& c, const ProductForm& v) {
  const int64_t M = c.word(0), N = c.word(1), K = c.word(2), inner = c.word(9), first_batch = c.word(14);
  const int64_t a_row = c.word(3), a_col = c.word(4), b_row = c.word(5), b_col = c.word(6);
  const int64_t a_outer = c.word(10), a_inner = c.word(11), b_outer = c.word(12), b_inner = c.word(13);
  const int64_t batch = c.groups(2);
  const auto reach = [&](int64_t rows, int64_t row, int64_t col) {
    return std::max<int64_t>(0, rows - 1) * row + std::max<int64_t>(0, K - 1) * col + 1;
  };
  const auto walks = [&](Walk a, Walk b, Walk bias, Walk numbers, Walk y) {
    std::vector<Walk> all = {a, b, v.bias ? bias : kUnread};
    if (v.numbers) all.push_back(numbers);
    all.push_back(y);
    return all;
  };
  if (batch > 1 || first_batch > 0) {
    // Matrices that lie evenly, or as many of them as share an outer index.
    const bool one = first_batch + batch <= inner, outers = inner == 1;
    const bool even = one || outers || (a_outer == a_inner * inner && b_outer == b_inner * inner);
    const int64_t each = even ? 1 : inner;
    const int64_t a_step = even && !outers ? a_inner : a_outer, b_step = even && !outers ? b_inner : b_outer;
    if (first_batch % each != 0 || batch % each != 0) return;
    const int64_t a_all = reach(M, a_row, a_col) + (each - 1) * a_inner;
    const int64_t b_all = v.packed ? 0 : reach(N, b_col, b_row) + (each - 1) * b_inner;
    const int64_t skipped = first_batch / each, units = batch / each;
    const int64_t y_step = each * M * N * v.bytes;
    std::vector<Walk> all =
        walks({a_step * v.bytes, a_all * v.bytes}, v.packed ? kWhole : Walk{b_step * v.bytes, b_all * v.bytes}, kWhole,
              kWhole, {y_step, y_step});
    Cut cut{units, {}};
    cut.take = [=](Step& s, int64_t first, int64_t n) {
      for (size_t b = 0; b < all.size(); ++b) {
        const Walk& w = all[b];
        if (w.reach) narrow(s, b, w.step ? (skipped + first) * w.step : 0, (n - 1) * w.step + w.reach);
      }
      put(s, 14, 0);
      planes_in_z(s, n * each);
    };
    if (units > 1) c.all.push_back(std::move(cut));
    return;
  }
  const size_t across = v.split ? 1 : 0, down = v.split ? 0 : 1;
  const ProductTile tile = product_tile(c.step().kernel.id);
  c.add(M,
        walks({a_row * v.bytes, reach(1, a_row, a_col) * v.bytes}, kWhole,
              c.word(7) ? Walk{c.word(7) * v.bytes, ((N - 1) * c.word(8) + 1) * v.bytes} : kWhole, kWhole,
              run(N * v.bytes)),
        [=](Step& s, int64_t, int64_t n) {
          put(s, 0, n);
          s.groups[down] = groups_of(n, tile.rows);
        });
  if (M > 1) return;  // columns of several rows are no window of y
  const Walk b = v.packed ? run(K * v.packed_bytes) : Walk{4 * b_col * v.bytes, reach(4, b_col, b_row) * v.bytes};
  c.add((N + 3) / 4,
        walks(kWhole, b, c.word(8) ? run(4 * c.word(8) * v.bytes) : kWhole, run(v.numbers), run(4 * v.bytes)),
        [=](Step& s, int64_t first, int64_t n) {
          const int64_t columns = std::min(4 * n, N - 4 * first);
          put(s, 1, columns);
          s.groups[across] = groups_of(columns, tile.columns);
        });
}

void attention(Cuts& c) {
  const int64_t Sq = c.word(0), Sk = c.word(1), E = c.word(2), F = c.word(3), shared_by = c.word(5), chunks = c.word(6);
  const int64_t heads = c.groups(1) / chunks, batches = c.groups(2), bytes = c.element();
  struct Operand {
    size_t strides;
    int64_t heads, tokens, width;
  };
  const Operand q{9, heads, Sq, E}, k{12, heads / shared_by, Sk, E}, v{15, heads / shared_by, Sk, F},
      y{18, heads, Sq, F};
  const auto reach = [&](const Operand& o, int64_t of_heads, int64_t tokens) {
    return (std::max<int64_t>(0, of_heads - 1) * c.word(o.strides + 1) +
            std::max<int64_t>(0, tokens - 1) * c.word(o.strides + 2) + o.width) *
           bytes;
  };
  const int64_t mask_bytes = c.spec(0) == 2 ? 4 : bytes;
  const auto mask_reach = [&](int64_t of_heads, int64_t queries) {
    return ((of_heads - 1) * c.word(22) + (queries - 1) * c.word(23) + c.word(24)) * mask_bytes;
  };
  const auto walks = [&](Walk of_q, Walk of_k, Walk of_v, Walk mask, Walk of_y) {
    const int64_t kind = c.spec(0);
    return std::vector<Walk>{of_q, of_k, of_v, kind == 1 ? mask : kUnread, kind == 2 ? mask : kUnread, of_y};
  };
  const auto whole = [&](const Operand& o, size_t by, int64_t each, int64_t of_heads) {
    return Walk{c.word(o.strides + by) * each * bytes, reach(o, of_heads, o.tokens)};
  };
  if (batches > 1) {
    c.add(batches,
          walks(whole(q, 0, 1, q.heads), whole(k, 0, 1, k.heads), whole(v, 0, 1, v.heads),
                {c.word(21) * mask_bytes, mask_reach(heads, Sq)}, whole(y, 0, 1, y.heads)),
          [](Step& s, int64_t, int64_t n) { planes_in_z(s, n); });
    return;
  }
  c.add(heads / shared_by,
        walks(whole(q, 1, shared_by, shared_by), whole(k, 1, 1, 1), whole(v, 1, 1, 1),
              {c.word(22) * shared_by * mask_bytes, mask_reach(shared_by, Sq)}, whole(y, 1, shared_by, shared_by)),
        [=](Step& s, int64_t, int64_t n) {
          put(s, 4, n * shared_by);
          s.groups[1] = static_cast<uint32_t>(n * shared_by * chunks);
        });
  const auto some = [&](const Operand& o) { return Walk{c.word(o.strides + 2) * 16 * bytes, reach(o, o.heads, 16)}; };
  c.add((Sq + 15) / 16, walks(some(q), kWhole, kWhole, {c.word(23) * 16 * mask_bytes, mask_reach(heads, 16)}, some(y)),
        [=](Step& s, int64_t first, int64_t n) {
          put(s, 0, std::min(16 * n, Sq - 16 * first));
          put(s, 7, get(s, 7) - 16 * first);  // how far a query sees, of queries that count anew
          put(s, 8, get(s, 8) + 16 * first);
          s.groups[0] = static_cast<uint32_t>(n);
        });
}

}  // namespace pinnace::gpu::cut
