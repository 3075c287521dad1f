// What no schema forbids, made of every case of every operator by one change at a time: attributes, shapes, element
// types and contents of inputs that nobody means well with; and by changes that belong together, of a window's
// attributes and of an empty tensor's other dimensions. Any answer will do, as long as it is one: a typed error, or
// outputs in their own memory, from the reference code and from every CPU kernel that takes the node; soon, and without
// memory beyond a limit.
#include <gtest/gtest.h>

#include <ctime>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "backends/cpu/kernel.h"
#include "cases/question.h"
#include "cpp/counted_memory.h"
#include "ops/empty.h"

namespace pinnace::testing {

void PrintTo(const CaseList& list, std::ostream* out);

namespace {

using cpu::cpu_kernels;
using cpu::CpuKernelLine;
using cpu::kAnyDType;
using cpu::run_forced;

/// The tensors of the cases have some thousand elements: blocks beyond this hold what a hostile value asked for.
constexpr size_t kLimitBytes = 16 << 20;
/// Processor time of one answer, by reference code and by every kernel. Nothing that is given in kLimitBytes takes
/// longer; sanitized code and an emulated processor (a convolution of 18 million products by all kernels: 1.2 seconds)
/// are slower, and are given more (100^4 bytes resized by all kernels, sanitized: 12 seconds).
double most_seconds() {
  return kMemoryIsCounted && !std::getenv("PINNACE_TEST_INSTRUCTION_SET") ? 1 : 40;
}
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Infers and runs.
void survive(const Question& q, const std::string& what) {
  SCOPED_TRACE(what);
  const double start = thread_seconds();
  {
    const MemoryWatch watch(kLimitBytes);
    const auto inferred = q.infer_types();
    if (!inferred.ok()) q.expect_typed(inferred.status());
    std::vector<TensorView> views;
    bool runs = inferred.ok() && q.op->reference;
    for (size_t i = 0; i < q.types.size() && runs; ++i) {
      runs = !q.present[i] || q.data[i];
      if (runs)
        views.push_back(q.present[i] ? TensorView{&q.types[i], const_cast<std::byte*>(q.data[i]->data())}
                                     : TensorView{});
    }
    if (runs) {
      const auto outputs = run_node_with(compute, q.node, *q.op, views, q.declared);
      if (!outputs.ok()) q.expect_typed(outputs.status());
      for (const CpuKernelLine& line : cpu_kernels()) {
        if (line.op != q.op->name || !line_runs(line) || q.types.empty() ||
            (line.dtype != kAnyDType && line.dtype != q.types[0].dtype))
          continue;
        const auto by_kernel =
            run_node_with([&](const NodeView& node, std::span<const TensorView> in,
                              std::span<const TensorView> out) { return run_forced(line, node, in, out, 2); },
                          q.node, *q.op, views, q.declared);
        if (!by_kernel.ok() && by_kernel.status().code() != Code::kUnsupported) q.expect_typed(by_kernel.status());
        // What the reference has the memory for, a kernel that takes the node has too.
        EXPECT_FALSE(outputs.ok() && !by_kernel.ok() && by_kernel.status().code() == Code::kOutOfMemory)
            << line.name << ": " << by_kernel.status().message();
      }
    }
    EXPECT_EQ(watch.overdrawn(), 0u) << "a container that cannot be refused took that many bytes";
  }
  EXPECT_LT(thread_seconds() - start, most_seconds());
}

Attr attr_of_kind(AttrKind kind, int64_t number) {
  switch (kind) {
    case AttrKind::kFloat:
      return static_cast<double>(number);
    case AttrKind::kString:
      return std::string("bogus");
    case AttrKind::kInts:
      return std::vector<int64_t>{number};
    case AttrKind::kFloats:
      return std::vector<double>{static_cast<double>(number)};
    case AttrKind::kStrings:
      return std::vector<std::string>{"bogus"};
    default:
      return number;
  }
}

constexpr int64_t kNumbers[] = {0,
                                -1,
                                1,
                                3,
                                7,
                                -100,
                                100,
                                INT64_MIN,
                                INT64_MAX,
                                INT64_MIN + 1,
                                int64_t{1} << 31,
                                (int64_t{1} << 31) - 1,
                                -(int64_t{1} << 31),
                                int64_t{1} << 32,
                                1000000000000};

void survive_attributes(const BuiltCase& built) {
  for (const AttrDef& def : built.op->attrs) {
    if (def.kind == AttrKind::kGraph) continue;
    const auto with = [&](Attr value, const std::string& what) {
      Question q(built);
      q.node.set_attr(def.name, std::move(value));
      survive(q, str_cat("attribute ", def.name, " ", what));
    };
    const bool text = def.kind == AttrKind::kString || def.kind == AttrKind::kStrings;
    for (const int64_t n : kNumbers) {
      with(attr_of_kind(def.kind, n), str_cat("= ", n));
      if (text) break;
    }
    const Attr* given = built.node().attr(def.name);
    if (def.kind == AttrKind::kInts) {
      with(std::vector<int64_t>{}, "empty");
      with(std::vector<int64_t>(9, 1), "of nine 1");
      for (size_t i = 0; given && i < std::get<std::vector<int64_t>>(*given).size(); ++i) {
        for (const int64_t n : kNumbers) {
          auto list = std::get<std::vector<int64_t>>(*given);
          list[i] = n;
          with(list, str_cat("[", i, "] = ", n));
        }
      }
    } else if (def.kind == AttrKind::kFloat) {
      for (const double d : {-0.0, 1e300, kInfinity, -kInfinity, std::nan("")}) with(d, str_cat("= ", d));
    } else if (def.kind == AttrKind::kFloats) {
      with(std::vector<double>{}, "empty");
      with(std::vector<double>(9, kInfinity), "of nine inf");
    } else if (def.kind == AttrKind::kString) {
      with(std::string(), "empty");
      with(std::string("f32"), "f32");
    } else if (def.kind == AttrKind::kStrings) {
      with(std::vector<std::string>{}, "empty");
    }
  }
}

bool has_attr(const OpDef& op, std::string_view name) {
  return std::any_of(op.attrs.begin(), op.attrs.end(), [&](const AttrDef& def) { return def.name == name; });
}

/// Strides, dilations, pads and, where it is an attribute, the kernel, all at once: limits and what products of two of
/// them overflow at, with pads and strides such that windows fit and outputs are few.
void survive_windows(const BuiltCase& built, Random& random) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  constexpr int64_t kLarge[] = {kMost, kMost - 1, 1 << 30, kMost - 1023, (1 << 24) + 1, 1 << 20, 65536, 70000, 46341};
  constexpr int kEach = kMemoryIsCounted ? 12 : 1;  // sanitized, twelve of a convolution take half a minute
  const OpDef& op = *built.op;
  if (!has_attr(op, "pads") || !has_attr(op, "strides") || built.inputs[0].type.rank() < 3) return;
  const Shape& x = built.inputs[0].type.shape;
  const bool transposed = op.name == "conv_transpose" || op.name == "max_unpool", pools = has_attr(op, "kernel_shape");
  const size_t rank = x.size() - 2;
  for (int i = 0; i < kEach; ++i) {
    Question q(built);
    std::vector<int64_t> kernel(rank, 1), strides(rank), dilations(rank, 1), pads(2 * rank);
    const auto below = [&](int64_t count) { return random.integer(0, count - 1); };
    const auto one_of = [&](std::initializer_list<int64_t> small) {
      if (below(100) < 45) return kLarge[below(std::size(kLarge))];
      return small.begin()[below(static_cast<int64_t>(small.size()))];
    };
    const bool weighs = q.types.size() > 1 && q.present[1] && q.types[1].rank() == built.inputs[0].type.rank();
    for (size_t d = 0; d < rank; ++d) {
      kernel[d] = weighs ? q.types[1].shape[d + 2].size : pools ? one_of({1, 2, 3}) : 1;
      strides[d] = one_of({1, 2, 3});
      if (has_attr(op, "dilations")) dilations[d] = one_of({1, 1, 2});
      pads[d] = one_of({0, 1, 2});
      pads[rank + d] = below(2) ? pads[d] : one_of({0, 1, 2});
      const int64_t extent = (kernel[d] - 1) * dilations[d] + 1, in = x[d + 2].size;
      if (transposed) {
        const int64_t most = (in - 1) * strides[d] + extent;
        const int64_t cut = std::max<int64_t>(0, most - 1 - below(4));
        pads[d] = std::min({kMost, cut, below(2) ? cut : cut / 2});
        pads[rank + d] = std::min(kMost, cut - pads[d]);
        continue;
      }
      if (!weighs) {  // a pool's pads are smaller than its window
        pads[d] = std::min(pads[d], extent - 1);
        pads[rank + d] = std::min(pads[rank + d], extent - 1);
      }
      if (in + pads[d] + pads[rank + d] < extent) {
        pads[d] = std::min(kMost, below(2) ? extent - 1 : extent / 2);
        pads[rank + d] = std::min(kMost, extent - 1 - pads[d]);
      }
      const int64_t room = in + pads[d] + pads[rank + d] - extent;
      if (room / strides[d] > 6) strides[d] = std::min(kMost, std::max<int64_t>(1, room / (1 + below(3))));
    }
    const auto text = [](const std::vector<int64_t>& list) { return list_text(std::span<const int64_t>(list)); };
    const std::string what = str_cat("kernel ", text(kernel), " strides ", text(strides), " dilations ",
                                     text(dilations), " pads ", text(pads));
    if (has_attr(op, "auto_pad")) q.node.set_attr("auto_pad", std::string("notset"));
    if (pools && !weighs) q.node.set_attr("kernel_shape", kernel);
    if (has_attr(op, "output_shape")) q.node.set_attr("output_shape", std::vector<int64_t>{});
    if (has_attr(op, "dilations")) q.node.set_attr("dilations", dilations);
    q.node.set_attr("strides", strides);
    q.node.set_attr("pads", pads);
    survive(q, what);
    if (!has_attr(op, "auto_pad")) continue;
    q.node.set_attr("auto_pad", std::string(below(2) ? "same_upper" : "same_lower"));
    q.node.set_attr("pads", std::vector<int64_t>{});
    survive(q, str_cat("pads of size same, ", what));
  }
}

/// A dimension of 0 and another beyond what any loop should walk: of input i alone, and of all inputs of its shape.
void survive_empty(const BuiltCase& built, Random& random) {
  constexpr int64_t kMany[] = {(int64_t{1} << 31) - 1, int64_t{1} << 33};  // some shape rules refuse the second
  const auto empty = Constant::copy_of("", 0);
  ASSERT_TRUE(empty.ok());
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    if (!built.inputs[i].present) continue;
    const Shape& shape = built.inputs[i].type.shape;
    for (size_t none = 0; none < shape.size(); ++none) {
      for (size_t many = 0; many < shape.size(); ++many) {
        if (none == many) continue;
        Shape changed = shape;
        changed[none] = 0;
        changed[many] = kMany[random.integer(0, 1)];
        for (const bool all : {false, true}) {
          Question q(built);
          size_t count = 0;
          for (size_t k = all ? 0 : i; k < (all ? built.inputs.size() : i + 1); ++k) {
            if (!built.inputs[k].present || built.inputs[k].type.shape != shape) continue;
            q.types[k].shape = changed;
            q.data[k] = *empty;
            ++count;
          }
          if (all && count == 1) continue;
          survive(q, str_cat(all ? "inputs like " : "input ", i, " with dimension ", none, " = 0, ", many, " = ",
                             changed[many].size));
        }
      }
    }
  }
}

