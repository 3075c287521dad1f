// Runs grids: each threadgroup in turn, each of its invocations on a fiber where the kernel needs that they wait for
// each other. Barriers that not all reach, simd functions that part of a simdgroup reaches and races end the run with a
// reason.
#include "backends/softmetal/execution/engine.h"

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "backends/softmetal/execution/fiber.h"
#include "backends/softmetal/execution/kernel_table.h"
#include "backends/softmetal/execution/threadgroup_memory.h"
#include "base/process.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define PINNACE_FIBER_ASAN(statement) statement
#else
#define PINNACE_FIBER_ASAN(statement)
#endif

namespace softmetal {
namespace {

constexpr uint32_t kMaxInvocations = 1024, kMaxWidth = 64;

struct Fiber {
  enum State : uint8_t { kRunnable, kAtBarrier, kInSimd, kFinished };
  State state = kRunnable;
  bool orders_memory = false;  // the simd function that it waits in is a memory barrier
  int line = 0;                // where it waits
  uint32_t simd_calls = 0;     // publish() alternates between two sets of slots
  void* sp = nullptr;
  PINNACE_FIBER_ASAN(void* fake_stack = nullptr;)
};

// What lanes of a simdgroup did together since all of them had done the same.
struct Shared {
  struct Act {
    int line;
    uint64_t key;
    size_t at;  // of its result
  };
  std::vector<Act> acts;
  std::vector<char> results;
};

struct Engine {
  Stacks stacks;
  ThreadgroupMemory memory;
  Grid grid;
  Arguments arguments;
  const SoftmetalLaunch* launch = nullptr;
  const Kernel* kernel = nullptr;
  uint32_t invocations = 0;
  Invocation all[kMaxInvocations];
  Fiber fibers[kMaxInvocations];
  uint32_t order[kMaxInvocations];
  uint64_t slots[2][kMaxInvocations];
  uint64_t active[kMaxInvocations / 8];  // per simdgroup, lanes at the last release
  uint32_t simd_syncs[kMaxInvocations / 8];
  Shared shared[kMaxInvocations / 8];
  uint32_t acts_done[kMaxInvocations];  // of the simdgroup's acts, by each invocation
  bool acted = false;                   // there may be acts
  uint32_t current = 0;                 // the invocation that runs
  bool on_fiber = false, failed = false;
  uint64_t random = 0;
  void* main_sp = nullptr;
  jmp_buf escape;
  std::vector<SoftmetalBuffer> parameters;  // memory of [[threadgroup(n)]]
  PINNACE_FIBER_ASAN(void* main_fake_stack = nullptr; const void* main_stack = nullptr; size_t main_stack_bytes = 0;)
};

// Every access of threadgroup memory asks for it: 16 bytes that are found without a call.
__attribute__((tls_model("initial-exec"))) thread_local Engine* engine = nullptr;
thread_local const SoftmetalLaunch* constants_of = nullptr;

// Engines are kept for the next run: their stacks are mapped once.
constinit pinnace::PerProcess<std::vector<Engine*>> pool;

void say(const SoftmetalLaunch& launch, const char* format, ...) __attribute__((format(printf, 2, 3)));
void say(const SoftmetalLaunch& launch, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (launch.message && launch.message_bytes) vsnprintf(launch.message, launch.message_bytes, format, arguments);
  va_end(arguments);
}

void switch_to_main(Fiber& me, [[maybe_unused]] bool forever) {
  Engine& e = *engine;
  PINNACE_FIBER_ASAN(
      __sanitizer_start_switch_fiber(forever ? nullptr : &me.fake_stack, e.main_stack, e.main_stack_bytes);)
  pinnace_softmetal_switch(&me.sp, e.main_sp);
  PINNACE_FIBER_ASAN(__sanitizer_finish_switch_fiber(me.fake_stack, &e.main_stack, &e.main_stack_bytes);)
}

void fiber_entry() {
  Engine& e = *engine;
  PINNACE_FIBER_ASAN(__sanitizer_finish_switch_fiber(nullptr, &e.main_stack, &e.main_stack_bytes);)
  Fiber& me = e.fibers[e.current];
  e.kernel->invoke(e.arguments, e.all[e.current]);
  me.state = Fiber::kFinished;
  switch_to_main(me, true);
  __builtin_unreachable();
}

void yield(Fiber::State why, int line) {
  Fiber& me = engine->fibers[engine->current];
  me.state = why;
  me.line = line;
  switch_to_main(me, false);
}

void resume(Engine& e, uint32_t index) {
  e.current = index;
  e.on_fiber = true;
  PINNACE_FIBER_ASAN(__sanitizer_start_switch_fiber(&e.main_fake_stack, e.stacks.bottom(index), Stacks::kBytes);)
  pinnace_softmetal_switch(&e.main_sp, e.fibers[index].sp);
  PINNACE_FIBER_ASAN(__sanitizer_finish_switch_fiber(e.main_fake_stack, nullptr, nullptr);)
  e.on_fiber = false;
}

uint32_t next_random(Engine& e) {  // xorshift64*
  e.random ^= e.random >> 12;
  e.random ^= e.random << 25;
  e.random ^= e.random >> 27;
  return static_cast<uint32_t>((e.random * 0x2545f4914f6cdd1dull) >> 32);
}

void shuffle(Engine& e) {
  if (e.launch->order != kSoftmetalShuffled) return;
  for (uint32_t i = e.invocations; i > 1; --i) std::swap(e.order[i - 1], e.order[next_random(e) % i]);
}

void wrong(Engine& e, const char* format, ...) __attribute__((format(printf, 2, 3)));
void wrong(Engine& e, const char* format, ...) {
  if (e.failed) return;  // the first counts
  e.failed = true;
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const uint32_t* group = e.grid.group_in_grid;
  say(*e.launch, "kernel '%s', threadgroup (%u, %u, %u): %s", e.kernel->name, group[0], group[1], group[2], text);
}

// Whether all lanes of the simdgroup did the same things together; then they are forgotten. A lane that has returned
// took no part.
bool all_acted(Engine& e, uint32_t simdgroup) {
  Shared& shared = e.shared[simdgroup];
  if (shared.acts.empty()) return true;
  const uint32_t begin = simdgroup * e.grid.simd_width, end = std::min(e.invocations, begin + e.grid.simd_width);
  for (uint32_t i = begin; i < end; ++i) {
    if (e.acts_done[i] == shared.acts.size()) continue;
    wrong(e, "line %d: simd function reached by part of a simdgroup only", shared.acts[e.acts_done[i]].line);
    return false;
  }
  shared.acts.clear();
  shared.results.clear();
  std::fill(e.acts_done + begin, e.acts_done + end, 0);
  return true;
}

bool all_acted(Engine& e) {
  for (uint32_t s = 0; e.acted && s < e.grid.simdgroups; ++s) {
    if (!all_acted(e, s)) return false;
  }
  return true;
}

// Lets simdgroups go on of which all live lanes wait in the same simd function. False: none does, or a fault.
bool release_simdgroups(Engine& e) {
  bool released = false;
  for (uint32_t s = 0; s < e.grid.simdgroups; ++s) {
    const uint32_t begin = s * e.grid.simd_width, end = std::min(e.invocations, begin + e.grid.simd_width);
    uint64_t waiting = 0;
    uint32_t alive = 0, at_barrier = 0, lanes = 0;
    int line = 0;
    bool same = true, orders = false;
    for (uint32_t i = begin; i < end; ++i) {
      const Fiber& f = e.fibers[i];
      alive += f.state != Fiber::kFinished;
      at_barrier += f.state == Fiber::kAtBarrier;
      if (f.state != Fiber::kInSimd) continue;
      same = same && (lanes == 0 || f.line == line);
      line = f.line;
      orders = f.orders_memory;
      waiting |= uint64_t{1} << (i - begin);
      ++lanes;
    }
    if (!lanes) continue;
    if (at_barrier) {
      wrong(e, "line %d: simd function reached by part of a simdgroup only, the rest waits at a threadgroup barrier",
            line);
      return false;
    }
    if (!same) {
      wrong(e, "line %d: simd function reached by part of a simdgroup only, the rest waits in another", line);
      return false;
    }
    if (lanes != alive) continue;
    if (!all_acted(e, s)) return false;
    e.active[s] = waiting;
    if (orders) ++e.simd_syncs[s];
    for (uint32_t i = begin; i < end; ++i) {
      if (e.fibers[i].state == Fiber::kInSimd) e.fibers[i].state = Fiber::kRunnable;
    }
    released = true;
  }
  return released;
}

// One threadgroup of a kernel with fibers. False: a fault.
bool run_fibers(Engine& e) {
  for (uint32_t s = 0; e.acted && s < kMaxInvocations / 8; ++s) {  // those of a run that ended in a fault
    e.shared[s].acts.clear();
    e.shared[s].results.clear();
  }
  e.acted = false;
  for (uint32_t i = 0; i < e.invocations; ++i) {
    e.fibers[i].state = Fiber::kRunnable;
    e.fibers[i].simd_calls = 0;
    e.acts_done[i] = 0;
    e.fibers[i].sp = first_frame(e.stacks.bottom(i), fiber_entry);
  }
  for (;;) {
    for (uint32_t k = 0; k < e.invocations; ++k) {
      const uint32_t i = e.order[k];
      if (e.fibers[i].state != Fiber::kRunnable) continue;
      resume(e, i);
      if (e.failed) return false;
    }
    if (release_simdgroups(e)) continue;
    if (e.failed) return false;
    uint32_t finished = 0, at_barrier = 0;
    int line = 0;
    bool same = true;
    for (uint32_t i = 0; i < e.invocations; ++i) {
      const Fiber& f = e.fibers[i];
      finished += f.state == Fiber::kFinished;
      if (f.state != Fiber::kAtBarrier) continue;
      same = same && (at_barrier == 0 || f.line == line);
      line = f.line;
      ++at_barrier;
    }
    if (!all_acted(e)) return false;
    if (finished == e.invocations) return true;
    if (finished) {
      wrong(e, "line %d: threadgroup barrier after %u of %u invocations returned", line, finished, e.invocations);
      return false;
    }
    if (!same) {
      wrong(e, "line %d: threadgroup barrier that not all invocations reach, the rest waits at another", line);
      return false;
    }
    for (uint32_t i = 0; i < e.invocations; ++i) e.fibers[i].state = Fiber::kRunnable;
    e.memory.barrier();
    std::fill_n(e.simd_syncs, e.grid.simdgroups, 0);
    shuffle(e);
  }
}

// One threadgroup of a kernel whose invocations need not wait. False: a fault.
bool run_plain(Engine& e) {
  if (setjmp(e.escape)) return false;
  e.kernel->invoke_all(e.arguments, e.all, e.order, e.invocations);
  return true;
}

// The n-th threadgroup that runs, of `total`: in the shuffled order a step that has no divisor in common with their
// number visits each once.
uint64_t group_at(const SoftmetalLaunch& launch, uint64_t n, uint64_t total) {
  if (launch.order == kSoftmetalForward) return n;
  if (launch.order == kSoftmetalReverse) return total - 1 - n;
  uint64_t step = total / 2 + launch.seed % total + 1;
  const auto common = [](uint64_t a, uint64_t b) {
    while (b) a = std::exchange(b, a % b);
    return a;
  };
  while (common(step, total) != 1) ++step;
  return (n % total * (step % total) + launch.seed) % total;
}

bool run_grid(Engine& e) {
  const SoftmetalLaunch& launch = *e.launch;
  const uint64_t total = uint64_t{launch.groups[0]} * launch.groups[1] * launch.groups[2];
  for (uint64_t n = 0; n < total; ++n) {
    const uint64_t at = group_at(launch, n, total);
    e.grid.group_in_grid[0] = static_cast<uint32_t>(at % launch.groups[0]);
    e.grid.group_in_grid[1] = static_cast<uint32_t>(at / launch.groups[0] % launch.groups[1]);
    e.grid.group_in_grid[2] = static_cast<uint32_t>(at / launch.groups[0] / launch.groups[1]);
    e.memory.poison();
    for (const SoftmetalBuffer& p : e.parameters) memset(p.data, 0xff, p.bytes);
    std::fill_n(e.simd_syncs, e.grid.simdgroups, 0);
    shuffle(e);
    if (!(e.kernel->invoke ? run_fibers(e) : run_plain(e))) return false;
  }
  return true;
}

SoftmetalResult refuse(const SoftmetalLaunch& launch, const Kernel& kernel) {
  const uint32_t* size = launch.group_size;
  const uint64_t invocations = uint64_t{size[0]} * size[1] * size[2];
  if (invocations == 0 || invocations > kMaxInvocations || size[0] > kMaxInvocations || size[1] > kMaxInvocations) {
    say(launch, "kernel '%s': threadgroups of %u x %u x %u invocations, has 1 to %u", kernel.name, size[0], size[1],
        size[2], kMaxInvocations);
    return kSoftmetalRefused;
  }
  for (const uint32_t width : {8u, 16u, 32u, kMaxWidth}) {
    if (launch.simd_width == width && launch.order <= kSoftmetalShuffled) return kSoftmetalOk;
  }
  say(launch, "simd width %u, order %u: has widths 8, 16, 32, 64 and orders 0, 1, 2", launch.simd_width, launch.order);
  return kSoftmetalRefused;
}

void set_up(Engine& e, const Kernel& kernel, const SoftmetalLaunch& launch) {
  e.kernel = &kernel;
  e.launch = &launch;
  e.failed = false;
  e.random = launch.seed * 0x9e3779b97f4a7c15ull + 1;
  const uint32_t* size = launch.group_size;
  e.invocations = size[0] * size[1] * size[2];
  for (int d = 0; d < 3; ++d) {
    e.grid.group_size[d] = size[d];
    e.grid.groups[d] = launch.groups[d];
    e.grid.grid_size[d] = launch.groups[d] * size[d];
  }
  e.grid.simd_width = launch.simd_width;
  e.grid.simdgroups = (e.invocations + launch.simd_width - 1) / launch.simd_width;
  for (uint32_t i = 0; i < e.invocations; ++i) {
    e.all[i] = {{i % size[0], i / size[0] % size[1], i / size[0] / size[1]},
                i,
                i % launch.simd_width,
                i / launch.simd_width,
                &e.grid};
    e.order[i] = launch.order == kSoftmetalReverse ? e.invocations - 1 - i : i;
  }
  memcpy(e.arguments.buffers, launch.buffers, sizeof launch.buffers);
  PINNACE_FIBER_ASAN(for (uint32_t i = 0; kernel.invoke && i < e.invocations; ++i)  // red zones of abandoned fibers
                     ASAN_UNPOISON_MEMORY_REGION(e.stacks.bottom(i), Stacks::kBytes);)
}

// Memory for the [[threadgroup(n)]] parameters, which counts like the kernel's own.
SoftmetalResult set_up_parameters(Engine& e) {
  e.parameters.clear();
  memset(e.arguments.threadgroup, 0, sizeof e.arguments.threadgroup);
  for (uint32_t i = 0; i < kSoftmetalThreadgroups; ++i) {
    const uint32_t bytes = e.launch->threadgroup_bytes[i];
    if (!bytes) continue;
    void* at = e.memory.variable(63 - i, bytes, "[[threadgroup]] parameter");
    if (!at) {
      say(*e.launch, "kernel '%s': more than 32 KiB of threadgroup memory", e.kernel->name);
      return kSoftmetalRefused;
    }
    e.arguments.threadgroup[i] = {at, bytes};
  }
  return kSoftmetalOk;
}

SoftmetalResult run_with(Engine& e, const Kernel& kernel, const SoftmetalLaunch& launch) {
  const uint32_t invocations = launch.group_size[0] * launch.group_size[1] * launch.group_size[2];
  if (!e.memory.prepare(launch.races != 0) || (kernel.invoke && !e.stacks.reserve(invocations))) {
    say(launch, "kernel '%s': no memory for the stacks of %u invocations", kernel.name, invocations);
    return kSoftmetalNoMemory;
  }
  set_up(e, kernel, launch);
  if (const SoftmetalResult result = set_up_parameters(e); result != kSoftmetalOk) return result;
  return run_grid(e) ? kSoftmetalOk : kSoftmetalFault;
}

const char* name_of(uint32_t index) {
  return index < kernel_count ? kernel_table[index]->name : nullptr;
}

SoftmetalResult run_kernel(uint32_t index, const SoftmetalLaunch* launch) {
  if (index >= kernel_count) {
    say(*launch, "kernel %u: there are %u", index, kernel_count);
    return kSoftmetalRefused;
  }
  const Kernel& kernel = *kernel_table[index];
  if (const SoftmetalResult refused = refuse(*launch, kernel); refused != kSoftmetalOk) return refused;
  // Function constants are variables of the kernel's file, so two runs of one kernel take turns; each writes them anew.
  static auto* turns = new pinnace::ProcessMutex[kernel_count];
  const pinnace::ProcessLockAnew turn(turns[index]);
  Engine* mine = nullptr;
  if (const auto free = pool.lock(); !free->empty()) {
    mine = free->back();
    free->pop_back();
  }
  if (!mine) mine = new (std::nothrow) Engine;
  if (!mine) {
    say(*launch, "kernel '%s': no memory for its invocations", kernel.name);
    return kSoftmetalNoMemory;
  }
  Engine* outer = std::exchange(engine, mine);
  constants_of = launch;
  kernel.specialise();
  const SoftmetalResult result = run_with(*mine, kernel, *launch);
  engine = outer;
  pool.lock()->push_back(mine);
  return result;
}

}  // namespace

const uint32_t* function_constant(uint32_t id) {
  for (size_t i = 0; i < constants_of->constant_count; ++i) {
    if (constants_of->constants[i].id == id) return &constants_of->constants[i].bits;
  }
  return nullptr;
}

void fault(int line, const char* format, ...) {
  Engine& e = *engine;
  char text[240];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (e.on_fiber) {
    const uint32_t* at = e.all[e.current].thread_in_group;
    wrong(e, "line %d: %s, invocation (%u, %u, %u)", line, text, at[0], at[1], at[2]);
    switch_to_main(e.fibers[e.current], true);
  }
  wrong(e, "line %d: %s", line, text);
  longjmp(e.escape, 1);
}

void threadgroup_barrier(int line) {
  yield(Fiber::kAtBarrier, line);
}

void simdgroup_barrier(bool memory, int line) {
  engine->fibers[engine->current].orders_memory = memory;
  yield(Fiber::kInSimd, line);
}

const Invocation& self() {
  return engine->all[engine->current];
}

Lanes publish(const void* value, uint32_t bytes, int line) {
  Engine& e = *engine;
  const uint32_t me = e.current;
  // No lane can be two calls ahead of another, so what the last call showed may still be read, and the one before not.
  uint64_t* slots = e.slots[e.fibers[me].simd_calls++ & 1];
  slots[me] = 0;
  memcpy(&slots[me], value, bytes);
  e.fibers[me].orders_memory = false;
  yield(Fiber::kInSimd, line);
  const uint32_t group = e.all[me].simdgroup;
  return {slots + group * e.grid.simd_width, e.active[group]};
}

Together together(uint64_t key, uint32_t bytes, int line) {
  Engine& e = *engine;
  Shared& shared = e.shared[e.all[e.current].simdgroup];
  const uint32_t number = e.acts_done[e.current]++;
  const bool first = number == shared.acts.size();
  e.acted = true;
  if (first) {
    shared.acts.push_back({line, key, shared.results.size()});
    shared.results.resize(shared.results.size() + (bytes + 15) / 16 * 16);
  }
  const Shared::Act& act = shared.acts[number];
  if (act.line != line)
    fault(line, "simd function reached by part of a simdgroup only, the rest is at line %d", act.line);
  if (act.key != key) fault(line, "the lanes of a simdgroup do not agree on an operand");
  return {shared.results.data() + act.at, first};
}

void* threadgroup_variable(uint32_t key, uint32_t bytes, const char* name, int line) {
  if (void* at = engine->memory.variable(key, bytes, name)) return at;
  fault(line, "more than 32 KiB of threadgroup memory: '%s' has %u bytes, %u are taken", name, bytes,
        engine->memory.used());
}

namespace {

void note(const void* address, ThreadgroupMemory::Kind kind, int line) {
  Engine& e = *engine;
  const Invocation& me = e.all[e.current];
  const auto by = ThreadgroupMemory::Access{static_cast<uint16_t>(me.index), static_cast<uint16_t>(me.simdgroup),
                                            e.simd_syncs[me.simdgroup]};
  ThreadgroupMemory::Access other;
  ThreadgroupMemory::Kind other_kind{};
  if (e.memory.note(address, kind, by, &other, &other_kind)) return;
  constexpr const char* kDone[] = {"read", "written", "changed by an atomic"};
  const ThreadgroupMemory::Variable* v = e.memory.find(address);
  const uint32_t* at = e.all[other.invocation].thread_in_group;
  fault(line, "race: '%s' at byte %d is %s here and was %s by invocation (%u, %u, %u), with no barrier between",
        v ? v->name : "?", v ? static_cast<int>(static_cast<const char*>(address) - e.memory.data() - v->begin) : 0,
        kDone[kind], kDone[other_kind], at[0], at[1], at[2]);
}

}  // namespace

void note_read(const void* address, int line) {
  note(address, ThreadgroupMemory::kRead, line);
}
void note_write(const void* address, int line) {
  note(address, ThreadgroupMemory::kWrite, line);
}
void note_atomic(const void* address, int line) {
  note(address, ThreadgroupMemory::kAtomic, line);
}

Range range_of(const void* address) {
  const Engine& e = *engine;
  const char* at = static_cast<const char*>(address);
  for (const SoftmetalBuffer& b : e.arguments.buffers) {
    const char* begin = static_cast<const char*>(b.data);
    if (begin && at >= begin && at < begin + b.bytes) return {begin, begin + b.bytes};
  }
  if (const ThreadgroupMemory::Variable* v = e.memory.find(address)) {
    return {e.memory.data() + v->begin, e.memory.data() + v->begin + v->bytes};
  }
  return {at, at};
}

}  // namespace softmetal

extern "C" __attribute__((visibility("default"))) const SoftmetalLibrary* pinnace_softmetal() {
#if defined(__x86_64__)  // what cmake/softmetal.cmake compiles kernels for
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
    return nullptr;
#endif
  static const SoftmetalLibrary library{SOFTMETAL_INTERFACE, softmetal::kernel_count, softmetal::name_of,
                                        softmetal::run_kernel};
  return &library;
}
