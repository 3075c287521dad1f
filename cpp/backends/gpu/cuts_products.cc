// Cuts of products and attention: batches, rows, columns. See gemm.comp and attention.comp for what words mean.
#include "backends/gpu/cut_walks.h"
#include "backends/gpu/lower/product.h"

namespace pinnace::gpu::cut {

void product(Cuts& c, const ProductForm& v) {
  const int64_t M = c.word(0), N = c.word(1), K = c.word(2), inner = c.word(9), first_batch = c.word(14);
  const int64_t a_row = c.word(3), a_col = c.word(4), b_row = c.word(5), b_col = c.word(6);
  const int64_t a_outer = c.word(10), a_inner = c.word(11), b_outer = c.word(12), b_inner = c.word(13);
  const int64_t c_row = c.word(7), c_col = c.word(8), batch = c.groups(2);
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
    cut.take = [=](Part& s, int64_t first, int64_t n) {
      for (size_t b = 0; b < all.size(); ++b) {
        const Walk& w = all[b];
        if (w.reach) narrow(s, b, w.step ? (skipped + first) * w.step : 0, (n - 1) * w.step + w.reach);
        s.views[b].own = w.step == w.reach;
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
  if (M == 1) {
    const Walk b = v.packed ? run(K * v.packed_bytes) : Walk{4 * b_col * v.bytes, reach(4, b_col, b_row) * v.bytes};
    c.add((N + 3) / 4,
          walks(kWhole, b, c.word(8) ? run(4 * c.word(8) * v.bytes) : kWhole, run(v.numbers), run(4 * v.bytes)),
          [=](Step& s, int64_t first, int64_t n) {
            const int64_t columns = std::min(4 * n, N - 4 * first);
            put(s, 1, columns);
            s.groups[across] = groups_of(columns, tile.columns);
          });
  }
  // Columns of several rows, and matrices whose rows do not follow each other, by copies.
  const size_t result = v.numbers ? 4 : 3;
  const auto matrix = [bytes = v.bytes](int64_t from, int64_t rows, int64_t row, int64_t columns, int64_t column) {
    return Strip{from * bytes, bytes, {1, 1, 1, 1, rows, columns}, {0, 0, 0, 0, row * bytes, column * bytes}};
  };
  if (a_col > 1) {
    c.add_strips(M, [=](Part& p, int64_t first, int64_t n) {
      strip(p, 0, matrix(first * a_row, n, a_row, K, a_col));
      put(p, 3, K);
      put(p, 4, 1);
      if (v.bias && c_row) narrow(p, 2, first * c_row * v.bytes, ((n - 1) * c_row + (N - 1) * c_col + 1) * v.bytes);
      narrow(p, result, first * N * v.bytes, n * N * v.bytes);
      p.views[result].own = true;
      put(p, 0, n);
      p.groups[down] = groups_of(n, tile.rows);
    });
  }
  c.add_strips((N + 3) / 4, [=](Part& p, int64_t first, int64_t n) {
    const int64_t columns = std::min(4 * n, N - 4 * first), from = 4 * first;
    if (v.packed) {
      narrow(p, 1, first * K * v.packed_bytes, n * K * v.packed_bytes);
    } else {
      strip(p, 1, matrix(from * b_col, K, b_row, columns, b_col));
      put(p, 5, columns);
      put(p, 6, 1);
    }
    if (v.bias && c_row && c_col) {
      strip(p, 2, matrix(from * c_col, M, c_row, columns, c_col));
      put(p, 7, columns);
      put(p, 8, 1);
    } else if (v.bias && c_col) {
      narrow(p, 2, from * c_col * v.bytes, ((columns - 1) * c_col + 1) * v.bytes);
    }
    if (v.numbers) narrow(p, 3, first * v.numbers, n * v.numbers);
    strip(p, result, matrix(from, M, N, columns, 1));
    put(p, 1, columns);
    p.groups[across] = groups_of(columns, tile.columns);
  });
}

void product_of_words(Cuts& c) {
  const int64_t M = c.word(0), N = c.word(1), K = c.word(2), a_row = c.word(3), a_col = c.word(4);
  const int64_t b_row = c.word(5), b_col = c.word(6), inner = c.word(7), batch = c.groups(2);
  const int64_t za_row = c.word(12), zb_col = c.word(15), za_rows = c.word(18);
  const bool packed = c.spec(0) == 1, za = (c.spec(1) & 1) != 0, zb = (c.spec(1) & 2) != 0;
  const int64_t a_line = ((K - 1) * a_col + 1) * 4;
  if (batch > 1) {
    if (inner != 1 && inner < batch) return;
    const auto step = [&](size_t outer) { return c.word(inner == 1 ? outer : outer + 1) * 4; };
    const auto walk = [&](bool read, size_t outer, int64_t reach) {
      return !read ? kUnread : step(outer) == 0 ? kWhole : Walk{step(outer), reach};
    };
    c.add(batch,
          {walk(true, 8, (M - 1) * a_row * 4 + a_line),
           packed ? kWhole : walk(true, 10, ((K - 1) * b_row + (N - 1) * b_col + 1) * 4),
           walk(za, 13, ((std::min(M, za_rows) - 1) * za_row + 1) * 4), walk(zb, 16, ((N - 1) * zb_col + 1) * 4),
           run(M * N * 4)},
          [](Step& s, int64_t, int64_t n) { planes_in_z(s, n); });
    return;
  }
  const bool alike = !za || za_row == 0 || za_rows == 1;  // one zero point for all rows
  if (alike || za_rows >= M) {
    const Walk rows = !za ? kUnread : alike ? kWhole : Walk{za_row * 4, 4};
    c.add(M, {{a_row * 4, a_line}, kWhole, rows, zb ? kWhole : kUnread, run(N * 4)}, [](Step& s, int64_t, int64_t n) {
      put(s, 0, n);
      s.groups[1] = groups_of(n, 16);
    });
  }
  c.add_strips((N + 3) / 4, [=](Part& p, int64_t first, int64_t n) {
    const int64_t columns = std::min(4 * n, N - 4 * first), from = 4 * first;
    if (packed) {
      narrow(p, 1, first * K * 4, n * K * 4);
    } else {
      strip(p, 1, {from * b_col * 4, 4, {1, 1, 1, 1, K, columns}, {0, 0, 0, 0, b_row * 4, b_col * 4}});
      put(p, 5, columns);
      put(p, 6, 1);
    }
    if (!za) narrow(p, 2, 0, kUnread.reach);
    narrow(p, 3, zb ? from * zb_col * 4 : 0, zb ? ((columns - 1) * zb_col + 1) * 4 : kUnread.reach);
    strip(p, 4, from * 4, M, N * 4, columns * 4);
    put(p, 1, columns);
    p.groups[0] = groups_of(columns, 64);
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
  const auto mask_reach = [head = c.word(22), query = c.word(23), size = c.word(24), mask_bytes](int64_t of_heads,
                                                                                                 int64_t queries) {
    return ((of_heads - 1) * head + (queries - 1) * query + size) * mask_bytes;
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
  const auto queries = [=](Step& s, int64_t first, int64_t n) {
    put(s, 0, std::min(16 * n, Sq - 16 * first));
    put(s, 7, get(s, 7) - 16 * first);  // how far a query sees, of queries that count anew
    put(s, 8, get(s, 8) + 16 * first);
    s.groups[0] = static_cast<uint32_t>(n);
  };
  const Walk masks{c.word(23) * 16 * mask_bytes, mask_reach(heads, 16)};
  c.add((Sq + 15) / 16, walks(some(q), kWhole, kWhole, masks, some(y)), queries);
  // The same by copies, where heads or tokens lie apart.
  const int64_t kind = c.spec(0);
  const auto copy = [bytes](Part& p, size_t b, const Operand& o, int64_t head, int64_t of_heads, int64_t token,
                            int64_t tokens) {
    const int64_t apart = get(p, o.strides + 1) * bytes, next = get(p, o.strides + 2) * bytes;
    strip(p, b,
          {head * apart + token * next, bytes, {1, 1, 1, of_heads, tokens, o.width}, {0, 0, 0, apart, next, bytes}});
    put(p, o.strides + 1, tokens * o.width);
    put(p, o.strides + 2, o.width);
  };
  c.add_strips(heads / shared_by, [=](Part& p, int64_t first, int64_t n) {
    copy(p, 0, q, first * shared_by, n * shared_by, 0, Sq);
    copy(p, 1, k, first, n, 0, Sk);
    copy(p, 2, v, first, n, 0, Sk);
    copy(p, 5, y, first * shared_by, n * shared_by, 0, Sq);
    if (kind != 0) {
      narrow(p, kind == 1 ? 3 : 4, first * shared_by * get(p, 22) * mask_bytes, mask_reach(n * shared_by, Sq));
    }
    put(p, 4, n * shared_by);
    p.groups[1] = static_cast<uint32_t>(n * shared_by * chunks);
  });
  c.add_strips((Sq + 15) / 16, [=](Part& p, int64_t first, int64_t n) {
    const int64_t token = 16 * first, tokens = std::min(16 * n, Sq - token);
    copy(p, 0, q, 0, heads, token, tokens);
    copy(p, 5, y, 0, heads, token, tokens);
    if (kind != 0) narrow(p, kind == 1 ? 3 : 4, token * get(p, 23) * mask_bytes, mask_reach(heads, tokens));
    queries(p, first, n);
  });
}

}  // namespace pinnace::gpu::cut
