// Splits of matrix products: by batches, rows, columns.
#include "backends/gpu/matmul/params.h"
#include "backends/gpu/matmul/product.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

using P = GemmParams;
// Floats and bytes are split alike: their push constants differ in what follows the first matrix.
static_assert(offsetof(P, first_batch) == offsetof(Int8GemmParams, first_batch) && sizeof(P) == sizeof(Int8GemmParams));

/// What kernels of products differ in. b by columns: `packed` of four, else single ones; numbers: bytes that four
/// columns have besides, 0 for none.
struct ProductForm {
  int64_t bytes;
  bool packed, bias;
  int64_t packed_bytes, numbers;
  bool split;  ///< gemm_split's groups
};

/// A product; y is the last binding.
struct ProductStep : ProductForm {
  ProductStep(const Splitter& c, const ProductForm& form)
      : ProductForm(form), params(c.params<P>()), tile(product_tile(c.step().kernel.id)), batch(c.groups(2)) {}

  /// Elements from the first to behind the last of so many rows (or columns) of K.
  int64_t reach(int64_t rows, int64_t row, int64_t col) const {
    return std::max<int64_t>(0, rows - 1) * row + std::max<int64_t>(0, params.K - 1) * col + 1;
  }
  std::vector<UnitWindow> windows(UnitWindow a, UnitWindow b, UnitWindow c, UnitWindow of_numbers, UnitWindow y) const {
    std::vector<UnitWindow> all = {a, b, bias ? c : kUnread};
    if (numbers) all.push_back(of_numbers);
    all.push_back(y);
    return all;
  }
  StridedRegion matrix(int64_t from, int64_t rows, int64_t row, int64_t columns, int64_t col) const {
    return {from * bytes, bytes, {1, 1, 1, 1, rows, columns}, {0, 0, 0, 0, row * bytes, col * bytes}};
  }
  size_t result() const { return numbers ? 4 : 3; }
  int64_t blocks() const { return (params.N + 3) / 4; }
  /// Columns [4 * first, 4 * (first + n)), of which the last block may be less.
  int64_t columns(int64_t first, int64_t n) const { return std::min(4 * n, params.N - 4 * first); }
  void set_rows(Step& s, int64_t n) const {
    s.params<P>().M = n;
    s.groups[split ? 0 : 1] = groups_of(n, tile.rows);
  }
  void set_columns(Step& s, int64_t n) const {
    s.params<P>().N = n;
    s.groups[split ? 1 : 0] = groups_of(n, tile.columns);
  }

  P params;
  ProductTile tile;
  int64_t batch;
};

/// Matrices that lie evenly, or as many of them as share an outer index.
void split_batches(Splitter& c, const ProductStep& v) {
  const P& p = v.params;
  const int64_t inner = p.inner, first_batch = p.first_batch;
  const bool one = first_batch + v.batch <= inner, outers = inner == 1;
  const bool even = one || outers || (p.a_outer == p.a_inner * inner && p.b_outer == p.b_inner * inner);
  const int64_t each = even ? 1 : inner;
  const int64_t a_step = even && !outers ? p.a_inner : p.a_outer, b_step = even && !outers ? p.b_inner : p.b_outer;
  if (first_batch % each != 0 || v.batch % each != 0) return;
  const int64_t a_all = v.reach(p.M, p.a_row, p.a_col) + (each - 1) * p.a_inner;
  const int64_t b_all = v.packed ? 0 : v.reach(p.N, p.b_col, p.b_row) + (each - 1) * p.b_inner;
  const int64_t skipped = first_batch / each, units = v.batch / each;
  const int64_t y_step = each * p.M * p.N * v.bytes;
  std::vector<UnitWindow> all =
      v.windows({a_step * v.bytes, a_all * v.bytes}, v.packed ? kWhole : UnitWindow{b_step * v.bytes, b_all * v.bytes},
                kWhole, kWhole, {y_step, y_step});
  Split batches{units, {}};
  batches.take = [=](SubDispatch& s, int64_t first, int64_t n) {
    for (size_t b = 0; b < all.size(); ++b) {
      const UnitWindow& w = all[b];
      if (w.reach) narrow(s, b, w.step ? (skipped + first) * w.step : 0, (n - 1) * w.step + w.reach);
      s.views[b].own = w.step == w.reach;
    }
    s.params<P>().first_batch = 0;
    planes_in_z(s, n * each);
  };
  if (units > 1) c.all.push_back(std::move(batches));
}

