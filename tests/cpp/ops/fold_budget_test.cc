// What is computed before a run is bounded in work: estimates against the clock, and small files that ask for hours.
#include <gtest/gtest.h>
#include <pinnace/model.h>
#include <pinnace/session.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "cases/run_case.h"
#include "cpp/guarded.h"
#include "cpp/import/onnx_fixture.h"
#include "ops/work.h"
#include "program/program_data.h"

namespace pinnace::testing {
namespace {

// ----------------------------------------------------------------------------------------------------- estimates

struct Timed {
  double took = 0, estimate = 0;  ///< nanoseconds
};

Timed time_case(const char* op, const Case& source, size_t place) {
  const auto built = build_case(op, source, case_seed(op, place));
  EXPECT_TRUE(built.ok()) << op << ": " << built.status().message();
  if (!built.ok() || !built->op->reference) return {};
  const auto outputs = infer_case(*built);
  if (!outputs.ok()) return {};  // a case of an error
  std::vector<const TensorType*> types;
  for (const CaseTensor& t : built->inputs) types.push_back(t.present ? &t.type : nullptr);
  const NodeView view(built->node(), *built->op, types, {}, built->declared());
  Timed timed{INFINITY, reference_work(view, *outputs) + rule_work(view)};
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto ran = run_reference(built->node(), *built->op, built->input_views(), built->declared());
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    timed.took = std::min(timed.took, took.count());
  }
  return timed;
}

/// An estimate may be too small by this factor, of which a machine that is busy or slow takes a part, and by the cost
/// of a call.
constexpr double kSlack = 8, kSlackNanoseconds = 200e3;

TEST(ReferenceWork, CoversEveryCaseOfEveryOperator) {
  if (kSanitized) GTEST_SKIP() << "times mean nothing in a sanitized build";
  for (const CaseList& list : all_cases()) {
    for (size_t i = 0; i < list.cases.size(); ++i) {
      const Timed t = time_case(list.op, list.cases[i], i);
      EXPECT_LE(t.took, kSlack * t.estimate + kSlackNanoseconds)
          << list.op << " case " << i << " (" << list.cases[i].inputs << "; " << list.cases[i].attributes << ")";
    }
  }
}

struct NamedCase {
  const char* op;
  Case source;
};

// Small operands that meet each other: a millisecond to a tenth of a second each.
const NamedCase kLong[] = {
    {"add", {"f32[1000,1000];f32[1000,1]"}},
    {"adaptive_average_pool", {"f32[1,8,64,64]", "output_size=[60,60]"}},
    {"adaptive_max_pool", {"f32[1,8,64,64]", "output_size=[60,60]"}},
    {"attention", {"f32[1,4,200,32];f32[1,4,300,32];f32[1,4,300,32]", "", 3}},
    {"average_pool", {"f32[1,1,128,128]", "kernel_shape=[64,64]"}},
    {"bessel_i", {"f32[100000] x10"}},
    {"cholesky", {"f32[1,1]{4}"}},
    {"conv", {"f32[1,1,100,100];f32[4,1,50,50]", "pads=[25,25,25,25]"}},
    {"conv", {"f32[1,64,4,4];f32[64,64,3,3]", "pads=[1,1,1,1]"}},
    {"conv_integer", {"u8[2,16,32,32];i8[16,16,5,5]"}},
    {"conv_transpose", {"f32[1,16,32,32];f32[16,16,7,7]"}},
    {"cum_sum", {"f32[1000,1000];i64[]{1}"}},
    {"deform_conv", {"f32[1,4,40,40];f32[8,4,5,5];f32[1,50,36,36]"}},
    {"det", {"f32[4,100,100]"}},
    {"dft", {"f32[50,1009,2]"}},
    {"digamma", {"f32[100000] in -5..5"}},
    {"eigh", {"f32[4,100,100]", "", 2}},
    {"einsum", {"f32[200];f32[200];f32[200]", "equation=\"i,j,k->\""}},
    {"einsum", {"f32[150,150];f32[150,150]", "equation=\"ij,jk->ik\""}},
    {"gemm", {"f32[200,200];f32[200,200]"}},
    {"grid_sample", {"f32[1,3,64,64];f32[1,100,100,2] in -1..1", "mode=\"cubic\""}},
    {"gru", {"f32[50,2,32];f32[1,96,32];f32[1,96,32]", "hidden_size=32", 2}},
    {"lp_pool", {"f32[1,1,100,100]", "kernel_shape=[50,50]"}},
    {"lrn", {"f32[1,500,10,10]", "size=499"}},
    {"lsh_projection", {"f32[100,30];f32[500,20]", "dense=1"}},
    {"lstm", {"f32[50,2,32];f32[1,128,32];f32[1,128,32]", "hidden_size=32", 3}},
    {"mat_mul", {"f32[20,1,300];f32[300,300]"}},
    {"mat_mul", {"f32[300,300];f32[300,300]"}},
    {"mat_mul_integer", {"u8[300,300];i8[300,300]"}},
    {"max", {"f32[1];f32[1];f32[1];f32[1];f32[1];f32[1];f32[1];f32[1];f32[1];f32[1];f32[1];f32[100000]"}},
    {"max_pool", {"f32[1,1,128,128]", "kernel_shape=[64,64]"}},
    {"max_roi_pool",
     {"f32[1,8,100,100];f32[4,5]{0,0,0,99,99,0,0,0,99,99,0,0,0,99,99,0,0,0,99,99}", "pooled_shape=[3,3]"}},
    {"non_max_suppression", {"f32[1,1500,4];f32[1,2,1500];i64[]{1500};f32[]{1.0}"}},
    {"non_zero", {"f32[1000,1000]"}},
    {"qr", {"f32[4,100,100]", "", 2}},
    {"random_multinomial", {"f32[100,1000];i32{1,2}", "samples=1000"}},
    {"random_philox", {"i64{1,2};i64{1000000}"}},
    {"reduce_sum", {"f32[1000,1000]"}},
    {"resize", {"f32[1,1,2000,2];none;none;i64{1,1,2,2000}", "mode=\"cubic\", antialias=1"}},
    {"resize", {"f32[1,1,64,64];none;none;i64{1,1,300,300}", "mode=\"cubic\""}},
    {"roi_align",
     {"f32[1,4,50,50];f32[8,4]{0,0,40,40,0,0,40,40,0,0,40,40,0,0,40,40,0,0,40,40,0,0,40,40,0,0,40,40,0,0,"
      "40,40};i64[8]{0,0,0,0,0,0,0,0}",
      "output_height=5, output_width=5, sampling_ratio=16"}},
    {"search_sorted", {"f32[1000];f32[100000]"}},
    {"solve", {"f32[4,100,100];f32[4,100,100]"}},
    {"stft", {"f32[2,20000];i64[]{50};f32[1009]"}},
    {"svd", {"f32[4,100,100]", "", 3}},
    {"svd", {"f32[2,300,20]", "full_matrices=1", 3}},
    {"tf_idf_vectorizer",
     {"i64[4,300] in 0..5",
      "max_gram_length=3, min_gram_length=1, max_skip_count=299, mode=\"TF\", "
      "ngram_counts=[0,2,6], ngram_indexes=[0,1,2,3,4,5], pool_int64s=[1,2,1,2,3,4,1,2,3,4,5,1]"}},
    {"top_k", {"f32[100,5000];i64[]{2500}", "", 2}},
    {"transpose", {"f32[1000,1000]", "perm=[1,0]"}},
    {"unique", {"f32[100000]", "", 4}},
    {"zeta", {"f32[100000] in 1.1..3;f32[100000] in 0..5"}},
};

TEST(ReferenceWork, CoversWhatTakesLong) {
  if (kSanitized) GTEST_SKIP() << "times mean nothing in a sanitized build";
  for (const NamedCase& c : kLong) {
    const Timed t = time_case(c.op, c.source, 0);
    EXPECT_GT(t.estimate, 0) << c.op;
    EXPECT_LE(t.took, kSlack * t.estimate + kSlackNanoseconds) << c.op << " (" << c.source.inputs << ")";
  }
}

TEST(AheadBudget, IsSharedByAllThatIsMadeInsideIt) {
  const AheadBudget outer;
  double spent = 0;
  const double piece = AheadBudget::kNanoseconds * AheadBudget::kShare / 2;
  for (int i = 0; i < 1000; ++i) {
    const AheadBudget inner;
    spent += AheadBudget::spend(piece) ? piece : 0;
  }
  EXPECT_GT(spent, 0);
  EXPECT_LE(spent, AheadBudget::kNanoseconds);
  EXPECT_TRUE(AheadBudget::spend(1000)) << "arithmetic on sizes is paid for all the same";
  EXPECT_FALSE(AheadBudget::spend(NAN));
  AheadBudget::allow_constants(1 << 30);
  EXPECT_TRUE(AheadBudget::spend(piece));
}

/// A model whose weights are the result of a product that takes more than half of the largest share of a budget.
Model with_long_weights() {
  auto model = Model::parse(R"(graph "g" {
    const %small : f32[] = {0.01}
    const %sizes : i64[2] = {300,300}
    input %x : f32[1,300]
    %a : f32[300,300] = expand(%small, %sizes)
    %w : f32[300,300] = mat_mul "weights" (%a, %a)
    %y : f32[1,300] = mat_mul "product" (%x, %w)
    output "y" %y
  })",
                            {.disabled_passes = {"all"}});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*model);
}

