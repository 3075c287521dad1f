// What this machine can do at most, measured: multiply-adds a second for each instruction set, bytes a second for each
// level of memory. `pinnace-peak THREADS` prints one object of JSON; shares of a peak are quoted against it. Loops are
// assembly, because compilers spill or fold such loops; each keeps twelve independent sums, which hides the latency of
// two units of four cycles. Every figure is the best of several short runs on all threads at once.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace {

constexpr int kRuns = 9;
constexpr double kSecondsPerRun = 0.008;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs work(thread, rounds) on all threads, with as many rounds as take kSecondsPerRun; the most rounds a second, all
// threads together, over kRuns runs.
template <class Work>
double rounds_per_second(int threads, const Work& work) {
  int64_t rounds = 1;
  for (;;) {
    const double start = now();
    work(0, rounds);
    const double taken = now() - start;
    if (taken >= kSecondsPerRun) break;
    rounds = taken < kSecondsPerRun / 100
                 ? rounds * 50
                 : static_cast<int64_t>(static_cast<double>(rounds) * kSecondsPerRun / taken * 1.2) + 1;
  }
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::atomic<int> waiting = threads;
    std::vector<double> starts(threads), ends(threads);
    auto turn = [&](int thread) {
      waiting.fetch_sub(1);
      while (waiting.load() > 0) {
      }
      starts[thread] = now();
      work(thread, rounds);
      ends[thread] = now();
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(turn, t);
    turn(0);
    for (std::thread& t : others) t.join();
    const double taken = *std::max_element(ends.begin(), ends.end()) - *std::min_element(starts.begin(), starts.end());
    best = std::max(best, static_cast<double>(rounds) * threads / taken);
  }
  return best;
}

struct Arithmetic {
  const char* level;  // as pinnace calls it
  const char* what;   // "f32" or "i8"
  double operations;  // of one round: a multiply-add counts as two
  bool (*runs_here)();
  void (*rounds)(int64_t count);
};

// One round is eight times one instruction sequence for each of twelve sums.
#define PEAK_TIMES_12(line)                                                                                      \
  line("0") line("1") line("2") line("3") line("4") line("5") line("6") line("7") line("8") line("9") line("10") \
      line("11")
#define PEAK_LOOP(name, zero, line, ...)                                                                           \
  void name(int64_t count) {                                                                                       \
    asm volatile(zero);                                                                                            \
    for (int64_t i = 0; i < count; ++i) asm volatile(".rept 8\n" PEAK_TIMES_12(line) ".endr\n" : : : __VA_ARGS__); \
  }

#if defined(__x86_64__)
#define PEAK_REGISTERS                                                                                                \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15"
#define PEAK_FMA_512(n) "vfmadd231ps %%zmm12, %%zmm13, %%zmm" n "\n"
#define PEAK_FMA_256(n) "vfmadd231ps %%ymm12, %%ymm13, %%ymm" n "\n"
#define PEAK_DOT_512(n) "vpdpbusd %%zmm12, %%zmm13, %%zmm" n "\n"
#define PEAK_DOT_256(n) \
  "vpmaddubsw %%ymm12, %%ymm13, %%ymm14\nvpmaddwd %%ymm14, %%ymm13, %%ymm14\nvpaddd %%ymm14, %%ymm" n ", %%ymm" n "\n"
// A product and a sum of their own, as SSE2 has nothing fused; the product does not wait for the sum.
#define PEAK_MUL_ADD_128(n) "movaps %%xmm12, %%xmm14\nmulps %%xmm13, %%xmm14\naddps %%xmm14, %%xmm" n "\n"
// Denormals and infinities would be slow: all registers are zero.
#define PEAK_ZERO_VEX "vzeroall\n"
#define PEAK_ZERO_SSE "xorps %%xmm12, %%xmm12\nxorps %%xmm13, %%xmm13\n"
PEAK_LOOP(fma_512, PEAK_ZERO_VEX, PEAK_FMA_512, PEAK_REGISTERS)
PEAK_LOOP(fma_256, PEAK_ZERO_VEX, PEAK_FMA_256, PEAK_REGISTERS)
PEAK_LOOP(dot_512, PEAK_ZERO_VEX, PEAK_DOT_512, PEAK_REGISTERS)
PEAK_LOOP(dot_256, PEAK_ZERO_VEX, PEAK_DOT_256, PEAK_REGISTERS)