/// Rows of one matrix, and where it has one row, its columns.
void split_lines(Splitter& c, const ProductStep& v) {
  const P& p = v.params;
  const int64_t b = v.bytes, c_row = p.c_row, c_col = p.c_col;
  c.add(p.M,
        v.windows({p.a_row * b, v.reach(1, p.a_row, p.a_col) * b}, kWhole,
                  c_row ? UnitWindow{c_row * b, ((p.N - 1) * c_col + 1) * b} : kWhole, kWhole, run(p.N * b)),
        [v](Step& s, int64_t, int64_t n) { v.set_rows(s, n); });
  if (p.M != 1) return;
  const UnitWindow four =
      v.packed ? run(p.K * v.packed_bytes) : UnitWindow{4 * p.b_col * b, v.reach(4, p.b_col, p.b_row) * b};
  c.add(v.blocks(), v.windows(kWhole, four, c_col ? run(4 * c_col * b) : kWhole, run(v.numbers), run(4 * b)),
        [v](Step& s, int64_t first, int64_t n) { v.set_columns(s, v.columns(first, n)); });
}

/// Rows of a matrix that lies by columns.
void split_rows_by_copies(Splitter& c, const ProductStep& v) {
  if (v.params.a_col <= 1) return;
  c.add_copies(v.params.M, [v](SubDispatch& s, int64_t first, int64_t n) {
    const P& p = v.params;
    copy_region(s, 0, v.matrix(first * p.a_row, n, p.a_row, p.K, p.a_col));
    s.params<P>().a_row = p.K;
    s.params<P>().a_col = 1;
    if (v.bias && p.c_row) {
      narrow(s, 2, first * p.c_row * v.bytes, ((n - 1) * p.c_row + (p.N - 1) * p.c_col + 1) * v.bytes);
    }
    narrow(s, v.result(), first * p.N * v.bytes, n * p.N * v.bytes);
    s.views[v.result()].own = true;
    v.set_rows(s, n);
  });
}

/// Columns of several rows.
void split_columns_by_copies(Splitter& c, const ProductStep& v) {
  c.add_copies(v.blocks(), [v](SubDispatch& s, int64_t first, int64_t n) {
    const P& p = v.params;
    const int64_t columns = v.columns(first, n), from = 4 * first, c_row = p.c_row, c_col = p.c_col;
    P& own = s.params<P>();
    if (v.packed) {
      narrow(s, 1, first * p.K * v.packed_bytes, n * p.K * v.packed_bytes);
    } else {
      copy_region(s, 1, v.matrix(from * p.b_col, p.K, p.b_row, columns, p.b_col));
      own.b_row = columns;
      own.b_col = 1;
    }
    if (v.bias && c_row && c_col) {
      copy_region(s, 2, v.matrix(from * c_col, p.M, c_row, columns, c_col));
      own.c_row = columns;
      own.c_col = 1;
    } else if (v.bias && c_col) {
      narrow(s, 2, from * c_col * v.bytes, ((columns - 1) * c_col + 1) * v.bytes);
    }
    if (v.numbers) narrow(s, 3, first * v.numbers, n * v.numbers);
    copy_region(s, v.result(), v.matrix(from, p.M, p.N, columns, 1));
    v.set_columns(s, columns);
  });
}

void split_product(Splitter& c, const ProductForm& form) {
  const ProductStep v(c, form);
  if (v.batch > 1 || v.params.first_batch > 0) return split_batches(c, v);
  split_lines(c, v);
  split_rows_by_copies(c, v);
  split_columns_by_copies(c, v);
}

using I = GemmInt32Params;