TEST(AheadBudget, EachTargetOfACheckHasTheSameVerdicts) {
  const Model model = with_long_weights();
  const std::vector<std::string> targets(12, "nnapi");
  const auto rows = model.check(targets);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  const size_t nodes = model.nodes().size();
  ASSERT_EQ(rows->size(), nodes * targets.size());
  for (size_t i = 0; i < rows->size(); ++i) {
    const CheckRow &row = (*rows)[i], &first = (*rows)[i % nodes];
    EXPECT_EQ(row.node, first.node);
    EXPECT_EQ(row.supported, first.supported) << row.node << " of target " << i / nodes;
    EXPECT_EQ(row.rule, first.rule) << row.node << " of target " << i / nodes;
  }
}

// -------------------------------------------------------------------------------------------------- hostile files

/// Models without inputs: everything in them can be computed ahead.
class FoldBudget : public OnnxTest {
 protected:
  /// Starts a new model.
  void clear() {
    model_.clear_graph();
    made_ = 0;
  }
  std::string fresh() { return str_cat("v", made_++); }
  std::string ints(const std::vector<int64_t>& values, bool scalar = false) {
    auto& t = *graph().add_initializer();
    t.set_name(fresh());
    t.set_data_type(proto::TensorProto::INT64);
    if (!scalar) t.add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t v : values) t.add_int64_data(v);
    return t.name();
  }
  /// A tensor of one small number, which takes a few bytes of the file.
  std::string filled(const std::vector<int64_t>& dims, float value) {
    const std::string shape = ints(dims), name = fresh();
    auto& node = add_node(graph(), "ConstantOfShape", {shape}, {name});
    auto& t = add_attr(node, "value");
    t.set_type(proto::AttributeProto::TENSOR);
    t.mutable_t()->set_data_type(proto::TensorProto::FLOAT);
    t.mutable_t()->add_dims(1);
    t.mutable_t()->add_float_data(value);
    return name;
  }
  proto::NodeProto& node(const std::string& op, std::vector<std::string> inputs, std::string* output) {
    *output = fresh();
    return add_node(graph(), op, std::move(inputs), {*output});
  }
  static void add_ints(proto::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
    auto& a = add_attr(node, name);
    a.set_type(proto::AttributeProto::INTS);
    for (const int64_t v : values) a.add_ints(v);
  }
  static void add_text(proto::NodeProto& node, const std::string& name, const std::string& text) {
    auto& a = add_attr(node, name);
    a.set_type(proto::AttributeProto::STRING);
    a.set_s(text);
  }
  void scalar_output(const std::string& name) { add_output(name); }

  struct Attack {
    const char* name;
    std::function<void(int size, int count)> build;
    int size, count;   ///< what takes hours, or seconds many times over
    int small, fewer;  ///< what does not
  };
  std::vector<Attack> attacks();

  /// Imports, optimises, writes and prepares the model of path(); the outputs of a run if `run`.
  Result<std::vector<std::vector<std::byte>>> load(bool run) const {
    PINNACE_ASSIGN(const Model model, Model::load(path()));
    PINNACE_ASSIGN(const Program program, model.build());
    PINNACE_ASSIGN(Session session, Session::create(program, {.threads = 1}));
    std::vector<std::vector<std::byte>> outputs;
    if (!run) return outputs;
    PINNACE_TRY(session.run({}));
    for (size_t i = 0; i < program.outputs().size(); ++i) {
      const Tensor t = session.output(static_cast<int>(i));
      const auto* bytes = static_cast<const std::byte*>(t.memory.host);
      outputs.emplace_back(bytes, bytes + t.type.bytes());
    }
    return outputs;
  }

  int made_ = 0;
};