void survive_types(const BuiltCase& built, Random& random) {
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    if (!built.inputs[i].present) continue;
    const auto with = [&](DType dtype, Shape shape, const std::string& what) {
      Question q(built);
      q.types[i] = {dtype, std::move(shape), dtype == q.types[i].dtype ? q.types[i].quantization : nullptr};
      if (q.types[i].bytes() > 1 << 20) return;
      auto contents = random_contents(q.types[i], random);
      ASSERT_TRUE(contents.ok());
      q.data[i] = *contents;
      survive(q, str_cat("input ", i, " ", what));
    };
    const DType dtype = built.inputs[i].type.dtype;
    const Shape& shape = built.inputs[i].type.shape;
    for (int other = 0; other < kDTypeCount; ++other) {
      with(static_cast<DType>(other), shape, str_cat("as ", dtype_name(static_cast<DType>(other))));
    }
    with(dtype, {}, "as a scalar");
    with(dtype, Shape(1, Dim(0)), "as [0]");
    with(dtype, Shape(9, Dim(1)), "of rank 9");
    with(dtype, Shape(40, Dim(1)), "of rank 40");
    for (size_t d = 0; d < shape.size(); ++d) {
      for (const int64_t size : {int64_t{0}, int64_t{1}, shape[d].size + 1}) {
        Shape changed = shape;
        changed[d] = size;
        with(dtype, std::move(changed), str_cat("with dimension ", d, " = ", size));
      }
    }
    Shape longer = shape, shorter = shape;
    longer.insert(longer.begin(), Dim(2));
    with(dtype, std::move(longer), "with one more dimension");
    if (!shorter.empty()) shorter.erase(shorter.begin());
    with(dtype, std::move(shorter), "with one dimension less");
  }
}

