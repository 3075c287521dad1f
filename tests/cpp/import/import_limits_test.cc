// Files made to take more memory or time than they are worth: small numbers that promise large tensors, and lists whose
// entries take few bytes in the file and many in memory. Loading takes at most 16 times the file and 64 MiB, and every
// answer comes within a second.
#include <pinnace/model.h>

#include "cpp/guarded.h"
#include "cpp/import/onnx_fixture.h"
#include "cpp/import/torch_fixture.h"

namespace pinnace::testing {
namespace {

/// One load of the file with every pass, under the importers' bound. What it answers does not matter, but it is typed.
void expect_bounded(const std::filesystem::path& path) {
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  // 8 MiB more for what else the process makes meanwhile: tables made once, what malloc keeps, other threads' memory.
  // Behind 3,000 other tests 4.2 were seen.
  const Allowance allowance{.memory = 16 * bytes + (72 << 20), .seconds = kSanitized ? 20.0 : 2.0};
  const auto load = [&](size_t, const auto&) -> std::string {
    const auto model = Model::load(path.string());
    return !model.ok() && model.status().message().empty() ? "fails without a sentence" : "";
  };
  Observed seen = run_guarded(1, allowance, load);
  // Other processes' work can only add to the time: what is too slow is too slow twice.
  if (seen.slowest > allowance.seconds) seen = run_guarded(1, allowance, load);
  EXPECT_EQ(seen.failure, "") << bytes << " bytes in the file";
}

// -------------------------------------------------------------------------------------------------------------- ONNX

class OnnxLimits : public OnnxTest {
 protected:
  static constexpr int kMany = 40'000;

