// run_report: the report of this machine, by the code that devices run.
#include "report/report.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "interrupt.h"
#include "report.h"
#include "report/built_from.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

py::tuple run(const py::bytes& kit, std::vector<std::string> targets, double seconds) {
  const std::string_view bytes = kit;
  const report::Options options{std::move(targets), seconds};
  const report::Page page = interruptible(
      [&] { return report::run_report({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, options); });
  return py::make_tuple(page.text, passed(page), totals(page));
}

}  // namespace

void add_report(py::module_& module) {
  module.attr("built_from") = report::built_from();
  module.def("run_report", run, py::arg("kit"), py::arg("targets"), py::arg("seconds"),
             "Runs a kit's tests and times here: the page as JSON, whether answers were judged and none differs or "
             "failed, and "
             "totals in words. No targets: all of the build. InvalidArgument, CorruptFile, Unsupported, Cancelled.");
}

}  // namespace pinnace::bindings