void mul_add_128(int64_t count) {
  // Sums start from whatever the registers hold, so each is made zero first.
  asm volatile(
#define PEAK_CLEAR(n) "xorps %%xmm" n ", %%xmm" n "\n"
      PEAK_TIMES_12(PEAK_CLEAR) PEAK_ZERO_SSE
      :
      :
      : PEAK_REGISTERS);
  for (int64_t i = 0; i < count; ++i)
    asm volatile(".rept 8\n" PEAK_TIMES_12(PEAK_MUL_ADD_128) ".endr\n" : : : PEAK_REGISTERS);
}

const Arithmetic kArithmetic[] = {
    {"generic", "f32", 8 * 12 * 8, [] { return true; }, mul_add_128},
    {"avx2", "f32", 8 * 12 * 16, [] { return __builtin_cpu_supports("fma") != 0; }, fma_256},
    {"avx2", "i8", 8 * 12 * 64, [] { return __builtin_cpu_supports("avx2") != 0; }, dot_256},
    {"avx512", "f32", 8 * 12 * 32, [] { return __builtin_cpu_supports("avx512f") != 0; }, fma_512},
    {"avx512_vnni", "i8", 8 * 12 * 128, [] { return __builtin_cpu_supports("avx512vnni") != 0; }, dot_512},
};

// 1024 bytes at a time. Registers of 32 bytes: two loads a cycle fill the nearest cache's ports on all that have AVX.
void read_bytes(const char* p, size_t bytes) {
  if (__builtin_cpu_supports("avx")) {
    for (size_t i = 0; i < bytes; i += 1024)
      asm volatile(
          ".set at, 0\n.rept 8\n"
          "vmovaps at+0(%0), %%ymm0\nvmovaps at+32(%0), %%ymm1\nvmovaps at+64(%0), %%ymm2\nvmovaps at+96(%0), %%ymm3\n"
          ".set at, at+128\n.endr\n"
          :
          : "r"(p + i)
          : "memory", "xmm0", "xmm1", "xmm2", "xmm3");
    return;
  }
  for (size_t i = 0; i < bytes; i += 1024)
    asm volatile(".set at, 0\n.rept 32\nmovaps at+0(%0), %%xmm0\nmovaps at+16(%0), %%xmm1\n.set at, at+32\n.endr\n"
                 :
                 : "r"(p + i)
                 : "memory", "xmm0", "xmm1");
}

void copy_bytes(char* to, const char* from, size_t bytes) {
  if (__builtin_cpu_supports("avx")) {
    for (size_t i = 0; i < bytes; i += 1024)
      asm volatile(
          ".set at, 0\n.rept 16\n"
          "vmovaps at+0(%1), %%ymm0\nvmovaps at+32(%1), %%ymm1\nvmovaps %%ymm0, at+0(%0)\nvmovaps %%ymm1, at+32(%0)\n"
          ".set at, at+64\n.endr\n"
          :
          : "r"(to + i), "r"(from + i)
          : "memory", "xmm0", "xmm1");
    return;
  }
  for (size_t i = 0; i < bytes; i += 1024)
    asm volatile(".set at, 0\n.rept 64\nmovaps at(%1), %%xmm0\nmovaps %%xmm0, at(%0)\n.set at, at+16\n.endr\n"
                 :
                 : "r"(to + i), "r"(from + i)
                 : "memory", "xmm0");
}
#elif defined(__aarch64__)
#define PEAK_REGISTERS "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "memory"
#define PEAK_FMLA(n) "fmla v" n ".4s, v12.4s, v13.4s\n"
// sdot vN.4s, v12.16b, v13.16b, as a word: assemblers for ARMv8.0 do not know it.
#define PEAK_SDOT(n) ".inst 0x4e8d9580 + " n "\n"
#define PEAK_ZERO "movi v12.4s, #0\nmovi v13.4s, #0\n"
PEAK_LOOP(fmla_128, PEAK_ZERO, PEAK_FMLA, PEAK_REGISTERS)
PEAK_LOOP(sdot_128, PEAK_ZERO, PEAK_SDOT, PEAK_REGISTERS)

const Arithmetic kArithmetic[] = {
    {"generic", "f32", 8 * 12 * 8, [] { return true; }, fmla_128},
    {"neon_dotprod", "i8", 8 * 12 * 32, [] { return (getauxval(AT_HWCAP) & (1UL << 20)) != 0; }, sdot_128},
};