  void bounded(const char* name) {
    SCOPED_TRACE(name);
    write(folder_ / name, model_.SerializeAsString());
    expect_bounded(folder_ / name);
    model_.clear_graph();
    model_.clear_functions();
  }
  void add_i64(const std::string& name, std::vector<int64_t> values, bool scalar = false) {
    auto& t = *graph().add_initializer();
    t.set_name(name);
    t.set_data_type(proto::TensorProto::INT64);
    if (!scalar) t.add_dims(static_cast<int64_t>(values.size()));
    t.set_raw_data(values.data(), values.size() * 8);
  }
};

TEST_F(OnnxLimits, ShapesThatConstantsPromise) {
  constexpr int64_t kHuge[] = {int64_t{1} << 28, int64_t{1} << 40, INT64_MAX};
  for (const int64_t n : kHuge) {
    SCOPED_TRACE(n);
    add_i64("n", {n});
    add_node(graph(), "ConstantOfShape", {"n"}, {"y"});
    add_output("y");
    bounded("constant_of_shape");

    add_i64("n", {n, 2});
    add_floats("v", {1}, {1});
    add_node(graph(), "Expand", {"v", "n"}, {"y"});
    add_output("y");
    bounded("expand");

    add_i64("a", {0}, true), add_i64("b", {n}, true), add_i64("c", {1}, true);
    add_node(graph(), "Range", {"a", "b", "c"}, {"y"});
    add_output("y");
    bounded("range");

    add_i64("n", {n});
    add_floats("v", {2}, {1, 2});
    add_node(graph(), "Tile", {"v", "n"}, {"y"});
    add_output("y");
    bounded("tile");

    add_i64("n", {n, n});
    add_floats("v", {2}, {1, 2});
    add_node(graph(), "Pad", {"v", "n"}, {"y"});
    add_output("y");
    bounded("pad");

    add_i64("n", {1, 1, n, 2});
    add_floats("v", {1, 1, 1, 1}, {1});
    add_node(graph(), "Resize", {"v", "", "", "n"}, {"y"});
    add_output("y");
    bounded("resize");

    add_i64("n", {n}, true), add_i64("at", {0, 1});
    add_floats("v", {2}, {0, 1});
    add_node(graph(), "OneHot", {"at", "n", "v"}, {"y"});
    add_output("y");
    bounded("one_hot");

    add_i64("n", {n}, true), add_i64("s", {3});
    add_floats("v", {3}, {1, 1, 1});
    auto& loop = add_node(graph(), "Loop", {"n", "", "v"}, {"y", "all"});
    auto& body = add_graph(loop, "body");
    set_type(*body.add_input(), "i", proto::TensorProto::INT64, {});
    set_type(*body.add_input(), "go", proto::TensorProto::BOOL, {});
    set_type(*body.add_input(), "a", proto::TensorProto::FLOAT, {3});
    add_node(body, "Add", {"a", "a"}, {"b"});
    for (const char* name : {"go", "b", "b"}) body.add_output()->set_name(name);
    add_output("all");
    bounded("loop");
  }
}

TEST_F(OnnxLimits, HeadsThatAShapePromises) {
  for (const int64_t heads : {int64_t{1} << 26, int64_t{1} << 31, INT64_MAX}) {
    add_input("q", {1, heads, 1, 1}), add_input("k", {1, 1, 1, 1}), add_input("v", {1, 1, 1, 1});
    add_node(graph(), "FlexAttention", {"q", "k", "v"}, {"y"}).set_domain("ai.onnx.preview");
    add_output("y");
    bounded("flex_attention");
  }
}

TEST_F(OnnxLimits, RowsOfConstantsThatDouble) {
  // Each node doubles its input: constants of 2^40 elements at the end, if nobody counts.
  add_floats("v0", {1024}, std::vector<float>(1024, 1));
  for (int i = 0; i < 30; ++i) {
    add_int(add_node(graph(), "Concat", {str_cat("v", i), str_cat("v", i)}, {str_cat("v", i + 1)}), "axis", 0);
  }
  add_output("v30");
  bounded("constants that double");

  add_input("x", {-1, -2}, proto::TensorProto::INT64);
  add_node(graph(), "Shape", {"x"}, {"v0"});
  for (int i = 0; i < 60; ++i) {
    add_int(add_node(graph(), "Concat", {str_cat("v", i), str_cat("v", i)}, {str_cat("v", i + 1)}), "axis", 0);
  }
  add_output("v60");
  bounded("sizes that double");

  add_input("x", {int64_t{1} << 50}, proto::TensorProto::INT64);
  add_node(graph(), "Shape", {"x"}, {"s"});
  add_int(add_node(graph(), "Concat", {"x", "s"}, {"y"}), "axis", 0);
  add_output("y");
  bounded("a size beside a large input");

  add_i64("v0", std::vector<int64_t>(4096, 1));
  for (int i = 0; i < 20'000; ++i) {
    add_node(graph(), "Add", {str_cat("v", i), str_cat("v", i)}, {str_cat("v", i + 1)});
  }
  add_output("v20000");
  bounded("many small constants");
}

TEST_F(OnnxLimits, Sequences) {
  // Every insertion makes a sequence of its own: 40,000 would have 800 million elements.
  add_input("x", {2});
  add_node(graph(), "SequenceEmpty", {}, {"s0"});
  for (int i = 0; i < kMany; ++i) add_node(graph(), "SequenceInsert", {str_cat("s", i), "x"}, {str_cat("s", i + 1)});
  add_node(graph(), "SequenceLength", {str_cat("s", kMany)}, {"n"});
  add_output("n");
  bounded("a sequence that grows");

  for (const int64_t n : {int64_t{9'000}, int64_t{1} << 40}) {
    add_input("x", {n});
    add_node(graph(), "SplitToSequence", {"x"}, {"s"});
    add_int(add_node(graph(), "ConcatFromSequence", {"s"}, {"y"}), "axis", 0);
    add_output("y");
    bounded("pieces that are promised");
  }

  add_input("x", {int64_t{1} << 40, 2});
  add_i64("n", {INT64_MAX}, true);
  add_node(graph(), "SplitToSequence", {"x", "n"}, {"s"});
  add_node(graph(), "SequenceLength", {"s"}, {"y"});
  add_output("y");
  bounded("a piece larger than the dimension");

  // Maps within maps: 300 * 300 * 300 bodies.
  add_input("x", {300});
  add_node(graph(), "SplitToSequence", {"x"}, {"s"});
  proto::GraphProto* at = &graph();
  for (int depth = 0; depth < 3; ++depth) {
    auto& map = add_node(*at, "SequenceMap", {"s"}, {"mapped"});
    at->add_output()->set_name(depth ? "length" : "all");
    add_node(*at, "SequenceLength", {"mapped"}, {depth ? "length" : "all"});
    at = &add_graph(map, "body");
    set_type(*at->add_input(), str_cat("item", depth), proto::TensorProto::FLOAT, {1});
  }
  add_node(*at, "Neg", {"item2"}, {"length"});
  at->add_output()->set_name("length");
  bounded("maps within maps");
}

TEST_F(OnnxLimits, SparseTensors) {
  for (const auto& [count, size] : {std::pair(1, int64_t{1} << 36), std::pair(1, int64_t{1} << 22),
                                    std::pair(400, int64_t{1} << 20), std::pair(kMany, int64_t{1})}) {
    add_input("x", {2});
    for (int i = 0; i < count; ++i) {
      auto& sparse = *graph().add_sparse_initializer();
      sparse.add_dims(size);
      sparse.mutable_values()->set_name(str_cat("w", i));
      sparse.mutable_values()->set_data_type(proto::TensorProto::FLOAT);
      sparse.mutable_values()->add_dims(0);
      sparse.mutable_indices()->set_data_type(proto::TensorProto::INT64);
      sparse.mutable_indices()->add_dims(0);
    }
    add_node(graph(), "Neg", {"x"}, {"y"});
    add_output("y");
    bounded("sparse tensors without values");
  }
}

TEST_F(OnnxLimits, ManySmallParts) {
  add_input("x", {2});
  for (int i = 0; i < kMany; ++i) add_node(graph(), "Neg", {"x"}, {str_cat(i)});
  add_output("7");
  bounded("nodes that read one value");

  add_input("x", {2});
  for (int i = 0; i < kMany; ++i) add_node(graph(), "Neg", {"x"}, {str_cat(i)}).set_name("n");
  add_output("7");
  bounded("nodes of one name");

  for (int i = 0; i < kMany; ++i) add_input(str_cat(i), {-1 - i});
  add_output("7");
  bounded("inputs with a symbol each");

  for (int i = 0; i < kMany; ++i) add_floats(str_cat(i), {0}, {}), add_input(str_cat(i), {0});
  add_output("7");
  bounded("initialisers that are inputs");

  add_input("x", {2});
  auto& concat = add_node(graph(), "Concat", {}, {"y"});
  add_int(concat, "axis", 0);
  for (int i = 0; i < 5 * kMany; ++i) concat.add_input("x");
  add_output("y");
  bounded("one node of many inputs");

  add_input("x", {2});
  auto& split = add_node(graph(), "Split", {"x"}, {});
  for (int i = 0; i < kMany; ++i) split.add_output(str_cat(i));
  add_output("7");
  bounded("one node of many outputs");

  add_input("x", {2});
  auto& neg = add_node(graph(), "Neg", {"x"}, {"y"});
  for (int i = 0; i < kMany; ++i) add_int(neg, str_cat(i), i);
  add_output("y");
  bounded("one node of many attributes");

  add_input("x", {2});
  for (int i = 0; i < 10 * kMany; ++i) add_output("x");
  bounded("one value that is output many times");

  add_input("x", {2});
  for (int i = 0; i < kMany; ++i) add_node(graph(), "Foo", {"x"}, {str_cat(i)});
  bounded("operators that nobody knows");
}

TEST_F(OnnxLimits, ListsOfNumbers) {
  auto& t = *graph().add_initializer();
  t.set_name("w");
  t.set_data_type(proto::TensorProto::INT64);
  t.add_dims(40 * kMany);
  for (int i = 0; i < 40 * kMany; ++i) t.add_int64_data(i & 1);
  add_output("w");
  bounded("a byte for each number");

  add_input("x", {2});
  auto& a = add_attr(add_node(graph(), "Transpose", {"x"}, {"y"}), "perm");
  a.set_type(proto::AttributeProto::INTS);
  for (int i = 0; i < 20 * kMany; ++i) a.add_ints(0);
  add_output("y");
  bounded("an attribute of many numbers");

  auto& value = *graph().add_input();
  set_type(value, "x", proto::TensorProto::FLOAT, std::vector<int64_t>(10 * kMany, 1));
  add_output("x");
  bounded("a rank that nobody has");
}

// ------------------------------------------------------------------------------------------------------------- torch

class TorchLimits : public OnnxTest {
 protected:
  using Entries = std::vector<torch_import::Entry>;

  void bounded(const char* name, const Entries& entries) {
    SCOPED_TRACE(name);
    write(folder_ / name, torch_import::zip_of(entries));
    expect_bounded(folder_ / name);
  }
  static Entries with_program(std::string program) {
    Entries entries = torch_import::good_entries();
    entries[1].bytes = std::move(program);
    return entries;
  }
  static std::string repeated(const std::string& item, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      if (i) text.push_back(',');
      text += item;
    }
    return text;
  }
  /// A row of tensor_values: floats of these sizes.
  static std::string tensor(const std::string& name, std::initializer_list<const char*> sizes) {
    std::string all, steps;
    for (const char* size : sizes) {
      all += str_cat(all.empty() ? "" : ",", "{\"as_int\":", size, "}");
      steps += steps.empty() ? "{\"as_int\":1}" : ",{\"as_int\":1}";
    }
    return str_cat(",\"", name, R"(":{"dtype":7,"sizes":[)", all, R"(],"strides":[)", steps,
                   R"(],"storage_offset":{"as_int":0},"layout":7})");
  }
  /// A node with one argument of the given JSON.
  static std::string node(const std::string& target, const std::string& argument, const std::string& output = "y",
                          const std::string& name = "size") {
    return str_cat(R"({"target":"torch.ops.aten.)", target, R"(","name":")", output, R"(","inputs":[{"name":")", name,
                   R"(","arg":)", argument, R"(,"kind":1}],"outputs":[{"as_tensor":{"name":")", output,
                   R"("}}],"metadata":{}})");
  }
};

