// What a C++ application does with the host library: imports a model, converts it and saves it. converter IN OUT.pnc
#include <cstdio>

#include <pinnace/model.h>
#include <pinnace/pinnace.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto model = pinnace::Model::load(argv[1]);
  if (!model) {
    std::fprintf(stderr, "%s\n", model.status().message().c_str());
    return 1;
  }
  auto program = model->build();
  if (!program) {
    std::fprintf(stderr, "%s\n", program.status().message().c_str());
    return 1;
  }
  if (const pinnace::Status status = program->save(argv[2]); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  std::printf("%s: %zu nodes, %zu passes\n", argv[2], program->nodes().size(), pinnace::passes().size());
  return 0;
}
