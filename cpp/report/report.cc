// The order of a report: targets, answers, times. One budget of time bounds it; what fails in one test ends no other.
#include "report/report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/exception_boundary.h"
#include "report/built_from.h"
#include "report/kit.h"
#include "report/machine.h"
#include "report/measure.h"

namespace pinnace::report {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kThreads[] = {1, 2, 4};

/// A target and the threads that it is given.
struct Row {
  std::string target;
  int threads;
};

struct LeftOut {
  std::string kind, program, why;
  Row row;
};

/// Calls of this thread end when the budget does.
class Budget {
 public:
  explicit Budget(double seconds) : seconds_(seconds), start_(Clock::now()) {
    const pnc_run_options options = {nullptr, std::max<int64_t>(static_cast<int64_t>(seconds * 1e9), 1)};
    entered_ = pnc_cancel_scope_enter(&options, &scope_) == PNC_OK;
  }
  ~Budget() {
    if (entered_) pnc_cancel_scope_leave(scope_);
  }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
  bool entered() const { return entered_; }
  double used() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double left() const { return seconds_ - used(); }

 private:
  double seconds_;
  Clock::time_point start_;
  pnc_cancel_scope* scope_ = nullptr;
  bool entered_ = false;
};

void write_places(const Places& places, Json* page) {
  page->key("nodes").object().pair("there", places.there).pair("all", places.all);
  page->key("by").object();
  for (const auto& [backend, count] : places.each) page->pair(backend, count);
  page->end();
  page->key("elsewhere").list();
  for (const std::string& why : places.why) page->value(why);
  page->end().end();
}

void write_finding(const Finding& finding, Json* page) {
  page->pair("result", outcome_name(finding.outcome)).pair("why", finding.why);
  const bool judged = finding.outcome == Outcome::kEqual || finding.outcome == Outcome::kDiffers;
  page->key("relative_error");
  judged ? page->value(finding.relative) : page->null();
  write_places(finding.places, page);
  page->key("worst");
  if (finding.outcome != Outcome::kDiffers) {
    page->null();
    return;
  }
  page->object().pair("output", finding.output).pair("step", finding.step).key("element").list();
  for (const int64_t index : finding.worst.element) page->value(index);
  page->end().pair("got", finding.worst.got).pair("wanted", finding.worst.wanted);
  page->pair("error", finding.worst.largest).pair("bound", finding.bound).end();
}

void write_row(std::string_view kind, const std::string& program, const Row& row, Json* page) {
  page->object().pair(kind, program).pair("target", row.target).pair("threads", static_cast<int64_t>(row.threads));
}

class Run {
 public:
  Run(const Kit& kit, const Options& options, std::vector<TargetInfo> infos)
      : kit_(kit), options_(options), infos_(std::move(infos)), budget_(options.seconds) {}

  Result<Page> page() {
    if (!budget_.entered()) return Status(Code::kOutOfMemory, pnc_error());
    json_.object().pair("format", "pinnace device report").pair("version", int64_t{1});
    json_.key("pinnace").object().pair("version", pnc_version()).pair("commit", built_from()).end();
    json_.pair("date", date_now());
    write_machine(infos_, &json_);
    json_.key("kit").object().pair("checksum", static_cast<int64_t>(kit_.checksum)).key("answers").list();
    for (const KitProgram& p : kit_.programs) {
      if (!p.timed) json_.value(p.name);
    }
    json_.end().key("times").list();
    for (const KitProgram& p : kit_.programs) {
      if (p.timed) json_.value(p.name);
    }
    json_.end().end();
    json_.key("targets").list();
    for (const TargetInfo& info : infos_) {
      json_.object().pair("target", info.target).pair("available", info.available);
      json_.pair("description", info.description).pair("software", info.software).end();
    }
    json_.end();
    json_.key("answers").list();
    if (Status s = answers(); !s.ok()) return s;
    json_.end().key("times").list();
    if (Status s = times(); !s.ok()) return s;
    json_.end().key("left_out").list();
    for (const LeftOut& left : left_out_) {
      write_row("program", left.program, left.row, &json_);
      json_.pair("kind", left.kind).pair("why", left.why).end();
    }
    json_.end();
    json_.key("totals").object().pair("equal", page_.equal).pair("differs", page_.differs);
    json_.pair("refused", page_.refused).pair("failed", page_.failed);
    page_.left_out = static_cast<int64_t>(left_out_.size());
    json_.pair("left_out", page_.left_out).end();
    json_.pair("budget_seconds", options_.seconds).pair("seconds", budget_.used()).end();
    page_.text = std::move(json_).take();
    return std::move(page_);
  }

