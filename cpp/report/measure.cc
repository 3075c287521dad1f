// Sessions are made and closed one at a time, so that a device's memory holds one program's.
#include "report/measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>

namespace pinnace::report {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kWarmUpSeconds = 0.05;
constexpr size_t kMostReasons = 4;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Of all threads of the process.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Records a failure of the C API, a device's lack of memory too. kCancelled ends the report and is passed on.
Status record(pnc_status status, Finding* finding) {
  if (status == PNC_CANCELLED) return {static_cast<Code>(status), pnc_error()};
  finding->outcome = status == PNC_UNSUPPORTED ? Outcome::kRefused : Outcome::kFailed;
  finding->why = std::string(pnc_status_name(status)) + ": " + pnc_error();
  return {};
}

std::string_view backend_of(std::string_view target) {
  return target.substr(0, target.find(':'));
}

Status find_places(const pnc_session* session, const std::string& target, Places* places) {
  const pnc_placement* rows = nullptr;
  int32_t count = 0;
  if (const pnc_status status = pnc_session_placement(session, &rows, &count); status != PNC_OK) {
    return {static_cast<Code>(status), pnc_error()};
  }
  const std::unique_ptr<const pnc_placement, void (*)(const void*)> freed(rows, pnc_free);
  for (int32_t i = 0; i < count; ++i) {
    const std::string_view backend = rows[i].backend;
    if (backend == "none" || backend == "runtime") continue;  // computed ahead; control flow
    ++places->all;
    const auto known =
        std::find_if(places->each.begin(), places->each.end(), [&](const auto& pair) { return pair.first == backend; });
    if (known != places->each.end()) {
      ++known->second;
    } else {
      places->each.emplace_back(backend, 1);
    }
    if (backend == backend_of(target)) {
      ++places->there;
      continue;
    }
    const std::string reason = std::string(rows[i].op) + ": " + rows[i].why;
    const bool listed = std::find(places->why.begin(), places->why.end(), reason) != places->why.end();
    if (*rows[i].why && !listed && places->why.size() < kMostReasons) places->why.push_back(reason);
  }
  return {};
}

/// The outputs of the last run against what they should be.
Status judge_outputs(const pnc_session* session, const KitProgram& program, int64_t step,
                     const std::vector<const pnc_tensor*>& wanted, Finding* finding) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    pnc_tensor got;
    pnc_spec spec;
    if (const pnc_status s = pnc_session_output(session, static_cast<int32_t>(i), &got); s != PNC_OK) {
      return record(s, finding);
    }
    if (const pnc_status s = pnc_program_output(program.program.get(), static_cast<int32_t>(i), &spec); s != PNC_OK) {
      return record(s, finding);
    }
    Difference difference = judge(got, *wanted[i], program.bounds[i]);
    if (difference.equal) {
      finding->relative = std::max(finding->relative, difference.relative);
    } else if (finding->outcome == Outcome::kEqual) {
      finding->outcome = Outcome::kDiffers;
      finding->relative = difference.relative;
      finding->why = difference.why;
      finding->output = spec.name;
      finding->step = step;
      finding->bound = program.bounds[i];
      finding->worst = std::move(difference);
    }
  }
  return {};
}

/// A target that no node ran on was not tested.
void refuse_fallback(Finding* finding) {
  const Places& places = finding->places;
  if (finding->outcome == Outcome::kFailed || places.there > 0 || places.all == 0) return;
  finding->outcome = Outcome::kRefused;
  finding->why = "no node ran there: ";
  for (const std::string& reason : places.why) finding->why += (&reason == places.why.data() ? "" : "; ") + reason;
}

std::vector<pnc_tensor> tensors_of(const std::vector<Copy>& copies) {
  std::vector<pnc_tensor> tensors;
  for (const Copy& copy : copies) tensors.push_back(copy.tensor);
  return tensors;
}

Status run(pnc_session* session, const std::vector<pnc_tensor>& inputs, Finding* finding) {
  const pnc_status status = pnc_session_run(session, inputs.data(), static_cast<int32_t>(inputs.size()), nullptr, 0);
  return status == PNC_OK ? Status() : record(status, finding);
}

}  // namespace

Copy copy_of(const pnc_tensor& tensor) {
  Copy copy;
  copy.tensor = tensor;
  copy.bytes.reset(new std::byte[std::max<size_t>(tensor.bytes, 1)]);
  if (tensor.bytes) std::memcpy(copy.bytes.get(), tensor.data, tensor.bytes);
  copy.tensor.data = copy.bytes.get();
  return copy;
}

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kEqual:
      return "equal";
    case Outcome::kDiffers:
      return "differs";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kFailed:
      return "failed";
      return "left out";
  }
  return "";
}

Result<SessionPtr> make_session(const KitProgram& program, const std::string& target, int threads, Finding* finding) {
  if (!program.program) {
    finding->outcome = program.refusal.code() == Code::kUnsupported ? Outcome::kRefused : Outcome::kFailed;
    finding->why = program.refusal.message();
    return SessionPtr();
  }
  pnc_session* session = nullptr;
  const pnc_options options = {target.c_str(), nullptr, threads, 0};
  const pnc_status status = pnc_session_create(program.program.get(), &options, &session);
  SessionPtr made(session);
  if (status != PNC_OK) {
    if (Status s = record(status, finding); !s.ok()) return s;
  }
  return made;
}

