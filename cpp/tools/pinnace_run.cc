// pinnace-run: runs, times and places a .pnc file on a device, without Python. Inputs and outputs are raw little-endian
// files, dense and row-major; the file has one run's bytes or several runs' one after the other.
#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <pinnace/pinnace.h>

#include "tools/output_file.h"

namespace {

using pinnace::Program;
using pinnace::Session;
using pinnace::Status;
using pinnace::Tensor;
using pinnace::tools::OutputFile;

int fail(const Status& status) {
  std::fprintf(stderr, "pinnace-run: %s\n", status.message().c_str());
  return status.code() == pinnace::Code::kInvalidArgument || status.code() == pinnace::Code::kFile ? 2 : 1;
}

int fail(const std::string& text) {
  return fail(Status(pinnace::Code::kInvalidArgument, text));
}

struct Arguments {
  std::string program, target = "auto", precision = "fp32", log = "off";
  int threads = 0, runs = 0;
  bool placement = false;
  std::vector<std::string> inputs, outputs, sizes;
  pinnace::Service service;
  double deadline_ms = 0;
};

/// False unless it is a regular file: a pipe would wait for a writer.
bool read_file(const std::string& path, std::vector<char>* bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return false;
  struct stat about{};
  bool good = ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
  if (good) bytes->resize(static_cast<size_t>(about.st_size));
  for (size_t done = 0; good && done < bytes->size();) {
    const ssize_t got = ::read(fd, bytes->data() + done, bytes->size() - done);
    if (got < 0 && errno == EINTR) continue;
    good = got > 0;
    done += good ? static_cast<size_t>(got) : 0;
  }
  ::close(fd);
  return good;
}

/// A name from the file, with the bytes that a terminal would act on as "?".
std::string shown(std::string name) {
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return name;
}

/// NAME=VALUE pairs; false if one has no '='.
bool split(const std::string& pair, std::string* name, std::string* value) {
  const size_t equals = pair.find('=');
  if (equals == std::string::npos) return false;
  *name = pair.substr(0, equals);
  *value = pair.substr(equals + 1);
  return true;
}

/// Types of the inputs with every symbol given a size: from --size, else its smallest.
bool concrete_inputs(const Program& program, const Arguments& arguments, std::vector<Tensor>* tensors,
                     std::string* error) {
  std::vector<int64_t> sizes;
  for (const pinnace::Symbol& s : program.symbols()) {
    sizes.push_back((std::max<int64_t>(s.min, 1) + s.multiple_of - 1) / s.multiple_of * s.multiple_of);
  }
  for (const std::string& pair : arguments.sizes) {
    std::string name, value;
    int64_t size = -1;
    if (split(pair, &name, &value)) {
      const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (code != std::errc() || end != value.data() + value.size()) size = -1;
    }
    if (size < 0) {
      *error = "--size " + pair + ": must be NAME=NUMBER";
      return false;
    }
    size_t i = 0;
    while (i < sizes.size() && program.symbols()[i].name != name) ++i;
    if (i == sizes.size()) {
      *error = "the program has no dynamic dimension '" + name + "'";
      return false;
    }
    const pinnace::Symbol& s = program.symbols()[i];
    if (size < s.min || size > s.max || size % s.multiple_of != 0) {
      *error = "--size " + pair + ": must be in " + std::to_string(s.min) + ".." +
               (s.max == pinnace::Symbol::kUnbounded ? "" : std::to_string(s.max)) + " and a multiple of " +
               std::to_string(s.multiple_of);
      return false;
    }
    sizes[i] = size;
  }
  for (const pinnace::TensorSpec& spec : program.inputs()) {
    Tensor tensor;
    tensor.type = {spec.type.dtype, spec.type.shape, nullptr};
    for (pinnace::Dim& d : tensor.type.shape) {
      if (!d.known()) d = d.symbol >= 0 ? sizes[static_cast<size_t>(d.symbol)] : 1;
    }
    // Sizes come from the command line: their product may be beyond what an integer holds.
    double elements = 1;
    for (const pinnace::Dim& d : tensor.type.shape) elements *= static_cast<double>(d.size);
    if (elements > 1e15) {
      *error = "input '" + spec.name + "' of " + to_string(tensor.type) + " is beyond any memory";
      return false;
    }
    tensor.memory.bytes = static_cast<size_t>(tensor.type.bytes());
    tensors->push_back(std::move(tensor));
  }
  return true;
}

void fill_random(const Tensor& tensor, std::vector<char>* bytes) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  bytes->assign(tensor.memory.bytes, 0);
  if (tensor.type.dtype != pinnace::DType::kF32) return;  // other types: zeros are valid indices and masks
  for (size_t i = 0; i + 4 <= bytes->size(); i += 4) {
    const float value = normal(random);
    std::memcpy(bytes->data() + i, &value, 4);
  }
}

