// The C API, what looks into programs and writes them: not in a library that was built for some models alone, which has
// no use for the writer and the printer.
#include "runtime/c_api.h"

using pinnace::Status;
using pinnace::c_api::give_program;
using pinnace::c_api::give_rows;
using pinnace::c_api::give_text;
using pinnace::c_api::guarded;
using pinnace::c_api::null_argument;
using pinnace::c_api::Rows;

pnc_status pnc_program_nodes(const pnc_program* program, const pnc_node** nodes, int32_t* count) {
  return give_rows(program, Rows(8), nodes, count, [](const void* object, Rows& list) -> Status {
    const pinnace::Program& of = static_cast<const pnc_program*>(object)->program;
    for (const pinnace::NodeInfo& node : of.nodes()) {
      list.texts({&node.name, &node.op, &node.path, &node.source, &node.module});
      list.lines(node.inputs);
      list.lines(node.outputs);
      std::vector<std::string> types;
      for (const pinnace::TensorType& type : node.output_types) types.push_back(to_string(type, of.symbols()));
      list.lines(types);
    }
    return {};
  });
}

pnc_status pnc_program_constants(const pnc_program* program, const pnc_constant** constants, int32_t* count) {
  return give_rows(program, Rows(2, 1), constants, count, [](const void* object, Rows& list) -> Status {
    for (const pinnace::TensorSpec& constant : static_cast<const pnc_program*>(object)->program.constants()) {
      list.text(constant.name);
      list.text(to_string(constant.type));
      list.number(constant.type.bytes());
    }
    return {};
  });
}

pnc_status pnc_program_text(const pnc_program* program, size_t max_constant_bytes, const char** text) {
  return guarded([&]() -> Status {
    if (text) *text = nullptr;
    if (!program || !text) return null_argument("program or text");
    return give_text(program->program.text(max_constant_bytes), text);
  });
}

pnc_status pnc_program_with_metadata(const pnc_program* program, const pnc_fact* facts, int32_t count,
                                     pnc_program** changed) {
  return guarded([&]() -> Status {
    if (!changed) return null_argument("changed");
    *changed = nullptr;
    if (count < 0) return pinnace::invalid("the number of facts is ", count);
    if (!program || (!facts && count)) return null_argument("program or facts");
    std::vector<std::pair<std::string, std::string>> entries;
    for (int32_t i = 0; i < count; ++i) {
      if (!facts[i].key || !facts[i].value) return null_argument("a key or value");
      entries.emplace_back(facts[i].key, facts[i].value);
    }
    return give_program(program->program.with_metadata(entries), changed);
  });
}

pnc_status pnc_program_without_payloads(const pnc_program* program, pnc_program** changed) {
  return guarded([&]() -> Status {
    if (!changed) return null_argument("changed");
    *changed = nullptr;
    if (!program) return null_argument("program");
    return give_program(program->program.without_payloads(), changed);
  });
}

pnc_status pnc_program_save(const pnc_program* program, const char* path) {
  return guarded([&] { return program && path ? program->program.save(path) : null_argument("program or path"); });
}

pnc_status pnc_program_diff(const pnc_program* a, const pnc_program* b, int32_t include_metadata, const char** lines) {
  return guarded([&]() -> Status {
    if (!lines) return null_argument("lines");
    *lines = nullptr;
    if (!a || !b) return null_argument("a program");
    std::string text;
    for (const std::string& line : diff(a->program, b->program, include_metadata != 0)) text += line + "\n";
    return give_text(text, lines);
  });
}
