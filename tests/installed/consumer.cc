// What a C++ application does with the installed library: opens a .pnc file of float32 values, runs it on 0, 1, 2, ...
// with every dynamic dimension at 2, and prints the outputs. Wrong calls come back as codes.
#include <cstdio>
#include <numeric>

#include <pinnace/pinnace.h>

namespace {
int fail(const pinnace::Status& status) {
  std::fprintf(stderr, "%s: %s\n", pinnace::code_name(status.code()), status.message().c_str());
  return 1;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (pinnace::Program::open("/nowhere.pnc").status().code() != pinnace::Code::kFile) return 3;
  auto program = pinnace::Program::open(argv[1]);
  if (!program) return fail(program.status());
  auto session = pinnace::Session::create(*program, {.target = "cpu", .threads = 2});
  if (!session) return fail(session.status());

  std::vector<pinnace::Tensor> inputs;
  std::vector<std::vector<float>> values;
  for (const pinnace::TensorSpec& spec : session->inputs()) {
    pinnace::Tensor& tensor = inputs.emplace_back();
    tensor.type = spec.type;
    for (pinnace::Dim& dim : tensor.type.shape) {
      if (!dim.known()) dim = 2;
    }
    std::vector<float>& data = values.emplace_back(static_cast<size_t>(tensor.type.elements()));
    std::iota(data.begin(), data.end(), 0.0f);
    tensor.memory.host = data.data();
    tensor.memory.bytes = data.size() * sizeof(float);
  }
  if (session->run({}).code() != pinnace::Code::kInvalidArgument) return 4;
  if (const pinnace::Status status = session->run(inputs); !status.ok()) return fail(status);
  auto run = session->submit(inputs);
  if (!run) return fail(run.status());
  if (const pinnace::Status status = run->wait(); !status.ok()) return fail(status);

  for (size_t i = 0; i < session->outputs().size(); ++i) {
    const pinnace::Tensor y = session->output(static_cast<int>(i));
    std::printf("%s %s", session->outputs()[i].name.c_str(), to_string(y.type).c_str());
    for (int64_t e = 0; e < y.type.elements(); ++e) std::printf(" %.9g", static_cast<float*>(y.memory.host)[e]);
    std::printf("\n");
  }
  return 0;
}
