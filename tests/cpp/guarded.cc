// fork, a shared page that says how far the child came, and limits of the system.
#include "cpp/guarded.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/text.h"

#if defined(__SANITIZE_ADDRESS__)
// Memory that the system would not give is a null pointer here too, and not the end of the process.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}
#endif

namespace pinnace::testing {
namespace {

// A case that neither ends nor uses the processor, or uses it for ever.
constexpr unsigned kHangSeconds = 30;
constexpr int64_t kSlack = int64_t{256} << 20;

/// What the child writes and the parent reads, also after a crash.
struct Report {
  size_t at, accepted;
  int64_t peak;
  double slowest;
  char failure[3000];
};

double processor_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// How many times longer a fixed piece of work takes now than on an idle machine, at least 1: processors that share
/// caches, execution units and the system's memory lists with other processes do less in a second of processor time.
double slowness() {
  constexpr double kIdleSeconds = 0.055;  // on a server's processor of 2023
  constexpr size_t kBytes = 4 << 20;
  std::vector<uint32_t> numbers(1 << 16);
  const double start = processor_seconds();
  for (int round = 0; round < 10; ++round) {
    uint32_t state = 1;
    for (uint32_t& n : numbers) n = state = state * 1664525 + 1013904223;
    std::sort(numbers.begin(), numbers.end());
    void* fresh = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) continue;
    std::memset(fresh, static_cast<int>(numbers[0] & 1), kBytes);
    ::munmap(fresh, kBytes);
  }
  return std::max(1.0, (processor_seconds() - start) / kIdleSeconds);
}

int64_t peak_resident() {
  rusage used;
  ::getrusage(RUSAGE_SELF, &used);
  return int64_t{used.ru_maxrss} * 1024;
}

void fail(Report& report, std::string_view text) {
  const size_t length = std::min(text.size(), sizeof report.failure - 1);
  std::memcpy(report.failure, text.data(), length);
  report.failure[length] = 0;
}

void run_child(size_t cases, const Allowance& allowance, Report& report,
               const std::function<std::string(size_t, const std::function<void()>&)>& body) {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  if (!kSanitized) {  // whose shadow takes terabytes of address space
    const auto limit = static_cast<rlim_t>(size * page + allowance.memory.value_or(0) + kSlack);
    const rlimit both{limit, limit};
    ::setrlimit(RLIMIT_AS, &both);
  }
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (report.at = 0; report.at < cases; ++report.at) {
    ::alarm(kHangSeconds);
    const double start = processor_seconds();
    const std::string wrong = body(report.at, [&] { ++report.accepted; });
    const double seconds = processor_seconds() - start;
    report.slowest = std::max(report.slowest, seconds);
    if (!kSanitized) report.peak = peak_resident() - resident * page;
    if (!wrong.empty()) return fail(report, wrong);
    if (const double allowed = allowance.seconds; seconds > allowed && (kSanitized || seconds > allowed * slowness())) {
      return fail(report, str_cat("takes ", seconds, " s, more than ", allowed));
    }
    if (allowance.memory && report.peak > *allowance.memory) {
      return fail(report, str_cat("takes ", report.peak, " bytes, more than ", *allowance.memory));
    }
  }
}

}  // namespace

Observed run_guarded(size_t cases, const Allowance& allowance,
                     const std::function<std::string(size_t, const std::function<void()>&)>& body) {
  void* shared = ::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {.failure = "no shared memory"};
  auto& report = *new (shared) Report{};
  ::malloc_trim(0);  // in the parent: the child's peak begins with what is resident at the fork
  const pid_t child = ::fork();
  if (child == 0) {
    run_child(cases, allowance, report, body);
    ::_exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) fail(report, "no child process");
  if (WIFSIGNALED(status)) {
    const bool hung = WTERMSIG(status) == SIGALRM;
    fail(report, hung ? str_cat("does not end within ", kHangSeconds, " s")
                      : str_cat("ends the process by signal ", WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    fail(report, str_cat("ends the process with status ", WEXITSTATUS(status)));
  }
  Observed seen{{}, report.accepted, report.peak, report.slowest};
  if (report.failure[0]) seen.failure = str_cat("case ", report.at, ": ", report.failure);
  ::munmap(shared, sizeof(Report));
  return seen;
}

}  // namespace pinnace::testing
