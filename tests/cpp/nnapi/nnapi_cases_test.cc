// Every operation of NNAPI has a case with an expected result, worked out by hand, and is refused where one operand of
// it is wrong: at every feature level, through the C interface.
#include <algorithm>
#include <optional>
#include <set>

#include "cpp/child_process.h"
#include "cpp/nnapi/nnapi_case.h"
#include "cpp/nnapi/nnapi_client.h"
#include "nnapi/operations.h"

namespace {

using namespace nnapi_client;
using pinnace::nnapi::OperationInfo;

int32_t code_of(const std::string& name) {
  const auto all = pinnace::nnapi::all_operations();
  const auto found = std::find_if(all.begin(), all.end(), [&](const OperationInfo& o) { return o.name == name; });
  EXPECT_NE(found, all.end()) << name;
  return found == all.end() ? -1 : found->code;
}

TEST(NnapiCases, EveryOperationHasOne) {
  std::set<std::string> named = {"IF", "WHILE"};  // theirs hold models: nnapi_referenced_models_test.cc
  for (const Case& c : all_cases()) named.insert(c.name);
  for (const OperationInfo& operation : pinnace::nnapi::all_operations()) EXPECT_TRUE(named.contains(operation.name));
}

// ------------------------------------------------------------------------------------------------------ results

enum class Given { kTensors, kEverything, kFirst };  ///< what is an input of the model; the rest is constant

/// One case for one type T, built and run.
class Runner {
 public:
  Runner(const Case& c, const std::string& T, Given given)
      : case_(c), in_(CaseReader(c.inputs, T).read()), out_(CaseReader(c.outputs, T).read()), given_(given) {}

  void run() {
    std::vector<uint32_t> in, out, model_inputs;
    std::vector<size_t> bound;
    for (size_t i = 0; i < in_.size(); ++i) {
      in.push_back(add(in_[i]));
      if (set_if_constant(in_[i], in.back(), model_inputs.empty())) continue;
      model_inputs.push_back(in.back());
      bound.push_back(i);
    }
    for (const CaseOperand& o : out_) out.push_back(add(o));
    b_.add(code_of(case_.name), in, out);
    b_.finish(model_inputs, out);
    ANeuralNetworksDevice* device = nullptr;
    EXPECT_EQ(ANeuralNetworks_getDevice(0, &device), 0);
    bool supported = false;
    EXPECT_EQ(ANeuralNetworksModel_getSupportedOperationsForDevices(b_.model, &device, 1, &supported), 0);
    EXPECT_TRUE(supported);
    compute(bound);
  }

 private:
  uint32_t add(const CaseOperand& o) {
    const uint32_t index = b_.operand(o.type->code, o.dims, o.scale, o.zero);
    if (o.channel_scales.empty()) return index;
    const ANeuralNetworksSymmPerChannelQuantParams q{o.channel_dim, static_cast<uint32_t>(o.channel_scales.size()),
                                                     o.channel_scales.data()};
    EXPECT_EQ(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(b_.model, static_cast<int32_t>(index), &q), 0);
    return index;
  }
  bool set_if_constant(const CaseOperand& o, uint32_t index, bool first) {
    const bool input = given_ == Given::kEverything || (o.tensor() && (given_ == Given::kTensors || first));
    if (input && !o.omitted) return false;
    const std::vector<std::byte>& bytes = b_.kept.emplace_back(o.omitted ? std::vector<std::byte>() : o.bytes());
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(b_.model, static_cast<int32_t>(index),
                                                   bytes.empty() ? nullptr : bytes.data(), bytes.size()),
              0);
    return true;
  }
  void compute(const std::vector<size_t>& bound) {
    Compiled compiled(b_);
    Execution run(compiled);
    std::vector<std::vector<std::byte>> inputs, outputs;
    for (size_t i : bound) inputs.push_back(in_[i].bytes());
    for (const CaseOperand& o : out_) outputs.push_back(o.bytes());
    for (size_t k = 0; k < inputs.size(); ++k) EXPECT_EQ(run.input(static_cast<int32_t>(k), inputs[k]), 0);
    for (size_t k = 0; k < outputs.size(); ++k) EXPECT_EQ(run.output(static_cast<int32_t>(k), outputs[k]), 0);
    for (std::vector<std::byte>& output : outputs) std::fill(output.begin(), output.end(), std::byte{0x5a});
    EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
    for (size_t k = 0; k < outputs.size(); ++k) {
      const CaseOperand& o = out_[k];
      for (size_t i = 0; o.compared && i < o.values.size(); ++i) {
        EXPECT_NEAR(o.value(outputs[k].data(), i), o.values[i], tolerance(o, o.values[i]))
            << "output " << k << ", " << i;
      }
    }
  }
  static double tolerance(const CaseOperand& o, double value) {
    if (!o.floating()) return o.type->word[0] == 'q' ? 1 : 0;
    return (o.type->bytes == 2 ? 5.0 / 1024 : 2e-6) * (1 + std::fabs(value));
  }