std::vector<FoldBudget::Attack> FoldBudget::attacks() {
  const auto chain = [this](const std::vector<int64_t>& dims, int count, float value,
                            const std::function<std::string(const std::string&)>& step) {
    std::string x = filled(dims, value);
    for (int i = 0; i < count; ++i) x = step(x);
    add_output(x);
  };
  return {
      {"einsum of five vectors",
       [this](int size, int) {
         const std::string x = filled({size}, 0.5f);
         std::string y;
         add_text(node("Einsum", {x, x, x, x, x}, &y), "equation", "a,b,c,d,e->");
         add_output(y);
       },
       64, 1, 3, 1},
      {"matrix products in a row",
       [this, chain](int size, int count) {
         chain({size, size}, count, 0.01f, [this](const std::string& x) {
           std::string y;
           node("MatMul", {x, x}, &y);
           return y;
         });
       },
       64, 3000, 4, 3},
      {"convolutions with a kernel as large as the image",
       [this, chain](int size, int count) {
         chain({1, 1, size, size}, count, 0.01f, [this, size](const std::string& x) {
           std::string y;
           add_ints(node("Conv", {x, x}, &y), "pads", {size / 2, size / 2, (size - 1) / 2, (size - 1) / 2});
           return y;
         });
       },
       64, 400, 4, 2},
      {"pools with a window as large as the image",
       [this, chain](int size, int count) {
         chain({1, 1, size, size}, count, 1.0f, [this, size](const std::string& x) {
           std::string y;
           auto& pool = node("AveragePool", {x}, &y);
           add_ints(pool, "kernel_shape", {size, size});
           add_ints(pool, "pads", {size / 2, size / 2, (size - 1) / 2, (size - 1) / 2});
           return y;
         });
       },
       64, 400, 4, 2},
      {"selections of the largest",
       [this, chain](int size, int count) {
         const std::string k = ints({size});
         chain({size}, count, 1.0f, [this, &k](const std::string& x) {
           const std::string values = fresh(), places = fresh();
           add_node(graph(), "TopK", {x, k}, {values, places});
           return values;
         });
       },
       4096, 3000, 8, 3},
      {"unique elements",
       [this](int size, int count) {
         const std::string x = filled({size}, 1.0f);
         for (int i = 0; i < count; ++i) {
           std::string y;
           node("Unique", {x}, &y);
           add_output(y);
         }
       },
       1 << 20, 500, 8, 2},
      {"suppression of boxes",
       [this](int size, int count) {
         const std::string boxes = filled({1, size, 4}, 0), scores = filled({1, 4, size}, 1.0f), most = ints({size});
         for (int i = 0; i < count; ++i) {
           std::string y;
           node("NonMaxSuppression", {boxes, scores, most}, &y);
           add_output(y);
         }
       },
       1000, 400, 4, 2},
      {"suppression of more boxes than are computed ahead",
       [this](int size, int count) {
         const std::string boxes = filled({1, size, 4}, 0), scores = filled({1, 1, size}, 1.0f), most = ints({size});
         for (int i = 0; i < count; ++i) {
           std::string y;
           node("NonMaxSuppression", {boxes, scores, most}, &y);
           add_output(y);
         }
       },
       4000, 400, 4, 2},
      {"determinants",
       [this](int size, int count) {
         std::string x = filled({size, size}, 0.5f), y;
         for (int i = 0; i < count; ++i) {
           std::string sum;
           node("Det", {x}, &y);
           node("Add", {x, y}, &sum);
           x = sum;
         }
         add_output(y);
       },
       64, 1500, 3, 2},
      {"cubic resizing there and back",
       [this, chain](int size, int count) {
         const std::string sizes[] = {ints({1, 1, size, 1}), ints({1, 1, 1, size})};
         int turn = 0;
         chain({1, 1, 1, size}, count, 1.0f, [&](const std::string& x) {
           std::string y;
           auto& resize = node("Resize", {x, "", "", sizes[turn++ % 2]}, &y);
           add_text(resize, "mode", "cubic");
           return y;
         });
       },
       4096, 300, 4, 2},
      {"sums along lines",
       [this, chain](int size, int count) {
         const std::string axis = ints({0}, true);
         chain({size}, count, 0.001f, [this, &axis](const std::string& x) {
           std::string y;
           node("CumSum", {x, axis}, &y);
           return y;
         });
       },
       4096, 5000, 8, 3},
      {"cheap nodes",
       [this, chain](int size, int count) {
         chain({size}, count, 1.0f, [this](const std::string& x) {
           std::string y;
           node("Cos", {x}, &y);
           return y;
         });
       },
       1, 20000, 4, 5},
      {"sums of many operands",
       [this](int size, int count) {
         const std::string x = filled({size}, 1.0f), one = filled({1}, 1.0f);
         std::vector<std::string> all(static_cast<size_t>(count), one);
         all.push_back(x);
         for (int i = 0; i < std::min(count, 50); ++i) {
           std::string y;
           node("Sum", all, &y);
           add_output(y);
         }
       },
       4096, 2000, 4, 3},
      {"loops",
       [this](int size, int count) {
         std::string x = filled({4}, 1.0f), y;
         const std::string trips = ints({count}, true);
         auto& loop = node("Loop", {trips, "", x}, &y);
         auto& body = add_graph(loop, "body");
         set_type(*body.add_input(), "i", proto::TensorProto::INT64, {});
         set_type(*body.add_input(), "go", proto::TensorProto::BOOL, {});
         set_type(*body.add_input(), "all", proto::TensorProto::FLOAT, {4});
         std::string inner = "all";
         for (int i = 0; i < size; ++i) {
           const std::string next = fresh();
           add_node(body, "Cos", {inner}, {next});
           inner = next;
         }
         add_node(body, "Identity", {"go"}, {"still"});
         body.add_output()->set_name("still");
         body.add_output()->set_name(inner);
         add_output(y);
       },
       1000, 1'000'000'000, 2, 3},
      {"products in nested branches",
       [this](int size, int depth) {
         const std::string x = filled({size, size}, 0.01f), flag = ints({1});
         std::string condition;
         auto& cast = node("Cast", {flag}, &condition);
         add_int(cast, "to", proto::TensorProto::BOOL);
         proto::GraphProto* at = &graph();
         std::vector<std::pair<proto::GraphProto*, std::string>> made;
         std::string y = fresh();
         add_output(y);
         for (int i = 0; i < depth; ++i) {
           auto& choice = add_node(*at, "If", {condition}, {y});
           auto& other = add_graph(choice, "else_branch");
           add_node(other, "MatMul", {x, x}, {y + "e"});
           other.add_output()->set_name(y + "e");
           auto& then = add_graph(choice, "then_branch");
           for (int k = 0; k < 20; ++k) add_node(then, "MatMul", {x, x}, {str_cat(y, "m", k)});
           y = str_cat(y, "t");
           then.add_output()->set_name(y);
           at = &then;
         }
         add_node(*at, "Neg", {x}, {y});
       },
       64, 15, 3, 2},
  };
}

TEST_F(FoldBudget, HostileFilesLoadSoon) {
  const std::vector<Attack> all = attacks();
  std::vector<std::string> files;
  for (const Attack& attack : all) {
    clear();
    attack.build(attack.size, attack.count);
    files.push_back(model_.SerializeAsString());
    EXPECT_LT(files.back().size(), 1u << 20) << attack.name;
  }
  Allowance allowance{.seconds = kSanitized ? 20.0 : 2.0};
  const auto seen = run_guarded(all.size(), allowance, [&](size_t i, const auto& accept) -> std::string {
    write(path(), files[i]);
    const auto loaded = load(false);
    if (loaded.ok()) accept();
    const Code code = loaded.status().code();
    return loaded.ok() || code == Code::kUnsupported || code == Code::kConversion
               ? ""
               : str_cat(all[i].name, ": ", loaded.status().message());
  });
  EXPECT_EQ(seen.failure, "");
  EXPECT_GE(seen.accepted, all.size() - 1);
}

TEST_F(FoldBudget, TheSameFilesRunWhereTheyAreSmall) {
  for (const Attack& attack : attacks()) {
    SCOPED_TRACE(attack.name);
    clear();
    attack.build(attack.small, attack.fewer);
    const auto imported = import_model();
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    const auto want = run_graph_reference(imported->graph, {});
    ASSERT_TRUE(want.ok()) << want.status().message();
    const auto got = load(true);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_EQ(got->size(), want->size());
    for (size_t i = 0; i < want->size(); ++i) {
      const ReferenceOutput& y = (*want)[i];
      ASSERT_EQ((*got)[i].size(), y.bytes.size());
      for (size_t k = 0; k < y.bytes.size() / 4; ++k) {
        if (y.type.dtype == DType::kI64) {
          EXPECT_EQ(std::memcmp((*got)[i].data() + 4 * k, y.bytes.data() + 4 * k, 4), 0);
        } else {
          const float a = reinterpret_cast<const float*>((*got)[i].data())[k];
          const float b = reinterpret_cast<const float*>(y.bytes.data())[k];
          EXPECT_NEAR(a, b, 1e-5 * std::max(1.0f, std::abs(b)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace pinnace::testing