TEST_F(TorchLimits, ListsOfSmallItems) {
  using torch_import::program_of;
  bounded("numbers",
          with_program(program_of(node("zeros.default", "{\"as_ints\":[" + repeated("1", 2'000'000) + "]}"))));
  bounded("strings",
          with_program(program_of(node("zeros.default", "{\"as_strings\":[" + repeated("\"\"", 1'300'000) + "]}"))));
  bounded("unknown fields", with_program("{\"what\":[" + repeated("[]", 1'300'000) + "]}"));
  bounded("brackets", with_program("{\"what\":[" + repeated("1", 2'000'000) + "]}"));
  const std::string sizes = repeated("{\"as_int\":1}", 300'000);
  bounded("sizes", with_program(program_of(torch_import::kAdd,
                                           ",\"z\":{\"dtype\":7,\"sizes\":[" + sizes + "],\"strides\":[" + sizes +
                                               "],\"storage_offset\":{\"as_int\":0},\"layout\":7}")));
  std::string outputs = R"({"target":"torch.ops.aten.split.Tensor","name":"y","inputs":[],"outputs":[)" +
                        repeated(R"({"as_none":true})", 250'000) + "],\"metadata\":{}}";
  bounded("outputs", with_program(program_of(outputs)));
  std::string nodes;
  for (int i = 0; i < 60'000; ++i) {
    nodes += (i ? "," : "") + std::string(R"({"target":"f","name":"","inputs":[],"outputs":[],"metadata":{}})");
  }
  bounded("nodes", with_program(program_of(nodes)));
  std::string expression = "Add(";
  for (int i = 0; i < 400'000; ++i) expression += "Integer(1),";
  bounded("an expression",
          with_program(program_of(
              torch_import::kAdd,
              ",\"z\":{\"dtype\":7,\"sizes\":[{\"as_expr\":{\"expr_str\":\"" + expression +
                  "Integer(1))\"}}],\"strides\":[{\"as_int\":1}],\"storage_offset\":{\"as_int\":0},\"layout\":7}")));
}

TEST_F(TorchLimits, ShapesThatArgumentsPromise) {
  for (const char* n : {"268435456", "1099511627776", "9223372036854775807"}) {
    SCOPED_TRACE(n);
    bounded("zeros",
            with_program(torch_import::program_of(node("zeros.default", str_cat("{\"as_ints\":[", n, ",2]}")))));
    const std::string argument = str_cat("{\"as_int\":", n, "}");
    bounded("arange", with_program(torch_import::program_of(node("arange.default", argument, "y", "end"))));
    bounded("eye", with_program(torch_import::program_of(node("eye.default", argument, "y", "n"))));
  }
}

TEST_F(TorchLimits, BinsAndChannelsThatArgumentsPromise) {
  // Channels of R-FCN's kind are 7 x 7 times a few.
  for (const auto& [op, channels, bins] : {std::tuple{"ps_roi_align", "0", "4096"},
                                           {"ps_roi_pool", "0", "4096"},
                                           {"ps_roi_pool", "1073741824", "1"},
                                           {"ps_roi_align", "1073741824", "32768"}}) {
    const std::string input = node("zeros.default", str_cat("{\"as_ints\":[1,", channels, ",1,1]}"), "features");
    const std::string rois = node("zeros.default", "{\"as_ints\":[1,5]}", "rois");
    const auto argument = [](const char* name, std::string_view value) {
      return str_cat(R"({"name":")", name, R"(","arg":)", value, R"(,"kind":1})");
    };
    const std::string pool = str_cat(
        R"({"target":"torch.ops.torchvision.)", op, R"(.default","name":"y","inputs":[)",
        argument("input", R"({"as_tensor":{"name":"features"}})"), ",",
        argument("rois", R"({"as_tensor":{"name":"rois"}})"), ",", argument("spatial_scale", R"({"as_float":1.0})"),
        ",", argument("pooled_height", str_cat("{\"as_int\":", bins, "}")), ",",
        argument("pooled_width", str_cat("{\"as_int\":", bins, "}")),
        R"(],"outputs":[{"as_tensor":{"name":"y"}},{"as_tensor":{"name":"z"}}],"metadata":{}})");
    bounded(op, with_program(torch_import::program_of(
                    str_cat(input, ",", rois, ",", pool),
                    tensor("features", {"1", channels, "1", "1"}) + tensor("rois", {"1", "5"}) + tensor("z", {}))));
  }
}

TEST_F(TorchLimits, TablesThatArgumentsPromise) {
  const auto of_x = [](const std::string& op, const std::string& output, const std::string& name,
                       const std::string& sizes) {
    const std::string size =
        name.empty() ? "" : str_cat(R"(,{"name":")", name, R"(","arg":{"as_ints":[)", sizes, R"(]},"kind":1})");
    return str_cat(R"({"target":"torch.ops.aten.)", op, R"(.default","name":")", output,
                   R"(","inputs":[{"name":"self","arg":{"as_tensor":{"name":"image"}},"kind":1})", size,
                   R"(],"outputs":[{"as_tensor":{"name":")", output, R"("}},{"as_tensor":{"name":"i)", output,
                   R"("}}],"metadata":{}})");
  };
  // Of no elements, so that the sizes alone ask for tables.
  bounded("one large", with_program(torch_import::program_of(
                           str_cat(node("zeros.default", "{\"as_ints\":[2,0,1,10]}", "image"), ",",
                                   of_x("adaptive_max_pool2d", "y", "output_size", "2147483647,1")),
                           tensor("image", {"2", "0", "1", "10"}) + tensor("iy", {}))));
  bounded("pairs",
          with_program(torch_import::program_of(
              str_cat(node("zeros.default", "{\"as_ints\":[4096,0]}", "image"), ",", of_x("pdist", "y", "", "")),
              tensor("image", {"4096", "0"}) + tensor("iy", {}))));
  std::string nodes = node("zeros.default", "{\"as_ints\":[1,0,1048576]}", "image");
  std::string tensors = tensor("image", {"1", "0", "1048576"}) + tensor("iy", {});
  for (int i = 0; i < 40; ++i) {
    const std::string name = i ? str_cat("y", i) : "y";
    nodes += str_cat(",", of_x("adaptive_max_pool1d", name, "output_size", str_cat(1048576 - i)));
    if (i) tensors += tensor(name, {"1", "0", "1"}) + tensor(str_cat("i", name), {});
  }
  bounded("many", with_program(torch_import::program_of(nodes, tensors)));
}