  const Case& case_;
  const std::vector<CaseOperand> in_, out_;
  const Given given_;
  Builder b_;
};

TEST(NnapiCases, ResultsAreWhatIsWrittenDown) {
  for (const Case& c : all_cases()) {
    const std::vector<WordAndLevel> types = c.type_list();
    for (const WordAndLevel& T : types) {
      if (T.word != types[0].word && !(types[0].word == "f32" && T.word == "f16")) continue;
      for (Given given : {Given::kTensors, Given::kEverything, Given::kFirst}) {
        SCOPED_TRACE(testing::Message() << c.name << " " << c.inputs << ", T " << T.word << ", given "
                                        << static_cast<int>(given));
        Runner(c, T.word, given).run();
      }
    }
  }
}

// --------------------------------------------------------------------------------------------------- signatures

struct Form {
  std::vector<CaseOperand> in, out;
};

/// The code of addOperation for operands of these types; nothing where the level does not know one of the types.
std::optional<int> add_operation(int32_t code, const Form& form) {
  ANeuralNetworksModel* model = nullptr;
  EXPECT_EQ(ANeuralNetworksModel_create(&model), 0);
  std::vector<uint32_t> in, out;
  uint32_t count = 0;
  bool known = true;
  for (const std::vector<CaseOperand>* side : {&form.in, &form.out}) {
    for (const CaseOperand& o : *side) {
      const ANeuralNetworksOperandType type{o.type->code, static_cast<uint32_t>(o.dims.size()),
                                            o.dims.empty() ? nullptr : o.dims.data(), o.scale, o.zero};
      if (ANeuralNetworksModel_addOperand(model, &type) != 0) known = false;
      if (known && !o.channel_scales.empty()) {
        const ANeuralNetworksSymmPerChannelQuantParams q{o.channel_dim, static_cast<uint32_t>(o.channel_scales.size()),
                                                         o.channel_scales.data()};
        EXPECT_EQ(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, static_cast<int32_t>(count), &q), 0);
      }
      (side == &form.in ? in : out).push_back(count++);
    }
  }
  static const uint32_t none = 0;
  std::optional<int> result;
  if (known) {
    result =
        ANeuralNetworksModel_addOperation(model, code, static_cast<uint32_t>(in.size()), in.empty() ? &none : in.data(),
                                          static_cast<uint32_t>(out.size()), out.empty() ? &none : out.data());
  }
  ANeuralNetworksModel_free(model);
  return result;
}

/// What quantisation of the type makes of an operand whose type is changed.
void change_type(CaseOperand& o, const CaseType& to) {
  const bool was_scalar = o.dims.empty();
  o.type = &to;
  o.scale = quantised(to.word) && std::string(to.word) != "q8c" ? 0.5f : 0.0f;
  o.zero = 0;
  o.channel_scales.clear();
  const bool scalar = to.code <= 2 || to.code == 6 || to.code == 10 || to.code == 15 || to.code == 10000;
  if (scalar) o.dims.clear();
  if (!scalar && was_scalar) o.dims = {1};
}

/// The level from which on a word of Case::also allows something, 0 if it does not.
int also(const Case& c, const std::string& what, const std::string& T) {
  for (const std::string& word : case_words(c.also)) {
    const WordAndLevel w = word_and_level(word, c.level);
    if (w.word == what) return w.level;
    if (w.word.ends_with(":T") && w.word.substr(0, w.word.size() - 1) + T == what) return w.level;
  }
  return 0;
}

int level_of(int64_t code) {
  return static_cast<int>(code > 1'000'000 ? code - 1'000'000 : code - 26);
}

/// Counts what was tried, so that a test that tries nothing is noticed.
struct Tried {
  int accepted = 0, refused = 0;
  void expect(int32_t code, const Form& form, bool allowed, const std::string& what) {
    const std::optional<int> result = add_operation(code, form);
    if (!result) {
      EXPECT_FALSE(allowed) << what << ": a type that the level does not know";
    } else {
      EXPECT_EQ(*result, allowed ? 0 : ANEURALNETWORKS_BAD_DATA) << what;
    }
    ++(allowed ? accepted : refused);
  }
};

