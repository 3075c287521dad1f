// Splits of attention: by batches, heads that share keys, then queries by sixteen.
#include "backends/gpu/attention/params.h"
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu::splitting {
namespace {

using P = AttentionParams;
constexpr int64_t kQueries = 16;  // of a workgroup

/// Steps of an operand by batch, head and token, and how much of it there is.
struct Operand {
  Field batch, head, token;
  int64_t heads, tokens, width;
};

/// What the splits of a dispatch have in common.
struct Attention {
  explicit Attention(const Splitter& c)
      : bytes(c.element()),
        mask(c.constants<AttentionConstants>().MASK),
        mask_bytes(mask == 2 ? 4 : bytes),
        mask_head(c.params<P>().mask_head),
        mask_query(c.params<P>().mask_query),
        mask_size(c.params<P>().mask_size),
        chunks(c.params<P>().chunks),
        shared_by(c.params<P>().shared_by),
        heads(c.groups(1) / chunks),
        queries(c.params<P>().Sq) {
    const P& params = c.params<P>();
    const int64_t Sk = params.Sk, E = params.E, F = params.F;
    q = {PINNACE_FIELD(P, q_batch), PINNACE_FIELD(P, q_head), PINNACE_FIELD(P, q_token), heads, queries, E};
    k = {PINNACE_FIELD(P, k_batch), PINNACE_FIELD(P, k_head), PINNACE_FIELD(P, k_token), heads / shared_by, Sk, E};
    v = {PINNACE_FIELD(P, v_batch), PINNACE_FIELD(P, v_head), PINNACE_FIELD(P, v_token), heads / shared_by, Sk, F};
    y = {PINNACE_FIELD(P, y_batch), PINNACE_FIELD(P, y_head), PINNACE_FIELD(P, y_token), heads, queries, F};
  }

  int64_t reach(const Splitter& c, const Operand& o, int64_t of_heads, int64_t tokens) const {
    return (std::max<int64_t>(0, of_heads - 1) * c.get(o.head) + std::max<int64_t>(0, tokens - 1) * c.get(o.token) +
            o.width) *
           bytes;
  }
  int64_t mask_reach(int64_t of_heads, int64_t of_queries) const {
    return ((of_heads - 1) * mask_head + (of_queries - 1) * mask_query + mask_size) * mask_bytes;
  }
  std::vector<UnitWindow> windows(UnitWindow of_q, UnitWindow of_k, UnitWindow of_v, UnitWindow of_mask,
                                  UnitWindow of_y) const {
    return {of_q, of_k, of_v, mask == 1 ? of_mask : kUnread, mask == 2 ? of_mask : kUnread, of_y};
  }
  /// Heads [head, head + of_heads), tokens [token, token + tokens) of an operand become a dense copy.
  void copy(SubDispatch& p, size_t b, const Operand& o, int64_t head, int64_t of_heads, int64_t token,
            int64_t tokens) const {
    const int64_t apart = get(p, o.head) * bytes, next = get(p, o.token) * bytes;
    copy_region(
        p, b,
        {head * apart + token * next, bytes, {1, 1, 1, of_heads, tokens, o.width}, {0, 0, 0, apart, next, bytes}});
    set(p, o.head, tokens * o.width);
    set(p, o.token, o.width);
  }
  void narrow_mask(SubDispatch& p, int64_t from, int64_t of_heads, int64_t of_queries) const {
    if (mask != 0) narrow(p, mask == 1 ? 3 : 4, from * mask_bytes, mask_reach(of_heads, of_queries));
  }
  void set_heads(Step& s, int64_t n) const {
    s.params<P>().heads = n * shared_by;
    s.groups[1] = static_cast<uint32_t>(n * shared_by * chunks);
  }
  void set_queries(Step& s, int64_t first, int64_t n) const {
    P& params = s.params<P>();
    params.Sq = std::min(kQueries * n, queries - kQueries * first);
    params.left = params.left - kQueries * first;  // how far a query sees, of queries that count anew
    params.right = params.right + kQueries * first;
    s.groups[0] = static_cast<uint32_t>(n);
  }

  int64_t bytes, mask, mask_bytes, mask_head, mask_query, mask_size, chunks, shared_by, heads, queries;
  Operand q{}, k{}, v{}, y{};
};

void split_batches(Splitter& c, const Attention& a) {
  const auto whole = [&](const Operand& o) {
    return UnitWindow{c.get(o.batch) * a.bytes, a.reach(c, o, o.heads, o.tokens)};
  };
  c.add(c.groups(2),
        a.windows(whole(a.q), whole(a.k), whole(a.v),
                  {c.params<P>().mask_batch * a.mask_bytes, a.mask_reach(a.heads, a.queries)}, whole(a.y)),
        [](Step& s, int64_t, int64_t n) { planes_in_z(s, n); });
}

void split_heads(Splitter& c, const Attention& a) {
  const auto heads = [&](const Operand& o, int64_t each) {
    return UnitWindow{c.get(o.head) * each * a.bytes, a.reach(c, o, each, o.tokens)};
  };
  c.add(a.heads / a.shared_by,
        a.windows(heads(a.q, a.shared_by), heads(a.k, 1), heads(a.v, 1),
                  {a.mask_head * a.shared_by * a.mask_bytes, a.mask_reach(a.shared_by, a.queries)},
                  heads(a.y, a.shared_by)),
        [a](Step& s, int64_t, int64_t n) { a.set_heads(s, n); });
}

void split_queries(Splitter& c, const Attention& a) {
  const auto some = [&](const Operand& o) {
    return UnitWindow{c.get(o.token) * kQueries * a.bytes, a.reach(c, o, o.heads, kQueries)};
  };
  c.add((a.queries + kQueries - 1) / kQueries,
        a.windows(some(a.q), kWhole, kWhole, {a.mask_query * kQueries * a.mask_bytes, a.mask_reach(a.heads, kQueries)},
                  some(a.y)),
        [a](Step& s, int64_t first, int64_t n) { a.set_queries(s, first, n); });
}

/// The same by copies, where heads or tokens lie apart.
void split_by_copies(Splitter& c, const Attention& a) {
  c.add_copies(a.heads / a.shared_by, [a](SubDispatch& p, int64_t first, int64_t n) {
    a.copy(p, 0, a.q, first * a.shared_by, n * a.shared_by, 0, a.queries);
    a.copy(p, 1, a.k, first, n, 0, a.k.tokens);
    a.copy(p, 2, a.v, first, n, 0, a.v.tokens);
    a.copy(p, 5, a.y, first * a.shared_by, n * a.shared_by, 0, a.queries);
    a.narrow_mask(p, first * a.shared_by * a.mask_head, n * a.shared_by, a.queries);
    a.set_heads(p, n);
  });
  c.add_copies((a.queries + kQueries - 1) / kQueries, [a](SubDispatch& p, int64_t first, int64_t n) {
    const int64_t token = kQueries * first, tokens = std::min(kQueries * n, a.queries - token);
    a.copy(p, 0, a.q, 0, a.heads, token, tokens);
    a.copy(p, 5, a.y, 0, a.heads, token, tokens);
    a.narrow_mask(p, token * a.mask_query, a.heads, tokens);
    a.set_queries(p, first, n);
  });
}

}  // namespace

void split_attention(Splitter& c) {
  const Attention a(c);
  if (c.groups(2) > 1) return split_batches(c, a);
  split_heads(c, a);
  split_queries(c, a);
  split_by_copies(c, a);
}

}  // namespace pinnace::gpu::splitting