void split_int32_batches(Splitter& c, const I& p, bool packed, bool za, bool zb) {
  const int64_t inner = p.inner, batch = c.groups(2);
  if (inner != 1 && inner < batch) return;
  const auto window = [&](bool read, int64_t of_outer, int64_t of_inner, int64_t reach) {
    const int64_t step = (inner == 1 ? of_outer : of_inner) * 4;
    return !read ? kUnread : step == 0 ? kWhole : UnitWindow{step, reach};
  };
  const int64_t a_line = ((p.K - 1) * p.a_col + 1) * 4;
  c.add(batch,
        {window(true, p.a_outer, p.a_inner, (p.M - 1) * p.a_row * 4 + a_line),
         packed ? kWhole : window(true, p.b_outer, p.b_inner, ((p.K - 1) * p.b_row + (p.N - 1) * p.b_col + 1) * 4),
         window(za, p.za_outer, p.za_inner, ((std::min<int64_t>(p.M, p.za_rows) - 1) * p.za_row + 1) * 4),
         window(zb, p.zb_outer, p.zb_inner, ((p.N - 1) * p.zb_col + 1) * 4), run(p.M * p.N * 4)},
        [](Step& s, int64_t, int64_t n) { planes_in_z(s, n); });
}

}  // namespace

void split_int8_gemm(Splitter& c) {
  const auto constants = c.constants<Int8GemmConstants>();
  split_product(c, {4, constants.PACKED == 1, constants.BIAS == 1, 4, 32, false});
}

void split_gemm(Splitter& c) {
  split_product(c, {c.element(), false, c.constants<GemmConstants>().BIAS == 1, 0, 0, false});
}

void split_gemm_packed(Splitter& c) {
  split_product(c, {c.element(), true, c.constants<GemmConstants>().BIAS == 1, c.vector(), 0, false});
}

void split_gemm_split(Splitter& c) {
  split_product(c, {c.element(), true, c.constants<GemmConstants>().BIAS == 1, c.vector(), 0, true});
}

void split_gemm_int32(Splitter& c) {
  const I p = c.params<I>();
  const auto constants = c.constants<GemmInt32Constants>();
  const bool packed = constants.PACKED == 1, za = (constants.ZEROS & 1) != 0, zb = (constants.ZEROS & 2) != 0;
  if (c.groups(2) > 1) return split_int32_batches(c, p, packed, za, zb);
  const bool alike = !za || p.za_row == 0 || p.za_rows == 1;  // one zero point for all rows
  if (alike || p.za_rows >= p.M) {
    const UnitWindow zeros = !za ? kUnread : alike ? kWhole : UnitWindow{p.za_row * 4, 4};
    c.add(p.M, {{p.a_row * 4, ((p.K - 1) * p.a_col + 1) * 4}, kWhole, zeros, zb ? kWhole : kUnread, run(p.N * 4)},
          [](Step& s, int64_t, int64_t n) {
            s.params<I>().M = n;
            s.groups[1] = groups_of(n, 16);
          });
  }
  c.add_copies((p.N + 3) / 4, [=](SubDispatch& s, int64_t first, int64_t n) {
    const int64_t columns = std::min(4 * n, p.N - 4 * first), from = 4 * first;
    I& own = s.params<I>();
    if (packed) {
      narrow(s, 1, first * p.K * 4, n * p.K * 4);
    } else {
      copy_region(s, 1, {from * p.b_col * 4, 4, {1, 1, 1, 1, p.K, columns}, {0, 0, 0, 0, p.b_row * 4, p.b_col * 4}});
      own.b_row = columns;
      own.b_col = 1;
    }
    if (!za) narrow(s, 2, 0, kUnread.reach);
    narrow(s, 3, zb ? from * p.zb_col * 4 : 0, zb ? ((columns - 1) * p.zb_col + 1) * 4 : kUnread.reach);
    copy_region(s, 4, from * 4, p.M, p.N * 4, columns * 4);
    own.N = columns;
    s.groups[0] = groups_of(columns, 64);
  });
}

}  // namespace pinnace::gpu::splitting