/// Types alone, as before a run: each dimension of each input in turn huge, bounded or unknown, with contents that
/// nobody knows yet. What a shape rule allocates by a length is allocated here.
void survive_unknown_contents(const BuiltCase& built) {
  const Dim sizes[] = {(int64_t{1} << 31) - 1, int64_t{1} << 40, Dim(), Dim::unknown((int64_t{1} << 31) - 1)};
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    if (!built.inputs[i].present) continue;
    for (size_t d = 0; d < built.inputs[i].type.shape.size(); ++d) {
      for (const Dim& size : sizes) {
        const auto with = [&](bool alike, bool others_known) {  // with the inputs of its shape, else alone
          Question q(built);
          for (size_t k = 0; k < built.inputs.size(); ++k) {
            if (k != i && !(alike && built.inputs[k].present && q.types[k].shape == built.inputs[i].type.shape))
              continue;
            q.types[k].shape[d] = size;
            q.data[k] = nullptr;
          }
          if (!others_known) q.forget_contents();
          survive(q, str_cat("input ", i, alike ? " and those like it" : "", others_known ? "" : ", nothing known,",
                             " with dimension ", d, " = ", size.size, " (", size.max, ")"));
        };
        with(false, true);
        with(false, false);
        with(true, false);
      }
    }
  }
}