/// Products need an output scale above the inputs' product at feature levels 1 and 2, MUL always.
void widen_outputs(const Case& c, Form& form) {
  const std::string name = c.name;
  if (name != "MUL" && name != "FULLY_CONNECTED" && name.find("CONV_2D") == std::string::npos) return;
  for (CaseOperand& o : form.out) o.scale = o.is_T && quantised(o.type->word) ? 1.0f : o.scale;
}

Form form_of(const Case& c, const std::string& T) {
  Form form{CaseReader(c.inputs, T).read(), CaseReader(c.outputs, T).read()};
  widen_outputs(c, form);
  return form;
}

void mutate_types(const Case& c, const Form& form, const std::string& T, int level, Tried& tried) {
  const int32_t code = code_of(c.name);
  for (std::vector<CaseOperand> Form::* side : {&Form::in, &Form::out}) {
    for (size_t i = 0; i < (form.*side).size(); ++i) {
      for (const CaseType& to : kCaseTypes) {
        const CaseOperand& before = (form.*side)[i];
        if (before.type == &to) continue;
        Form changed = form;
        change_type((changed.*side)[i], to);
        if (std::string(to.word) == "q8c") (changed.*side)[i].channel_dim = 0;
        const std::string what = std::string(side == &Form::in ? "" : "o") + std::to_string(i) + ":" + to.word;
        const int from = also(c, what, T);
        tried.expect(code, changed, from && level >= from,
                     std::string(c.name) + " " + c.inputs + " with " + what + " at level " + std::to_string(level));
      }
    }
  }
}

void mutate_counts(const Case& c, const Form& form, const std::string& T, int level, Tried& tried) {
  const int32_t code = code_of(c.name);
  for (std::vector<CaseOperand> Form::* side : {&Form::in, &Form::out}) {
    const std::string prefix = side == &Form::in ? "" : "o";
    const auto expect = [&](const Form& changed, const std::string& what) {
      const int from = also(c, what, T);
      tried.expect(code, changed, from && level >= from,
                   std::string(c.name) + " " + c.inputs + " with " + what + " at level " + std::to_string(level));
    };
    Form fewer = form;
    (fewer.*side).pop_back();
    expect(fewer, prefix + "-");
    for (const CaseType& type : kCaseTypes) {
      Form more = form;
      // Of the last operand's dimensions where it has that type: what is packed or split is of one shape.
      CaseOperand added = (form.*side).back();
      if (added.type != &type) change_type(added, type);
      (more.*side).push_back(added);
      expect(more, prefix + "+:" + type.word);
    }
  }
}