 private:
  /// Those that are available: of the processor at each number of threads, of others at all.
  std::vector<Row> rows(const std::vector<int>& of_processor, const std::vector<int>& of_others) const {
    std::vector<Row> found;
    std::vector<std::string> targets = options_.targets;
    if (targets.empty()) {
      for (const TargetInfo& info : infos_) targets.push_back(info.target);
      // The processor first: others are held against it.
      const auto cpu = std::find(targets.begin(), targets.end(), "cpu");
      if (cpu != targets.end()) std::rotate(targets.begin(), cpu, cpu + 1);
    }
    for (const std::string& target : targets) {
      const auto info = std::find_if(infos_.begin(), infos_.end(), [&](const TargetInfo& known) {
        return known.target == std::string_view(target).substr(0, target.find(':'));
      });
      if (info == infos_.end() || !info->available) continue;
      for (const int threads : info->target == "cpu" ? of_processor : of_others) found.push_back({target, threads});
    }
    return found;
  }

  void count(Outcome outcome) {
    page_.equal += outcome == Outcome::kEqual;
    page_.differs += outcome == Outcome::kDiffers;
    page_.refused += outcome == Outcome::kRefused;
    page_.failed += outcome == Outcome::kFailed;
  }

  /// Of a call that ended early: the budget's end is a row of what was left out, and anything else ends the report.
  bool out_of_time(const Status& status) const { return status.code() == Code::kCancelled && budget_.left() <= 0; }

  void leave_out(const char* kind, const KitProgram& program, const Row& row, std::string why = "the time is used up") {
    left_out_.push_back({kind, program.name, std::move(why), row});
  }

  Status answers() {
    const int most = processors();
    const std::vector<Row> all = rows(most > 1 ? std::vector<int>{1, most} : std::vector<int>{1}, {most});
    for (const Row& row : all) {
      for (const KitProgram& program : kit_.programs) {
        if (program.timed) continue;
        Finding finding;
        const Status status = budget_.left() > 0 ? check_answers(program, row.target, row.threads, &finding)
                                                 : Status(Code::kCancelled, "");
        if (!status.ok()) {
          if (!out_of_time(status)) return status;
          leave_out("answer", program, row);
          continue;
        }
        count(finding.outcome);
        write_row("test", program.name, row, &json_);
        write_finding(finding, &json_);
        json_.end();
      }
    }
    return {};
  }

  /// One program on one row: created, run, judged, timed.
  Status time(const KitProgram& program, const std::vector<Copy>& inputs, const Row& row, double seconds,
              std::vector<Copy>* wanted) {
    Finding finding;
    Times measured;
    const double start = budget_.used();
    const auto session = make_session(program, row.target, row.threads, &finding);
    if (!session) return session.status();
    const double created = budget_.used() - start;
    if (*session) {
      if (Status s = check_outputs(session->get(), program, inputs, row.target, wanted, &finding); !s.ok()) return s;
    }
    if (finding.outcome == Outcome::kEqual) {
      if (Status s = time_runs(session->get(), inputs, seconds, &measured); !s.ok()) {
        if (s.code() == Code::kCancelled) return s;
        finding.outcome = Outcome::kFailed;
        finding.why = s.message();
      }
    }
    count(finding.outcome);
    write_row("program", program.name, row, &json_);
    write_finding(finding, &json_);
    json_.pair("precision", "fp32").pair("runs", measured.runs).pair("warm_up", measured.warm_up);
    json_.pair("create_and_first_run_ms", (created + finding.run_seconds) * 1e3);
    const bool timed = finding.outcome == Outcome::kEqual;
    const auto number = [&](const char* key, double value) {
      json_.key(key);
      timed ? json_.value(value) : json_.null();
    };
    number("median_ms", measured.median_ms);
    number("p10_ms", measured.p10_ms);
    number("p90_ms", measured.p90_ms);
    number("cpu_per_wall", measured.cpu_per_wall);
    json_.pair("peak_bytes", measured.peak_bytes).key("reference_code").object();
    for (const auto& [op, share] : measured.reference_code) json_.pair(op, share);
    json_.end().end();
    return {};
  }

  /// What other targets' outputs are held against: those of the processor with one thread.
  Status reference(const KitProgram& program, const std::vector<Copy>& inputs, std::vector<Copy>* wanted,
                   Finding* finding) {
    const auto session = make_session(program, "cpu", 1, finding);
    if (!session) return session.status();
    return *session ? check_outputs(session->get(), program, inputs, "cpu", wanted, finding) : Status();
  }