void read_bytes(const char* p, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 128)
    asm volatile("ldp q0, q1, [%0]\nldp q2, q3, [%0, #32]\nldp q4, q5, [%0, #64]\nldp q6, q7, [%0, #96]\n"
                 :
                 : "r"(p + i)
                 : "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7");
}

void copy_bytes(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64)
    asm volatile("ldp q0, q1, [%1]\nldp q2, q3, [%1, #32]\nstp q0, q1, [%0]\nstp q2, q3, [%0, #32]\n"
                 :
                 : "r"(to + i), "r"(from + i)
                 : "memory", "v0", "v1", "v2", "v3");
}
#endif

// Bytes of the first processor's cache of a level, as /sys says; sysconf() counts all sockets' last level in some
// guests.
size_t cache_bytes(int level, size_t fallback) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::string found_level, type, size;
    std::ifstream(folder + "level") >> found_level;
    std::ifstream(folder + "type") >> type;
    std::ifstream(folder + "size") >> size;
    if (found_level != std::to_string(level) || type == "Instruction" || size.empty()) continue;
    const size_t unit = size.back() == 'K' ? 1 << 10 : size.back() == 'M' ? 1 << 20 : 1;
    return static_cast<size_t>(std::strtoull(size.c_str(), nullptr, 10)) * unit;
  }
  return fallback;
}

struct Memory {
  const char* name;
  size_t holds;     // bytes of one thread that still lie there
  size_t measured;  // bytes that one thread reads
};

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  if (threads < 1 || threads > 1024) {
    std::fprintf(stderr, "pinnace-peak: %d threads; 1 to 1024 are possible\n", threads);
    return 2;
  }
  // A processor that was idle runs slowly for a while.
  for (const double start = now(); now() - start < 0.1;) kArithmetic[0].rounds(1000);
  std::string arithmetic;
  for (const Arithmetic& a : kArithmetic) {
    if (!a.runs_here()) continue;
    const double rounds = rounds_per_second(threads, [&](int, int64_t count) { a.rounds(count); });
    char text[160];
    std::snprintf(text, sizeof text, "%s{\"level\": \"%s\", \"type\": \"%s\", \"gops\": %.1f}",
                  arithmetic.empty() ? "" : ", ", a.level, a.what, rounds * a.operations / 1e9);
    arithmetic += text;
  }

  const size_t l1 = cache_bytes(1, 32 << 10), l2 = cache_bytes(2, 512 << 10);
  // The last level is shared by all threads.
  const size_t l3 = std::max(cache_bytes(3, 4 << 20) / threads, 2 * l2);
  const Memory levels[] = {{"L1", l1, l1 / 2}, {"L2", l2, l2 / 2}, {"L3", l3, l3 / 2}, {"DRAM", 0, 4 * l3}};
  const size_t most = 4 * l3;
  std::vector<char*> buffers;
  for (int t = 0; t < threads; ++t) {
    void* p = mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
      std::fprintf(stderr, "pinnace-peak: no %zu bytes of memory\n", most);
      return 1;
    }
    madvise(p, most, MADV_HUGEPAGE);
    std::fill_n(static_cast<char*>(p), most, char{1});
    buffers.push_back(static_cast<char*>(p));
  }
  std::string memory;
  for (const Memory& m : levels) {
    const size_t bytes = m.measured / 4096 * 4096, half = bytes / 2 / 2048 * 2048;
    const double reads = rounds_per_second(threads, [&](int thread, int64_t count) {
      for (int64_t i = 0; i < count; ++i) read_bytes(buffers[thread], bytes);
    });
    const double copies = rounds_per_second(threads, [&](int thread, int64_t count) {
      for (int64_t i = 0; i < count; ++i) copy_bytes(buffers[thread] + half, buffers[thread], half);
    });
    char text[200];
    std::snprintf(text, sizeof text, "%s{\"level\": \"%s\", \"bytes\": %zu, \"read_gbs\": %.1f, \"copy_gbs\": %.1f}",
                  memory.empty() ? "" : ", ", m.name, m.holds * threads, reads * static_cast<double>(bytes) / 1e9,
                  copies * 2 * static_cast<double>(half) / 1e9);
    memory += text;
  }
  std::printf("{\"threads\": %d, \"arithmetic\": [%s], \"memory\": [%s]}\n", threads, arithmetic.c_str(),
              memory.c_str());
  return 0;
}
