// Runs a .pnc file of a digit classifier on raw float32 images [N, 1, 8, 8] and writes the logits [N, 10]:
// digits_cpp digits.pnc images.bin logits.bin
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include <pinnace/pinnace.h>

namespace {
int fail(const pinnace::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: digits_cpp digits.pnc images.bin logits.bin\n");
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  std::vector<char> images{std::istreambuf_iterator<char>(file), {}};
  const auto count = static_cast<int64_t>(images.size() / (8 * 8 * sizeof(float)));

  auto program = pinnace::Program::open(argv[1]);
  if (!program) return fail(program.status());
  auto session = pinnace::Session::create(*program, {.target = "auto", .threads = 1});
  if (!session) return fail(session.status());

  pinnace::Tensor input;
  input.type.shape = {count, 1, 8, 8};
  input.memory.host = images.data();
  input.memory.bytes = images.size();
  if (pinnace::Status status = session->run({&input, 1}); !status.ok()) return fail(status);

  const pinnace::Tensor logits = session->output(0);
  std::ofstream(argv[3], std::ios::binary)
      .write(static_cast<const char*>(logits.memory.host), static_cast<std::streamsize>(logits.memory.bytes));
  return 0;
}