void print_placement(const Session& session) {
  for (const pinnace::Placement& p : session.placement()) {
    const std::string node = shown(p.path.empty() ? p.node : p.path + "/" + p.node);
    std::printf("%-24s %-20s %-8s %s", node.c_str(), shown(p.op).c_str(), p.backend.c_str(), p.kernel.c_str());
    for (const std::string& why : p.why) std::printf("  [%s]", why.c_str());
    if (!p.notice.empty()) std::printf("  [%s]", p.notice.c_str());
    std::printf("\n");
  }
}

int bench(Session& session, const std::vector<Tensor>& tensors, int runs) {
  std::vector<double> times;
  for (int64_t i = 0; i <= runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (const Status status = session.run(tensors); !status.ok()) return fail(status);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (i > 0) times.push_back(took.count());  // the first run makes the plan's memory
  }
  std::sort(times.begin(), times.end());
  std::printf("median %.3f ms  p10 %.3f  p90 %.3f  (%zu runs)  peak %lld bytes\n", times[times.size() / 2],
              times[times.size() / 10], times[times.size() * 9 / 10], times.size(),
              static_cast<long long>(session.plan().peak_bytes));
  return 0;
}

void print_message(void*, pinnace::LogLevel level, std::string_view text) {
  std::fprintf(stderr, "pinnace-run: %s: %.*s\n", pinnace::log_level_name(level), static_cast<int>(text.size()),
               text.data());
}

int run(const Arguments& arguments) {
  const auto log = pinnace::log_level_from_name(arguments.log);
  if (!log) return fail(log.status());
  if (const Status status = pinnace::set_log_sink(print_message, *log); !status.ok()) return fail(status);
  auto program = Program::open(arguments.program);
  if (!program) return fail(program.status());
  if (!(arguments.deadline_ms <= 1e9)) return fail("--deadline-ms: must be a number");  // NaN is in any range
  pinnace::Options options;
  options.target = arguments.target;
  options.precision = arguments.precision;
  options.threads = arguments.threads;
  options.service = arguments.service;
  options.service.deadline = std::chrono::nanoseconds(static_cast<int64_t>(arguments.deadline_ms * 1e6));
  auto session = Session::create(*program, options);
  if (!session) return fail(session.status());
  if (arguments.placement) print_placement(*session);
  std::vector<Tensor> tensors;
  std::string error;
  if (!concrete_inputs(*program, arguments, &tensors, &error)) return fail(error);
  std::vector<std::vector<char>> bytes(tensors.size());
  size_t repeats = 1;
  bool first = true;
  for (size_t i = 0; i < tensors.size(); ++i) fill_random(tensors[i], &bytes[i]);
  for (const std::string& pair : arguments.inputs) {
    std::string name, path;
    if (!split(pair, &name, &path)) return fail("--input " + pair + ": must be NAME=FILE");
    size_t i = 0;
    while (i < tensors.size() && program->inputs()[i].name != name) ++i;
    if (i == tensors.size()) return fail("the program has no input '" + name + "'");
    if (!read_file(path, &bytes[i])) return fail(Status(pinnace::Code::kFile, path + ": cannot be read"));
    const size_t one = std::max<size_t>(tensors[i].memory.bytes, 1), count = bytes[i].size() / one;
    if (bytes[i].size() % one || count == 0 || (!first && count != repeats)) {
      std::string sentence = path + ": has " + std::to_string(bytes[i].size());
      sentence += " bytes, one run of '" + name;
      sentence += "' takes " + std::to_string(one);
      return fail(sentence);
    }
    repeats = count;
    first = false;
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].memory.host = bytes[i].data();
  if (arguments.runs > 0) return bench(*session, tensors, arguments.runs);

  std::vector<OutputFile> files(session->outputs().size());
  for (const std::string& pair : arguments.outputs) {
    std::string name, path;
    if (!split(pair, &name, &path)) return fail("--output " + pair + ": must be NAME=FILE");
    size_t i = 0;
    while (i < files.size() && session->outputs()[i].name != name) ++i;
    if (i == files.size()) return fail("the program has no output '" + name + "'");
    if (files[i].is_open() || !files[i].open(path))
      return fail(Status(pinnace::Code::kFile, path + ": cannot be written"));
  }
  const Status not_written(pinnace::Code::kFile, "an output cannot be written: is the disk full?");
  for (size_t r = 0; r < repeats; ++r) {
    if (const Status status = session->run(tensors); !status.ok()) return fail(status);
    for (size_t i = 0; i < files.size(); ++i) {
      const Tensor out = session->output(static_cast<int>(i));
      if (files[i].is_open()) {
        if (!files[i].write(out.memory.host, out.memory.bytes)) return fail(not_written);
      } else if (r == 0) {
        std::printf("%s: %s\n", shown(session->outputs()[i].name).c_str(), to_string(out.type).c_str());
      }
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (bytes[i].size() > tensors[i].memory.bytes) {
        tensors[i].memory.host = static_cast<char*>(tensors[i].memory.host) + tensors[i].memory.bytes;
      }
    }
  }
  for (OutputFile& file : files) {
    if (file.is_open() && !file.finish()) return fail(not_written);
  }
  return 0;
}