TEST(NnapiSignatures, OneOperandOfAnotherTypeOneTooFewOrTooManyAtEveryLevel) {
  for (int n = 1; n <= 8; ++n) {
    Child child({"PINNACE_NNAPI_LEVEL=fl" + std::to_string(n)});
    if (!child.here()) continue;
    const int level = level_of(ANeuralNetworks_getRuntimeFeatureLevel());
    Tried tried;
    for (const Case& c : all_cases()) {
      const std::string T = c.type_list()[0].word;
      const Form form = form_of(c, T);
      mutate_types(c, form, T, level, tried);
      mutate_counts(c, form, T, level, tried);
    }
    EXPECT_GT(tried.refused, 18'000);
    return;
  }
}

TEST(NnapiSignatures, EveryTypeFromItsLevelOn) {
  for (int n = 1; n <= 8; ++n) {
    Child child({"PINNACE_NNAPI_LEVEL=fl" + std::to_string(n)});
    if (!child.here()) continue;
    const int level = level_of(ANeuralNetworks_getRuntimeFeatureLevel());
    Tried tried;
    for (const Case& c : all_cases()) {
      const auto types = c.type_list();
      for (const CaseType& type : kCaseTypes) {
        const Form form = form_of(c, type.word);
        const bool has_T = std::any_of(form.in.begin(), form.in.end(), [](const auto& o) { return o.is_T; });
        const auto listed =
            std::find_if(types.begin(), types.end(), [&](const auto& t) { return t.word == type.word; });
        if (listed == types.end()) continue;
        if (!has_T && listed != types.begin()) continue;
        tried.expect(code_of(c.name), form, level >= std::max(c.level, listed->level),
                     std::string(c.name) + " of " + type.word + " at level " + std::to_string(level));
      }
    }
    EXPECT_EQ(tried.refused == 0, level >= 7);
    EXPECT_GT(tried.accepted, 50);
    return;
  }
}

TEST(NnapiSignatures, WrongQuantisationParametersAtEveryLevel) {
  for (int n = 1; n <= 8; ++n) {
    Child child({"PINNACE_NNAPI_LEVEL=fl" + std::to_string(n)});
    if (!child.here()) continue;
    const int level = level_of(ANeuralNetworks_getRuntimeFeatureLevel());
    int tried = 0;
    for (const Case& c : all_cases()) {
      for (const WordAndLevel& T : c.type_list()) {
        const Form form = form_of(c, T.word);
        if (level < std::max(c.level, T.level)) continue;
        for (std::vector<CaseOperand> Form::* side : {&Form::in, &Form::out}) {
          for (size_t i = 0; i < (form.*side).size(); ++i) {
            const auto refused = [&](float scale, int32_t zero) {
              Form changed = form;
              (changed.*side)[i].scale = scale;
              (changed.*side)[i].zero = zero;
              EXPECT_EQ(add_operation(code_of(c.name), changed), std::nullopt)
                  << c.name << " of " << T.word << ", operand " << i << ": scale " << scale << ", zero point " << zero;
              ++tried;
            };
            const CaseOperand& o = (form.*side)[i];
            const std::string word = o.type->word;
            if (word == "i32") continue;  // a bias has a scale; nothing checks it when it is added
            refused(-1, 0);
            refused(NAN, 0);
            if (!quantised(word) || word == "q8c") {
              refused(1, 0);
              refused(0, 1);
              continue;
            }
            refused(0, 0);
            refused(1, word == "q16" ? 65536 : word == "q8" ? 256 : word == "q8s" ? 128 : 1);
            refused(1, word == "q8s" ? -129 : -1);
          }
        }
      }
    }
    EXPECT_GT(tried, 500);
    return;
  }
}

/// What addOperation says when the output has another scale than the line.
TEST(NnapiSignatures, RulesOnScalesOfOutputs) {
  for (int n : {1, 3, 8}) {
    Child child({"PINNACE_NNAPI_LEVEL=fl" + std::to_string(n)});
    if (!child.here()) continue;
    const int level = level_of(ANeuralNetworks_getRuntimeFeatureLevel());
    const std::set<std::string> same = {"PACK", "MIRROR_PAD", "REVERSE"};
    Tried tried;
    for (const Case& c : all_cases()) {
      for (const WordAndLevel& T : c.type_list()) {
        Form form = form_of(c, T.word);
        if (level < std::max(c.level, T.level) || !form.out[0].is_T || T.word[0] != 'q' || T.word == "q16") continue;
        const std::string name = c.name;
        const auto expect = [&](float scale, bool allowed) {
          form.out[0].scale = scale;
          tried.expect(code_of(name), form, allowed,
                       name + " of " + T.word + ", output scale " + std::to_string(scale));
        };
        const bool product = name == "FULLY_CONNECTED" || name == "CONV_2D" || name == "DEPTHWISE_CONV_2D";
        expect(2, !same.contains(name) && (name != "CONCATENATION" || level >= 3));
        // Inputs have a scale of 0.5.
        expect(0.25f, name != "MUL" && !same.contains(name) && ((!product && name != "CONCATENATION") || level >= 3));
      }
    }
    EXPECT_GT(tried.accepted, 10);
    EXPECT_GT(tried.refused, 0);
    return;
  }
}

TEST(NnapiSignatures, ChannelsOfFilters) {
  for (const auto& [name, right] :
       {std::pair{"CONV_2D", 0u}, {"DEPTHWISE_CONV_2D", 3u}, {"GROUPED_CONV_2D", 0u}, {"TRANSPOSE_CONV_2D", 0u}}) {
    const auto& cases = all_cases();
    const auto c = std::find_if(cases.begin(), cases.end(), [&](const Case& k) { return std::string(k.name) == name; });
    for (uint32_t dim = 0; dim < 4; ++dim) {
      Form form = form_of(*c, "q8");
      CaseOperand& filter = form.in[1];
      filter.type = &case_type("q8c");
      filter.scale = 0;
      filter.channel_dim = dim;
      filter.channel_scales.assign(filter.dims[dim], 0.5f);
      EXPECT_EQ(add_operation(code_of(name), form), dim == right ? 0 : ANEURALNETWORKS_BAD_DATA) << name << " " << dim;
    }
  }
}

}  // namespace
