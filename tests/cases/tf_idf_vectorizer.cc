// Cases of tf_idf_vectorizer: lengths, skips, weights, refusals.
#include "cases/case.h"

#define POOL "ngram_counts=[0,4], ngram_indexes=[0,1,2,3,4,5,6], pool_int64s=[2,3,5,4,5,6,7,8,6,7], mode=\"TF\", "

namespace pinnace::testing {
constexpr Case kCases[] = {
    {.inputs = "i32{1,1,3,3,3,7,8,6,7,5,6,8}",
     .attributes = POOL "min_gram_length=2, max_gram_length=2, max_skip_count=0", .expect = "f32{0,0,0,0,1,1,1}",
     .why = "pairs of neighbours"},
    {.inputs = "i64[2,6]{1,1,3,3,3,7,8,6,7,5,6,8}",
     .attributes = POOL "min_gram_length=2, max_gram_length=2, max_skip_count=5",
     .expect = "f32[2,7]{0,0,0,0,0,0,0,0,0,0,0,1,1,1}", .why = "rows on their own, with skips"},
    {.inputs = "i32{1,1,3,3,3,7,8,6,7,5,6,8}",
     .attributes = POOL "min_gram_length=1, max_gram_length=2, max_skip_count=5", .expect = "f32{0,3,1,0,1,3,1}",
     .why = "single elements count once"},
    {.inputs = "i64[]{3}", .attributes = POOL "min_gram_length=1, max_gram_length=1, max_skip_count=0",
     .expect = "f32{0,1,0,0,0,0,0}", .why = "a scalar"},
    {.inputs = "i64[0]{}", .attributes = POOL "min_gram_length=1, max_gram_length=2, max_skip_count=9223372036854775807",
     .expect = "f32{0,0,0,0,0,0,0}", .why = "empty"},
    {.inputs = "i64{5,6,5,7}",
     .attributes = "ngram_counts=[0], ngram_indexes=[1,0,1], pool_int64s=[5,6,7], mode=\"TFIDF\", weights=[0.5,2.0,9.0], "
                   "min_gram_length=1, max_gram_length=1, max_skip_count=0",
     .expect = "f32{2,10}", .why = "two n-grams in one column, each with its weight"},
    {.inputs = "i64{5,6,5}",
     .attributes = "ngram_counts=[0], ngram_indexes=[0,1], pool_int64s=[5,6], mode=\"IDF\", weights=[0.5,2.0], "
                   "min_gram_length=1, max_gram_length=1, max_skip_count=0",
     .expect = "f32{0.5,2}", .why = "IDF"},
    {.inputs = "i64{5}",
     .attributes = "ngram_counts=[0], ngram_indexes=[0,1], pool_int64s=[5,5], mode=\"TF\", min_gram_length=1, "
                   "max_gram_length=1, max_skip_count=0",
     .expect = "f32{0,1}", .why = "twice in the pool"},
    {.inputs = "i64{5}", .attributes = POOL "min_gram_length=2, max_gram_length=1, max_skip_count=0",
     .expect = "error lengths of n-grams", .why = "lengths"},
    {.inputs = "i64{5}", .attributes = POOL "min_gram_length=1, max_gram_length=1, max_skip_count=-1",
     .expect = "error max_skip_count", .why = "skips"},
    {.inputs = "i64{5}",
     .attributes = "ngram_counts=[0,1], ngram_indexes=[0,1], pool_int64s=[5,5], mode=\"TF\", min_gram_length=1, "
                   "max_gram_length=2, max_skip_count=0",
     .expect = "error do not divide", .why = "half a pair"},
    {.inputs = "i64{5}",
     .attributes = "ngram_counts=[3], ngram_indexes=[0], pool_int64s=[5], mode=\"TF\", min_gram_length=1, "
                   "max_gram_length=2, max_skip_count=0",
     .expect = "error no part of the pool", .why = "beyond the pool"},
    {.inputs = "i64{5}",
     .attributes = "ngram_counts=[0], ngram_indexes=[0], pool_int64s=[5,6], mode=\"TF\", min_gram_length=1, "
                   "max_gram_length=2, max_skip_count=0",
     .expect = "error more n-grams", .why = "no column"},
    {.inputs = "i64{5}",
     .attributes = "ngram_counts=[0], ngram_indexes=[-1], pool_int64s=[5], mode=\"TF\", min_gram_length=1, "
                   "max_gram_length=2, max_skip_count=0",
     .expect = "error column -1", .why = "negative column"},
    {.inputs = "i64{5}",
     .attributes = "ngram_counts=[0], ngram_indexes=[3], pool_int64s=[5], mode=\"TF\", weights=[1.0,2.0], min_gram_length=1, "
                   "max_gram_length=2, max_skip_count=0",
     .expect = "error 2 weights", .why = "weights"},
    {.inputs = "i64{5}",
     .attributes = "ngram_counts=[0], ngram_indexes=[3], pool_int64s=[5], mode=\"FT\", min_gram_length=1, "
                   "max_gram_length=2, max_skip_count=0",
     .expect = "error must be TF", .why = "mode"},
    {.inputs = "i64[1,1,1]{5}", .attributes = POOL "min_gram_length=1, max_gram_length=1, max_skip_count=0",
     .expect = "error must be [C]", .why = "rank"},
};
PINNACE_CASES(tf_idf_vectorizer, kCases)
}  // namespace pinnace::testing