Status check_answers(const KitProgram& program, const std::string& target, int threads, Finding* finding) {
  const auto session = make_session(program, target, threads, finding);
  if (!session) return session.status();
  if (!*session) return {};
  for (size_t step = 0; step < program.steps.size(); ++step) {
    std::vector<Copy> inputs;
    std::vector<const pnc_tensor*> wanted;
    for (const pnc_tensor& tensor : program.steps[step].inputs) inputs.push_back(copy_of(tensor));
    for (const pnc_tensor& tensor : program.steps[step].outputs) wanted.push_back(&tensor);
    if (Status s = run(session->get(), tensors_of(inputs), finding); !s.ok()) return s;
    if (finding->outcome == Outcome::kFailed || finding->outcome == Outcome::kRefused) return {};
    if (Status s = judge_outputs(session->get(), program, static_cast<int64_t>(step), wanted, finding); !s.ok())
      return s;
  }
  if (Status s = find_places(session->get(), target, &finding->places); !s.ok()) return s;
  refuse_fallback(finding);
  return {};
}

Status check_outputs(pnc_session* session, const KitProgram& program, const std::vector<Copy>& inputs,
                     const std::string& target, std::vector<Copy>* wanted, Finding* finding) {
  const Clock::time_point start = Clock::now();
  if (Status s = run(session, tensors_of(inputs), finding); !s.ok()) return s;
  finding->run_seconds = seconds_since(start);
  if (finding->outcome != Outcome::kEqual) return {};
  if (wanted->empty()) {
    for (int32_t i = 0; i < pnc_program_output_count(program.program.get()); ++i) {
      pnc_tensor got;
      if (const pnc_status s = pnc_session_output(session, i, &got); s != PNC_OK) return record(s, finding);
      wanted->push_back(copy_of(got));
    }
  } else {
    std::vector<const pnc_tensor*> tensors;
    for (const Copy& copy : *wanted) tensors.push_back(&copy.tensor);
    if (Status s = judge_outputs(session, program, 0, tensors, finding); !s.ok()) return s;
  }
  if (Status s = find_places(session, target, &finding->places); !s.ok()) return s;
  refuse_fallback(finding);
  return {};
}

Status time_runs(pnc_session* session, const std::vector<Copy>& inputs, double seconds, Times* times) {
  const std::vector<pnc_tensor> tensors = tensors_of(inputs);
  const auto count = static_cast<int32_t>(tensors.size());
  const auto once = [&] {
    const pnc_status status = pnc_session_run(session, tensors.data(), count, nullptr, 0);
    return status == PNC_OK ? Status() : Status(static_cast<Code>(status), pnc_error());
  };
  const Clock::time_point begin = Clock::now();
  do {
    if (Status s = once(); !s.ok()) return s;
    ++times->warm_up;
  } while (seconds_since(begin) < std::min(kWarmUpSeconds, seconds / 4));
  std::vector<double> each;
  const double processor = processor_seconds();
  const Clock::time_point start = Clock::now();
  while (times->runs < kMostRuns && (times->runs < kLeastRuns || seconds_since(begin) < seconds)) {
    const Clock::time_point run_start = Clock::now();
    if (Status s = once(); !s.ok()) return s;
    each.push_back(seconds_since(run_start) * 1e3);
    ++times->runs;
  }
  const double wall = seconds_since(start);
  times->cpu_per_wall = wall > 0 ? (processor_seconds() - processor) / wall : 0;
  std::sort(each.begin(), each.end());
  const size_t middle = each.size() / 2;
  times->median_ms = each.size() % 2 ? each[middle] : (each[middle - 1] + each[middle]) / 2;
  times->p10_ms = each[each.size() / 10];
  times->p90_ms = each[each.size() * 9 / 10];
  pnc_plan_info plan;
  if (pnc_session_plan(session, &plan) == PNC_OK) times->peak_bytes = plan.peak_bytes;
  const pnc_profile_event* events = nullptr;
  int32_t event_count = 0;
  const pnc_status status =
      pnc_session_profile(session, tensors.data(), count, nullptr, 0, nullptr, &events, &event_count);
  const std::unique_ptr<const pnc_profile_event, void (*)(const void*)> freed(events, pnc_free);
  if (status != PNC_OK) return {static_cast<Code>(status), pnc_error()};
  double total = 0;
  for (int32_t i = 0; i < event_count; ++i) total += static_cast<double>(events[i].duration_ns);
  for (int32_t i = 0; total > 0 && i < event_count; ++i) {
    if (std::strcmp(events[i].kernel, "reference") != 0) continue;
    auto& shares = times->reference_code;
    auto share =
        std::find_if(shares.begin(), shares.end(), [&](const auto& pair) { return pair.first == events[i].op; });
    if (share == shares.end()) share = shares.insert(share, {events[i].op, 0.0});
    share->second += static_cast<double>(events[i].duration_ns) / total;
  }
  std::sort(times->reference_code.begin(), times->reference_code.end(), [](const auto& a, const auto& b) {
    return a.second > b.second || (a.second == b.second && a.first < b.first);
  });
  return {};
}

}  // namespace pinnace::report