  Status times() {
    std::vector<int> threads;
    for (const int n : kThreads) {
      if (n <= processors()) threads.push_back(n);
    }
    const std::vector<Row> all = rows(threads, threads);
    const auto programs =
        std::count_if(kit_.programs.begin(), kit_.programs.end(), [](const auto& p) { return p.timed; });
    auto rows_left = static_cast<double>(all.size()) * static_cast<double>(programs);
    for (const KitProgram& program : kit_.programs) {
      if (!program.timed) continue;
      std::vector<Copy> inputs, wanted;
      for (const pnc_tensor& tensor : program.steps[0].inputs) inputs.push_back(copy_of(tensor));
      Finding finding;
      Status made = reference(program, inputs, &wanted, &finding);
      if (!made.ok() && !out_of_time(made)) return made;
      for (const Row& row : all) {
        if (made.ok() && finding.outcome != Outcome::kEqual) {
          leave_out("time", program, row, "the processor has no answer: " + finding.why);
          continue;
        }
        const double share = budget_.left() / rows_left--;
        const Status status =
            made.ok() && share > 0 ? time(program, inputs, row, share, &wanted) : Status(Code::kCancelled, "");
        if (status.ok()) continue;
        if (!out_of_time(status)) return status;
        leave_out("time", program, row);
      }
    }
    return {};
  }

  const Kit& kit_;
  const Options& options_;
  const std::vector<TargetInfo> infos_;
  Budget budget_;
  Json json_;
  Page page_;
  std::vector<LeftOut> left_out_;
};

/// Each names a back end of this build, with a variant or without.
Status check_targets(const std::vector<std::string>& targets, const std::vector<TargetInfo>& infos) {
  std::string known;
  for (const TargetInfo& info : infos) {
    known += known.empty() ? "" : ", ";
    known += info.target;
  }
  for (const std::string& target : targets) {
    const std::string_view backend = std::string_view(target).substr(0, target.find(':'));
    if (std::none_of(infos.begin(), infos.end(), [&](const auto& info) { return info.target == backend; })) {
      std::string sentence = "target '";
      sentence += target;
      sentence += "': this build has ";
      return {Code::kInvalidArgument, sentence.append(known)};
    }
  }
  return {};
}

}  // namespace

Result<Page> run_report(std::span<const std::byte> kit, const Options& options) {
  return exception_boundary([&]() -> Result<Page> {
    if (!(options.seconds > 0 && options.seconds <= 1e6)) {
      return Status(Code::kInvalidArgument, "a report cannot be given " + std::to_string(options.seconds) + " seconds");
    }
    // Tensors are used where they lie, at multiples of 8 bytes from the kit's first one.
    if (reinterpret_cast<uintptr_t>(kit.data()) % alignof(int64_t)) {
      const std::vector<std::byte> copy(kit.begin(), kit.end());
      return run_report(copy, options);
    }
    const auto read = read_kit(kit);
    if (!read) return read.status();
    auto infos = target_infos();
    if (!infos) return infos.status();
    if (Status s = check_targets(options.targets, *infos); !s.ok()) return s;
    return Run(*read, options, std::move(*infos)).page();
  });
}

Result<std::vector<std::byte>> read_kit_file(const std::string& path) {
  const auto failed = [&](const std::string& reason) {
    return Status(Code::kFile, path + ": cannot be read: " + reason);
  };
  // Not a FIFO, which would wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return failed(std::strerror(errno));
  struct Close {
    int file;
    ~Close() { ::close(file); }
  } const closed{file};
  struct stat about{};
  if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return failed("it is not a regular file");
  return exception_boundary([&]() -> Result<std::vector<std::byte>> {
    std::vector<std::byte> bytes(static_cast<size_t>(about.st_size));
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t got = ::read(file, bytes.data() + done, bytes.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return failed(got < 0 ? std::strerror(errno) : "it ends early");
      done += static_cast<size_t>(got);
    }
    return bytes;
  });
}

std::string totals(const Page& page) {
  return std::to_string(page.equal) + " equal, " + std::to_string(page.differs) + " differ, " +
         std::to_string(page.refused) + " refused, " + std::to_string(page.failed) + " failed, " +
         std::to_string(page.left_out) + " left out";
}

}  // namespace pinnace::report

pnc_status pinnace_report_run(const char* path, const void* kit, size_t bytes, const char* const* targets,
                              int32_t target_count, double seconds, char** text, int64_t* offset) {
  using pinnace::report::Page;
  const auto page = pinnace::exception_boundary([&]() -> pinnace::Result<Page> {
    const pinnace::report::Options options{{targets, targets + target_count}, seconds};
    if (kit) return pinnace::report::run_report({static_cast<const std::byte*>(kit), bytes}, options);
    const auto file = pinnace::report::read_kit_file(path);
    if (!file) return file.status();
    return pinnace::report::run_report(*file, options);
  });
  *offset = page.status().offset();
  *text = ::strdup(page ? page->text.c_str() : page.status().message().c_str());
  return static_cast<pnc_status>(page.status().code());
}