/// -1 if there is something to run, else what CLI11 says: 0 after --help and --version, its own code after wrong use.
int parse(CLI::App& app, int argc, char** argv) {
  CLI11_PARSE(app, argc, argv);
  return -1;
}

/// Sizes from the command line may ask for more memory than there is; the containers here have no other way to say so.
void out_of_memory() {
  std::fprintf(stderr, "pinnace-run: out of memory\n");
  std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs a .pnc file. Without --input, float inputs are seeded normal values and others zeros.");
  Arguments arguments;
  app.add_option("program", arguments.program, "the .pnc file")->required();
  app.add_option("--target", arguments.target, "auto, cpu, cpu:avx2, ...");
  app.add_option("--precision", arguments.precision, "fp32, fp16, bf16 or auto");
  app.add_option("--threads", arguments.threads, "most threads of one run; 0: all processors")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--processors", arguments.service.processors, "N,N,... that runs stay on")->delimiter(',');
  app.add_option("--preference", arguments.service.preference, "low_power, fast_single_answer or sustained_speed");
  app.add_option("--priority", arguments.service.priority, "of NNAPI's work: low, medium or high");
  app.add_option("--deadline-ms", arguments.deadline_ms, "of each compilation and each run by NNAPI")
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--device", arguments.service.device, "NNAPI's device by its name");
  app.add_option("--cache-folder", arguments.service.cache_folder, "where NNAPI's driver keeps what it compiled");
  app.add_option("--input", arguments.inputs, "NAME=FILE, raw bytes of one run or of several in a row");
  app.add_option("--output", arguments.outputs, "NAME=FILE for the raw bytes of an output, run after run");
  app.add_option("--size", arguments.sizes, "NAME=NUMBER for a dynamic dimension");
  app.add_option("--bench", arguments.runs, "time so many runs")->check(CLI::PositiveNumber);
  app.add_option("--log", arguments.log, "messages of this level and above on stderr: trace, debug, info, warn, error");
  app.add_flag("--placement", arguments.placement, "print where each node runs");
  app.set_version_flag("--version", std::string("pinnace-run ") + pnc_version());
  std::set_new_handler(out_of_memory);
  const int parsed = parse(app, argc, argv);
  return parsed < 0 ? run(arguments) : parsed == 0 ? 0 : 2;
}