TEST_F(TorchLimits, OneStorageForManyWeights) {
  Entries entries = torch_import::good_entries();
  entries[3].bytes = std::string(2 << 20, '\0');
  std::string inputs, specs, tensors, config;
  constexpr int kWeights = 500;
  const std::string meta =
      R"({"dtype":7,"sizes":[{"as_int":524288}],"strides":[{"as_int":1}],"storage_offset":{"as_int":0},"layout":7})";
  for (int i = 0; i < kWeights; ++i) {
    inputs += str_cat(R"({"as_tensor":{"name":"p)", i, "\"}},");
    specs += str_cat(R"({"parameter":{"arg":{"name":"p)", i, R"("},"parameter_name":"w)", i, "\"}},");
    tensors += str_cat(",\"p", i, "\":", meta);
    config += str_cat(i ? "," : "", "\"w", i,
                      R"(":{"path_name":"weight_0","is_param":true,"use_pickle":false,"tensor_meta":)", meta, "}");
  }
  std::string program = torch_import::program_of(torch_import::kAdd, tensors);
  const auto insert = [&](std::string_view after, const std::string& text) {
    const size_t at = program.find(after);
    ASSERT_NE(at, std::string::npos);
    program.insert(at + after.size(), text);
  };
  insert(R"("graph":{"inputs":[)", inputs);
  insert(R"("input_specs":[)", specs);
  std::string w = torch_import::weights_of(torch_import::kTensor);
  w.replace(w.find("\"w\":"), 4, config + ",\"w\":");
  entries[1].bytes = program;
  entries[2].bytes = w;
  bounded("shared storage", entries);
}

TEST_F(TorchLimits, ArchivesOfManyEntries) {
  Entries entries = torch_import::good_entries();
  for (int i = 0; i < 60'000; ++i) entries.push_back({str_cat("a/", i), ""});
  bounded("entries", entries);
}

}  // namespace
}  // namespace pinnace::testing
