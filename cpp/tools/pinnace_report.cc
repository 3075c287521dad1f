// pinnace-report: tests and times every target of the device it runs on by a kit, and writes one page of JSON, without
// Python.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>

#include <pinnace/pinnace.h>

#include "report/report.h"
#include "tools/output_file.h"

namespace {

using pinnace::Code;
using pinnace::Status;

int fail(const Status& status) {
  std::fprintf(stderr, "pinnace-report: %s\n", status.message().c_str());
  return status.code() == Code::kInvalidArgument || status.code() == Code::kFile ? 2 : 1;
}

/// The containers here have no other way to say so.
void out_of_memory() {
  std::fprintf(stderr, "pinnace-report: out of memory\n");
  std::_Exit(1);
}

int run(const std::string& kit, const std::string& output, const pinnace::report::Options& options) {
  pinnace::tools::OutputFile file;
  const Status not_written(Code::kFile, output + ": cannot be written");
  if (!output.empty() && !file.open(output)) return fail(not_written);  // now rather than after a minute of work
  const auto bytes = pinnace::report::read_kit_file(kit);
  if (!bytes) return fail(bytes.status());
  std::set_new_handler(nullptr);  // where memory ends in a test, it fails alone
  const auto page = pinnace::report::run_report(*bytes, options);
  std::set_new_handler(out_of_memory);
  if (!page) return fail(page.status().with_prefix(kit + ": "));
  if (output.empty()) {
    if (std::fputs(page->text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
      return fail(Status(Code::kFile, "the page cannot be written"));
    }
  } else if (!file.write(page->text.data(), page->text.size()) || !file.finish()) {
    return fail(not_written);
  }
  std::fprintf(stderr, "pinnace-report: %s\n", totals(*page).c_str());
  return passed(*page) ? 0 : 1;
}

/// -1 if there is something to run, else what CLI11 says: 0 after --help and --version, its own code after wrong use.
int parse(CLI::App& app, int argc, char** argv) {
  CLI11_PARSE(app, argc, argv);
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Tests and times every target of this device. Status 0: every answer is equal or refused; 1: one differs or "
      "failed, or none was judged.");
  std::string kit, output;
  pinnace::report::Options options;
  app.add_option("kit", kit, "what `pinnace report-device --make-kit` wrote")->required();
  app.add_option("-o,--output", output, "where to write the page; without it, to standard output");
  app.add_option("--target", options.targets, "cpu, vulkan, nnapi:29, ...; may be given several times; without it all");
  app.add_option("--seconds", options.seconds, "in which the whole ends; what is left out is listed in the page")
      ->capture_default_str();
  app.set_version_flag("--version", std::string("pinnace-report ") + pnc_version());
  std::set_new_handler(out_of_memory);
  const int parsed = parse(app, argc, argv);
  return parsed < 0 ? run(kit, output, options) : parsed == 0 ? 0 : 2;
}
