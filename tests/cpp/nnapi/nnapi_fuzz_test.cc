// Fuzz of libneuralnetworks.so: damaged models and random sequences of calls. Every call gives a result code, and
// sanitizers judge the rest. PINNACE_TEST_SEED moves it; PINNACE_FUZZ_SECONDS makes it longer (scripts/soak.py). Should
// a round end the process, <scratch folder>/nnapi_fuzz_<process> holds its number, and PINNACE_FUZZ_ROUND repeats it.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>

#include "cpp/nnapi/nnapi_case.h"
#include "cpp/nnapi/nnapi_client.h"
#include "cpp/scratch_folder.h"
#include "nnapi/operations.h"

namespace {

using namespace nnapi_client;

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* value = std::getenv(variable);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint32_t below(size_t end) { return end ? static_cast<uint32_t>(engine_() % end) : 0; }
  bool one_in(uint32_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937_64 engine_;
};

/// Rounds that are run even where they take longer than the time: a machine with much else to do is no failure.
constexpr uint64_t kFewestRounds = 20;

/// Runs rounds until the time is up, each with randomness of its own.
void fuzz(const char* name, const std::function<void(Random&)>& round) {
  const uint64_t seed = number_of("PINNACE_TEST_SEED", 1), only = number_of("PINNACE_FUZZ_ROUND", 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(number_of("PINNACE_FUZZ_SECONDS", 2));
  const std::filesystem::path note = pinnace::testing::scratch_folder() / ("nnapi_fuzz_" + std::to_string(getpid()));
  const int file = open(note.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const auto more = [&](uint64_t i) {
    return only ? i == only : i <= kFewestRounds || std::chrono::steady_clock::now() < end;
  };
  for (uint64_t i = only ? only : 1; more(i); ++i) {
    const std::string text =
        std::string(name) + ", seed " + std::to_string(seed) + ", round " + std::to_string(i) + "\n";
    EXPECT_EQ(pwrite(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    Random random(seed * 1'000'003 + i);
    round(random);
    if (testing::Test::HasFailure()) {
      FAIL() << text;
    }
  }
  close(file);
  std::filesystem::remove(note);
}

void expect_code(int code, const char* what) {
  EXPECT_TRUE(code >= 0 && code <= 14) << what << " gave " << code;
}

// --------------------------------------------------------------------------------------------- damaged models

constexpr double kOddNumbers[] = {-2147483648.0, -7, -2, -1, 0, 1, 2, 3, 4, 5, 16, 33, 999, 2147483647.0};

/// One case of the table with values, types, shapes and operands changed.
class DamagedModel {
 public:
  explicit DamagedModel(Random& random) : random_(random) {}

  void run() {
    const Case& c = random_.of(all_cases());
    const auto types = c.type_list();
    const std::string T = types[random_.below(types.size())].word;
    in_ = CaseReader(c.inputs, T).read();
    out_ = CaseReader(c.outputs, T).read();
    for (uint32_t changes = random_.below(4); changes > 0; --changes) change();
    if (!build(c)) return;
    ANeuralNetworksCompilation* compilation = nullptr;
    expect_code(ANeuralNetworksCompilation_create(b_.model, &compilation), "create");
    if (!compilation) return;
    const int finished = ANeuralNetworksCompilation_finish(compilation);
    expect_code(finished, "finish");
    if (finished == 0) {
      for (int runs = 0; runs < 2; ++runs) compute(compilation);
    }
    ANeuralNetworksCompilation_free(compilation);
  }

 private:
  CaseOperand& any() {
    auto& side = random_.one_in(4) ? out_ : in_;
    return side[random_.below(side.size())];
  }
  void change() {
    CaseOperand& o = any();
    switch (random_.below(7)) {
      case 0:  // a value
      case 1:
        if (!o.values.empty())
          o.values[random_.below(o.values.size())] = kOddNumbers[random_.below(std::size(kOddNumbers))];
        break;
      case 2:  // a dimension
        if (o.tensor()) resize(o, random_.below(o.dims.size()), random_.below(5));
        break;
      case 3:  // the rank
        if (o.tensor() && random_.one_in(2)) {
          o.dims.pop_back();
        } else if (o.tensor()) {
          o.dims.push_back(1);
        }
        break;
      case 4:
        o.omitted = true;
        break;
      case 5:
        if (quantised(o.type->word)) o.scale = static_cast<float>(random_.below(100)) * 0.01f;
        break;
      default:
        std::swap(o, any());
    }
    if (!o.tensor() && !o.values.empty()) o.values.erase(o.values.begin() + 1, o.values.end());
  }
  static void resize(CaseOperand& o, uint32_t dim, uint32_t size) {
    o.dims[dim] = size;
    size_t count = 1;
    for (uint32_t d : o.dims) count *= d;
    const double last = o.values.empty() ? 1 : o.values.back();
    o.values.resize(count, last);
  }

  int32_t add(const CaseOperand& o) {
    const ANeuralNetworksOperandType type{o.type->code, static_cast<uint32_t>(o.dims.size()),
                                          o.dims.empty() ? nullptr : o.dims.data(), o.scale, o.zero};
    if (ANeuralNetworksModel_addOperand(b_.model, &type) != 0) return -1;
    const auto index = static_cast<int32_t>(b_.operands++);
    if (!o.channel_scales.empty()) {
      const ANeuralNetworksSymmPerChannelQuantParams q{o.channel_dim, static_cast<uint32_t>(o.channel_scales.size()),
                                                       o.channel_scales.data()};
      expect_code(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(b_.model, index, &q), "scales");
    }
    return index;
  }
  bool build(const Case& c) {
    std::vector<uint32_t> in, out;
    for (size_t i = 0; i < in_.size(); ++i) {
      const int32_t index = add(in_[i]);
      if (index < 0) return false;
      in.push_back(static_cast<uint32_t>(index));
      if (!in_[i].omitted && (inputs_.empty() || random_.one_in(2))) {
        inputs_.push_back(in.back());
        given_.push_back(i);
        continue;
      }
      const auto& bytes = b_.kept.emplace_back(in_[i].omitted ? std::vector<std::byte>() : in_[i].bytes());
      const int code =
          ANeuralNetworksModel_setOperandValue(b_.model, index, bytes.empty() ? nullptr : bytes.data(), bytes.size());
      expect_code(code, "value");
      if (code != 0) return false;
    }
    for (const CaseOperand& o : out_) {
      const int32_t index = add(o);
      if (index < 0) return false;
      out.push_back(static_cast<uint32_t>(index));
    }
    const auto all = pinnace::nnapi::all_operations();
    const auto op = std::find_if(all.begin(), all.end(), [&](const auto& o) { return std::string(o.name) == c.name; });
    const auto count = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
    const int added =
        ANeuralNetworksModel_addOperation(b_.model, op->code, count(in), in.data(), count(out), out.data());
    expect_code(added, "operation");
    if (added != 0 || inputs_.empty()) return false;
    expect_code(
        ANeuralNetworksModel_identifyInputsAndOutputs(b_.model, count(inputs_), inputs_.data(), count(out), out.data()),
        "identify");
    const int finished = ANeuralNetworksModel_finish(b_.model);
    expect_code(finished, "finish");
    return finished == 0;
  }
  void compute(ANeuralNetworksCompilation* compilation) {
    ANeuralNetworksExecution* execution = nullptr;
    if (ANeuralNetworksExecution_create(compilation, &execution) != 0) return;
    std::vector<std::vector<std::byte>> kept;
    for (size_t k = 0; k < given_.size(); ++k) {
      CaseOperand o = in_[given_[k]];
      if (random_.one_in(4) && !o.values.empty()) o.values[0] = kOddNumbers[random_.below(std::size(kOddNumbers))];
      const auto& bytes = kept.emplace_back(o.bytes());
      expect_code(ANeuralNetworksExecution_setInput(execution, static_cast<int32_t>(k), nullptr,
                                                    bytes.empty() ? nullptr : bytes.data(), bytes.size()),
                  "input");
    }
    for (size_t k = 0; k < out_.size(); ++k) {
      auto& bytes = kept.emplace_back(std::max<size_t>(1, out_[k].bytes().size()));
      expect_code(
          ANeuralNetworksExecution_setOutput(execution, static_cast<int32_t>(k), nullptr, bytes.data(), bytes.size()),
          "output");
    }
    expect_code(ANeuralNetworksExecution_compute(execution), "compute");
    ANeuralNetworksExecution_free(execution);
  }

  Random& random_;
  std::vector<CaseOperand> in_, out_;
  std::vector<uint32_t> inputs_;
  std::vector<size_t> given_;
  Builder b_;
};

TEST(NnapiFuzz, DamagedModels) {
  fuzz("DamagedModels", [](Random& random) { DamagedModel(random).run(); });
}

// -------------------------------------------------------------------------------------------- sequences of calls

/// Calls in any order, right and wrong, on objects that are alive. Only lifetimes are kept to: what is needed by
/// something else is not freed, and what computes is waited for first.
class Calls {
 public:
  explicit Calls(Random& random) : random_(random) {}
  ~Calls() {
    for (Event& e : events_) ANeuralNetworksEvent_wait(e.event);
    for (Event& e : events_) ANeuralNetworksEvent_free(e.event);
    for (auto& r : runs_) ANeuralNetworksExecution_free(r->execution);
    for (ANeuralNetworksBurst* b : bursts_) ANeuralNetworksBurst_free(b);
    for (ANeuralNetworksMemory* m : memories_) ANeuralNetworksMemory_free(m);
    for (ANeuralNetworksMemoryDesc* d : descs_) ANeuralNetworksMemoryDesc_free(d);
    for (ANeuralNetworksCompilation* c : compilations_) ANeuralNetworksCompilation_free(c);
  }

  void run() {
    for (int steps = 0; steps < 120; ++steps) step();
  }

 private:
  struct Run {
    ANeuralNetworksExecution* execution = nullptr;
    std::vector<std::unique_ptr<std::byte[]>> buffers = {};
  };
  struct Event {
    ANeuralNetworksEvent* event;
    const Run* run;  ///< null: a client's fence
  };

  void step() {
    switch (random_.below(20)) {
      case 0:
        return make_model();
      case 1:
      case 2:
        return make_compilation();
      case 3:
        return change_compilation();
      case 4:
      case 5:
        return make_run();
      case 6:
      case 7:
      case 8:
      case 9:
        return bind();
      case 10:
        return change_run();
      case 11:
      case 12:
      case 13:
        return compute();
      case 14:
        return ask();
      case 15:
        return wait_or_fence();
      case 16:
        return make_memory();
      case 17:
        return describe();
      case 18:
        return copy();
      default:
        return wrong();
    }
  }
  void code(int result, const char* what) { expect_code(result, what); }

  /// A model of a chain of elementwise operations; now and then of a dynamic shape, or not finished.
  void make_model() {
    if (models_.size() >= 4) return;
    auto b = std::make_unique<Builder>();
    const uint32_t size = random_.one_in(3) ? 0 : 4, x = b->operand(kTensorFloat32, {size}), act = b->scalar(0);
    uint32_t last = x;
    for (uint32_t i = 0; i <= random_.below(3); ++i) {
      const uint32_t next = b->operand(kTensorFloat32, {size});
      random_.one_in(2) ? b->add(kAdd, {last, x, act}, {next}) : b->add(28, {last}, {next});
      last = next;
    }
    if (!random_.one_in(6)) b->finish({x}, {last});
    models_.push_back(std::move(b));
  }
  void make_compilation() {
    if (models_.empty() || compilations_.size() >= 6) return;
    ANeuralNetworksModel* model = random_.of(models_)->model;
    ANeuralNetworksDevice* device = nullptr;
    code(ANeuralNetworks_getDevice(random_.one_in(2) ? 0 : 99, &device), "getDevice");
    ANeuralNetworksCompilation* c = nullptr;
    const bool chosen = random_.one_in(2);
    code(chosen ? ANeuralNetworksCompilation_createForDevices(model, &device, random_.below(2), &c)
                : ANeuralNetworksCompilation_create(model, &c),
         "compilation");
    if (!c) return;
    compilations_.push_back(c);
    if (random_.one_in(2)) code(ANeuralNetworksCompilation_finish(c), "finish");
  }
  void change_compilation() {
    if (compilations_.empty()) return;
    ANeuralNetworksCompilation* c = random_.of(compilations_);
    uint32_t value = 0;
    code(ANeuralNetworksCompilation_setPreference(c, static_cast<int32_t>(random_.below(5)) - 1), "preference");
    code(ANeuralNetworksCompilation_setPriority(c, random_.one_in(2) ? 100 : 1), "priority");
    code(ANeuralNetworksCompilation_setTimeout(c, random_.one_in(2) ? 0 : 1'000'000'000), "time-out");
    code(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(c, random_.below(3), &value), "alignment");
    code(ANeuralNetworksCompilation_finish(c), "finish");
  }
  void make_run() {
    if (compilations_.empty() || runs_.size() >= 12) return;
    auto run = std::make_unique<Run>();
    ANeuralNetworksCompilation* c = random_.of(compilations_);
    code(ANeuralNetworksExecution_create(c, &run->execution), "execution");
    if (run->execution) runs_.push_back(std::move(run));
    ANeuralNetworksBurst* burst = nullptr;
    if (bursts_.size() < 4) code(ANeuralNetworksBurst_create(c, &burst), "burst");
    if (burst) bursts_.push_back(burst);
  }
  void bind() {
    if (runs_.empty()) return;
    Run& run = *random_.of(runs_);
    const auto index = static_cast<int32_t>(random_.one_in(8) ? random_.below(3) - 1 : 0);
    const uint32_t dims[2] = {random_.one_in(8) ? random_.below(9) : 4, 1};
    const ANeuralNetworksOperandType type{random_.one_in(8) ? static_cast<int32_t>(random_.below(17)) : kTensorFloat32,
                                          random_.one_in(8) ? 2u : 1u, dims, 0, 0};
    const size_t length = random_.one_in(6) ? random_.below(40) : 16;
    const ANeuralNetworksOperandType* t = random_.one_in(3) ? nullptr : &type;
    if (!memories_.empty() && random_.one_in(3)) {
      const ANeuralNetworksMemory* memory = random_.of(memories_);
      const size_t offset = random_.one_in(3) ? random_.below(80) : 0, part = random_.one_in(2) ? 0 : length;
      code(random_.one_in(2)
               ? ANeuralNetworksExecution_setInputFromMemory(run.execution, index, t, memory, offset, part)
               : ANeuralNetworksExecution_setOutputFromMemory(run.execution, index, t, memory, offset, part),
           "memory");
      return;
    }
    auto& buffer = run.buffers.emplace_back(std::make_unique<std::byte[]>(std::max<size_t>(1, length)));
    void* data = random_.one_in(10) ? nullptr : buffer.get();
    code(random_.one_in(2) ? ANeuralNetworksExecution_setInput(run.execution, index, t, data, length)
                           : ANeuralNetworksExecution_setOutput(run.execution, index, t, data, length),
         "binding");
  }
  void change_run() {
    if (runs_.empty()) return;
    ANeuralNetworksExecution* e = random_.of(runs_)->execution;
    switch (random_.below(5)) {
      case 0:
        return code(ANeuralNetworksExecution_setReusable(e, !random_.one_in(4)), "reusable");
      case 1:
        return code(ANeuralNetworksExecution_setTimeout(e, random_.one_in(3) ? 1 : 1'000'000'000), "time-out");
      case 2:
        return code(ANeuralNetworksExecution_setMeasureTiming(e, true), "timing");
      case 3:
        return code(ANeuralNetworksExecution_enableInputAndOutputPadding(e, random_.one_in(2)), "padding");
      default:
        return code(ANeuralNetworksExecution_setLoopTimeout(e, random_.below(1000)), "loop");
    }
  }
  void compute() {
    if (runs_.empty()) return;
    const Run& run = *random_.of(runs_);
    ANeuralNetworksEvent* event = nullptr;
    switch (random_.below(4)) {
      case 0:
        return code(ANeuralNetworksExecution_compute(run.execution), "compute");
      case 1:
        if (!bursts_.empty()) code(ANeuralNetworksExecution_burstCompute(run.execution, random_.of(bursts_)), "burst");
        return;
      case 2:
        code(ANeuralNetworksExecution_startCompute(run.execution, &event), "start");
        break;
      default: {
        std::vector<const ANeuralNetworksEvent*> before;
        for (const Event& e : events_) {
          if (random_.one_in(2)) before.push_back(e.event);
        }
        code(ANeuralNetworksExecution_startComputeWithDependencies(run.execution, before.data(),
                                                                   static_cast<uint32_t>(before.size()),
                                                                   random_.one_in(3) ? 1'000'000 : 0, &event),
             "fenced");
      }
    }
    if (event) events_.push_back({event, &run});
  }
  void ask() {
    if (runs_.empty()) return;
    const Run& run = *random_.of(runs_);
    uint32_t rank = 0, dims[8] = {};
    uint64_t ns = 0;
    code(ANeuralNetworksExecution_getOutputOperandRank(run.execution, static_cast<int32_t>(random_.below(2)), &rank),
         "rank");
    code(ANeuralNetworksExecution_getOutputOperandDimensions(run.execution, 0, dims), "dimensions");
    code(ANeuralNetworksExecution_getDuration(run.execution, static_cast<int32_t>(random_.below(5)), &ns), "duration");
    // Some go: what computes is waited for, and its events are no longer asked for.
    if (!random_.one_in(3)) return;
    for (Event& e : events_) {
      if (e.run == &run) code(ANeuralNetworksEvent_wait(e.event), "wait");
    }
    for (Event& e : events_) {
      if (e.run == &run) e.run = nullptr;
    }
    ANeuralNetworksExecution_free(run.execution);
    std::erase_if(runs_, [&](const auto& r) { return r.get() == &run; });
  }
  void wait_or_fence() {
    if (events_.size() < 6 && random_.one_in(2)) {
      const int fd = eventfd(1, EFD_CLOEXEC);  // signalled already: nothing can wait for ever
      ANeuralNetworksEvent* event = nullptr;
      code(ANeuralNetworksEvent_createFromSyncFenceFd(random_.one_in(5) ? -1 : fd, &event), "fence");
      close(fd);
      if (event) events_.push_back({event, nullptr});
      return;
    }
    if (events_.empty()) return;
    const uint32_t i = random_.below(events_.size());
    int fd = -1;
    code(ANeuralNetworksEvent_getSyncFenceFd(events_[i].event, &fd), "descriptor");
    if (fd >= 0) close(fd);
    code(ANeuralNetworksEvent_wait(events_[i].event), "wait");
    ANeuralNetworksEvent_free(events_[i].event);
    events_.erase(events_.begin() + i);
  }
  void make_memory() {
    if (memories_.size() >= 6) return;
    const int fd = memfd_create("nnapi", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, 64), 0);
    ANeuralNetworksMemory* memory = nullptr;
    code(ANeuralNetworksMemory_createFromFd(random_.one_in(6) ? 65 : 64, PROT_READ | PROT_WRITE,
                                            random_.one_in(6) ? -1 : fd, random_.one_in(6) ? 3 : 0, &memory),
         "memory");
    close(fd);
    if (memory) memories_.push_back(memory);
  }
  void describe() {
    if (compilations_.empty() || descs_.size() >= 6) return;
    ANeuralNetworksMemoryDesc* desc = nullptr;
    code(ANeuralNetworksMemoryDesc_create(&desc), "descriptor");
    descs_.push_back(desc);
    const uint32_t dims[1] = {random_.one_in(4) ? random_.below(9) : 4};
    for (uint32_t roles = random_.below(3); roles > 0; --roles) {
      const ANeuralNetworksCompilation* c = random_.of(compilations_);
      code(random_.one_in(2) ? ANeuralNetworksMemoryDesc_addInputRole(desc, c, random_.below(2), 1)
                             : ANeuralNetworksMemoryDesc_addOutputRole(desc, c, random_.below(2), 0.5f),
           "role");
    }
    if (random_.one_in(2)) code(ANeuralNetworksMemoryDesc_setDimensions(desc, random_.below(2), dims), "dimensions");
    code(ANeuralNetworksMemoryDesc_finish(desc), "finish");
    ANeuralNetworksMemory* memory = nullptr;
    code(ANeuralNetworksMemory_createFromDesc(desc, &memory), "memory of a descriptor");
    if (memory) memories_.push_back(memory);
  }
  void copy() {
    if (memories_.empty()) return;
    code(ANeuralNetworksMemory_copy(random_.of(memories_), random_.of(memories_)), "copy");
  }
  /// Calls on a model that are mostly refused.
  void wrong() {
    if (models_.empty()) return;
    ANeuralNetworksModel* model = random_.of(models_)->model;
    const uint32_t list[3] = {random_.below(8), random_.below(8), random_.below(8)};
    const float values[4] = {};
    const auto index = static_cast<int32_t>(random_.below(8)) - 1;
    code(ANeuralNetworksModel_setOperandValue(model, index, values, random_.below(17)), "value");
    code(ANeuralNetworksModel_addOperation(model, static_cast<int32_t>(random_.below(107)), random_.below(4), list, 1,
                                           list + random_.below(3)),
         "operation");
    if (!memories_.empty()) {
      const ANeuralNetworksMemory* memory = random_.of(memories_);
      code(ANeuralNetworksModel_setOperandValueFromMemory(model, index, memory, random_.below(70), 16), "value");
    }
    code(ANeuralNetworksModel_setOperandValueFromModel(model, index, random_.of(models_)->model), "model");
    code(ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, list, 1, list + 1), "identify");
    if (random_.one_in(3)) code(ANeuralNetworksModel_finish(model), "finish");
  }

  Random& random_;
  std::vector<std::unique_ptr<Builder>> models_;  // freed after everything that the destructor frees
  std::vector<ANeuralNetworksCompilation*> compilations_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::vector<ANeuralNetworksBurst*> bursts_;
  std::vector<ANeuralNetworksMemory*> memories_;
  std::vector<ANeuralNetworksMemoryDesc*> descs_;
  std::vector<Event> events_;
};

TEST(NnapiFuzz, SequencesOfCalls) {
  fuzz("SequencesOfCalls", [](Random& random) { Calls(random).run(); });
}

}  // namespace
