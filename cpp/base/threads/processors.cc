// Sets of processors are the kernel's (sched_setaffinity); kinds of processors are told apart by files of sysfs.
#include "base/threads/processors.h"

#include <algorithm>
#include <cstdio>

#include "base/threads/thread.h"

namespace pinnace {

#if defined(__linux__)

Processors Processors::of_this_thread() {
  Processors own;
  if (sched_getaffinity(0, sizeof own.set_, &own.set_) != 0) own = {};
  return own;
}

Processors::Processors(std::span<const int> numbers) {
  for (const int number : numbers) {
    if (number >= 0 && number < CPU_SETSIZE) CPU_SET(static_cast<size_t>(number), &set_);
  }
}

Status Processors::check(std::span<const int> numbers) {
  const Processors own = of_this_thread();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int number = numbers[i];
    if (number < 0 || number >= CPU_SETSIZE || !CPU_ISSET(static_cast<size_t>(number), &own.set_)) {
      return invalid("processor ", number, " is not one of those that the calling thread may run on, ", own.text());
    }
    if (std::find(numbers.begin(), numbers.begin() + static_cast<ptrdiff_t>(i), number) !=
        numbers.begin() + static_cast<ptrdiff_t>(i)) {
      return invalid("processor ", number, " is named twice");
    }
  }
  return {};
}

namespace {
/// The number in a file; -1: there is none.
long number_in(const std::string& path) {
  long number = -1;
  FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return -1;
  if (std::fscanf(file, "%ld", &number) != 1) number = -1;
  std::fclose(file);
  return number;
}
}  // namespace

Processors Processors::slowest(const std::string& folder) {
  const Processors own = of_this_thread();
  for (const std::string_view file : {"/cpu_capacity", "/cpufreq/cpuinfo_max_freq"}) {
    long least = -1, most = -1;
    Processors made;
    for (size_t i = 0; i < CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &own.set_)) continue;
      const long speed = number_in(str_cat(folder, "/cpu", i, file));
      if (speed < 0) continue;
      if (least < 0 || speed < least) {
        least = speed;
        made = {};
      }
      most = std::max(most, speed);
      if (speed == least) CPU_SET(i, &made.set_);
    }
    if (least < most) return made;
  }
  return {};
}

int Processors::count() const {
  return CPU_COUNT(&set_);
}
bool Processors::operator==(const Processors& other) const {
  return CPU_EQUAL(&set_, &other.set_);
}

std::string Processors::text() const {
  std::string text;
  for (size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &set_)) continue;
    size_t last = i;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set_)) ++last;
    text += str_cat(text.empty() ? "" : ",", i);
    if (last > i) text += str_cat("-", last);
    i = last;
  }
  return text.empty() ? "any" : text;
}

void Processors::give_to(const Thread& thread) const {
  pthread_setaffinity_np(thread.handle(), sizeof set_, &set_);
}
bool Processors::give_to_this_thread() const {
  return sched_setaffinity(0, sizeof set_, &set_) == 0;
}

#else

Processors Processors::of_this_thread() {
  return {};
}
Processors::Processors(std::span<const int>) {}
Status Processors::check(std::span<const int> numbers) {
  return numbers.empty() ? Status() : unsupported("processors cannot be chosen on this system");
}
Processors Processors::slowest(const std::string&) {
  return {};
}
int Processors::count() const {
  return 0;
}
bool Processors::operator==(const Processors&) const {
  return true;
}
std::string Processors::text() const {
  return "any";
}
void Processors::give_to(const Thread&) const {}
bool Processors::give_to_this_thread() const {
  return false;
}

#endif

StaysOn::StaysOn(const Processors& processors) {
  if (!processors.known()) return;
  const Processors own = Processors::of_this_thread();
  if (!(own == processors) && processors.give_to_this_thread()) before_ = own;
}

StaysOn::~StaysOn() {
  if (before_.known()) before_.give_to_this_thread();
}

}  // namespace pinnace