/// Optional inputs gone, or all from one on.
void survive_fewer_inputs(const BuiltCase& built) {
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    Question without(built), only(built);
    without.present[i] = false;
    without.node.inputs[i] = kNoValue;
    survive(without, str_cat("input ", i, " left out"));
    only.node.inputs.resize(i);
    only.types.resize(i);
    only.present.resize(i);
    only.data.resize(i);
    survive(only, str_cat("the first ", i, " inputs"));
  }
}

/// Elements of input i, all at once and the first ones one by one, become `value`.
template <class T>
void survive_elements(const BuiltCase& built, size_t i, T value, const std::string& text) {
  const CaseTensor& input = built.inputs[i];
  const auto count = static_cast<int64_t>(input.bytes->bytes() / sizeof(T));
  for (int64_t at = -1; at < std::min<int64_t>(count, 4); ++at) {
    auto changed = Constant::copy_of(input.bytes->data(), input.bytes->bytes());
    ASSERT_TRUE(changed.ok());
    auto* elements = reinterpret_cast<T*>(const_cast<std::byte*>((*changed)->data()));
    std::fill(elements + std::max<int64_t>(at, 0), elements + (at < 0 ? count : at + 1), value);
    Question q(built);
    q.data[i] = *changed;
    survive(q, str_cat("input ", i, at < 0 ? std::string(" all") : str_cat("[", at, "]"), " = ", text));
  }
}

void survive_contents(const BuiltCase& built) {
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    const CaseTensor& input = built.inputs[i];
    if (!input.present || !input.bytes->bytes()) continue;
    if (input.type.dtype == DType::kI64) {
      for (const int64_t n : kNumbers) survive_elements(built, i, n, str_cat(n));
    } else if (input.type.dtype == DType::kI32) {
      for (const int32_t n : {0, -1, 5, INT32_MIN, INT32_MAX}) survive_elements(built, i, n, str_cat(n));
    } else if (input.type.dtype == DType::kF32 && input.type.elements() <= 16) {
      for (const double x : {0.0, -1.0, 1e-30, 1e30, kInfinity, -kInfinity, std::nan("")}) {
        survive_elements(built, i, static_cast<float>(x), str_cat(x));
      }
    }
  }
}

class HostileValues : public ::testing::TestWithParam<CaseList> {};

TEST_P(HostileValues, AreSurvived) {
  const CaseList& list = GetParam();
  for (size_t i = 0; i < list.cases.size(); ++i) {
    // Sanitized, all cases take four minutes: one in four, others with each seed.
    if (!kMemoryIsCounted && (i + test_seed()) % 4 != 0) continue;
    SCOPED_TRACE(str_cat(list.op, " case ", i, " (", list.cases[i].inputs, "; ", list.cases[i].attributes, "), seed ",
                         test_seed()));
    const auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
    if (!built.ok()) continue;  // the parity test reports it
    Random random(case_seed(list.op, i) ^ 0x9e3779b9);
    survive_attributes(*built);
    survive_windows(*built, random);
    // Sanitized, code that counts to 2^33 without doing anything is not optimised away.
    if (kMemoryIsCounted) survive_empty(*built, random);
    survive_types(*built, random);
    survive_unknown_contents(*built);
    survive_fewer_inputs(*built);
    survive_contents(*built);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, HostileValues, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace
}  // namespace pinnace::testing
