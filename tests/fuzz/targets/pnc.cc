// .pnc files. Most mutations take an accepted file's tables apart, change one number or list of them, and write the
// file again; others change the bytes of a section, or any. Hashes are put right, so that what they cover is reached.
// What is accepted is printed, written again, and some of it run.
#include <cstring>
#include <random>

#include "base/hash.h"
#include "cpp/program/program_fixture.h"
#include "fuzz/fuzzing.h"
#include "program/writer.h"

namespace pinnace {
namespace {

using Random = std::minstd_rand;
using testing::FileParts;

/// Every number and every list of the tables.
class Parts {
 public:
  explicit Parts(format::ModelT& m) {
    list(m.operators), list(m.symbols), list(m.quantizations), list(m.graphs);
    for (auto& op : m.operators) numbers(op->name, op->version);
    for (auto& s : m.symbols) numbers(s->name, s->min, s->max, s->multiple_of);
    for (auto& q : m.quantizations) numbers(q->axis, q->block), plain(q->scales), plain(q->zero_points);
    for (auto& g : m.graphs) add(*g);
  }

  void change(Random& random) {
    if (random() % 4 == 0 && !lists_.empty()) return lists_[random() % lists_.size()](random);
    if (numbers_.empty()) return;
    const std::span<uint8_t> number = numbers_[random() % numbers_.size()];
    const auto& other = numbers_[random() % numbers_.size()];
    switch (random() % 4) {
      case 0:  // indices stay small
        std::memset(number.data(), 0, number.size());
        number[0] = static_cast<uint8_t>(random() % 16);
        break;
      case 1:
        std::memcpy(number.data(), other.data(), std::min(number.size(), other.size()));
        break;
      case 2:
        number[0] = static_cast<uint8_t>(number[0] + (random() % 2 ? 1 : -1));
        break;
      default:
        LLVMFuzzerMutate(number.data(), number.size(), number.size());
    }
  }

 private:
  void add(format::GraphT& g) {
    list(g.values), list(g.nodes), list(g.states);
    plain(g.inputs), plain(g.outputs), plain(g.output_names);
    for (auto& v : g.values) {
      numbers(v->name, v->dtype, v->quantization), plain(v->shape), plain(v->shape_max);
      if (v->constant) numbers(*v->constant);
    }
    for (auto& n : g.nodes) {
      numbers(n->op, n->name, n->line, n->file, n->module_path);
      plain(n->inputs), plain(n->outputs), list(n->attrs);
      for (auto& a : n->attrs) {
        numbers(a->name, a->kind, a->graph), plain(a->ints), plain(a->floats), plain(a->strings);
      }
    }
    for (auto& s : g.states) {
      numbers(s->name, s->input, s->output);
      if (s->initial) numbers(*s->initial);
    }
  }
  template <class... T>
  void numbers(T&... all) {
    (numbers_.push_back({reinterpret_cast<uint8_t*>(&all), sizeof all}), ...);
  }
  /// A list of numbers: they count themselves, and one is repeated, added or left out.
  template <class T>
  void plain(std::vector<T>& all) {
    for (T& n : all) numbers(n);
    lists_.push_back([&all](Random& random) {
      const size_t i = all.empty() ? 0 : random() % all.size();
      if (all.empty() || random() % 2) {
        all.insert(all.begin() + static_cast<ptrdiff_t>(i), all.empty() ? T{} : all[i]);
      } else {
        all.erase(all.begin() + static_cast<ptrdiff_t>(i));
      }
    });
  }
  /// A list of tables: two change places, one is repeated or left out.
  template <class T>
  void list(std::vector<std::unique_ptr<T>>& all) {
    lists_.push_back([&all](Random& random) {
      if (all.empty()) return;
      const size_t i = random() % all.size(), j = random() % all.size();
      switch (random() % 3) {
        case 0:
          std::swap(all[i], all[j]);
          break;
        case 1:
          all.insert(all.begin() + static_cast<ptrdiff_t>(j), std::make_unique<T>(*all[i]));
          break;
        default:
          all.erase(all.begin() + static_cast<ptrdiff_t>(i));
      }
    });
  }

  std::vector<std::span<uint8_t>> numbers_;
  std::vector<std::function<void(Random&)>> lists_;
};

/// Hashes of the constants that lie in the weights.
void refresh_constants(FileParts& parts) {
  const std::vector<std::byte>* weights = nullptr;
  for (const auto& s : parts.sections) weights = s.kind == SectionKind::kWeights ? &s.bytes : weights;
  if (!weights) return;
  const auto hash_of = [&](const format::Span& span) {
    const bool inside = span.offset() <= weights->size() && span.bytes() <= weights->size() - span.offset();
    return inside ? hash64(std::span(*weights).subspan(span.offset(), span.bytes())) : 0;
  };
  for (auto& g : parts.model->graphs) {
    for (auto& v : g->values) v->hash = v->constant ? hash_of(*v->constant) : 0;
    for (auto& s : g->states) s->hash = s->initial ? hash_of(*s->initial) : 0;
  }
}

/// True if the file can be taken apart: the container holds, and both tables are FlatBuffers.
bool can_be_parted(std::span<const std::byte> bytes) {
  FileView file{"seed", bytes};
  const auto container = read_container(file, Verify::kStructure);
  if (!container.ok()) return false;
  const auto verified = [&]<class T>(SectionKind kind, const T*) {
    const auto section = container->bytes(container->only(kind));
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(section.data()), section.size());
    return verifier.VerifyBuffer<T>(nullptr);
  };
  return verified(SectionKind::kGraph, static_cast<const format::Model*>(nullptr)) &&
         verified(SectionKind::kManifest, static_cast<const format::Manifest*>(nullptr));
}

std::vector<std::byte> mutated(std::vector<std::byte> bytes, size_t max_size, Random& random) {
  const auto as_bytes = [](std::vector<std::byte>& v) { return reinterpret_cast<uint8_t*>(v.data()); };
  const bool parted = can_be_parted(bytes);
  if (parted && random() % 8 != 0) {
    FileParts parts(bytes);
    if (random() % 8 == 0) {
      std::vector<std::byte>& section = parts.sections[random() % parts.sections.size()].bytes;
      if (!section.empty()) section.resize(LLVMFuzzerMutate(as_bytes(section), section.size(), section.size()));
    } else {
      for (unsigned times = 1 + random() % 3; times > 0; --times) Parts(*parts.model).change(random);
    }
    refresh_constants(parts);
    return parts.write();
  }
  const size_t size = bytes.size();
  bytes.resize(std::max(max_size, size));
  bytes.resize(LLVMFuzzerMutate(as_bytes(bytes), size, bytes.size()));
  FileHeader header;
  if (bytes.size() >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
  const bool whole =
      bytes.size() >= sizeof header && header.sections <= (bytes.size() - sizeof header) / sizeof(SectionEntry);
  if (whole && random() % 4 != 0) testing::refresh_hashes(bytes);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto program = Program::from_bytes(std::as_bytes(std::span(data, size)));
  if (!program.ok()) {
    fuzz::require_refusal(program.status());
    return 0;
  }
  program->text(256);
  program->nodes();
  program->payloads();
  const ProgramData& read = program->data();
  const auto written = write_program(read.graph, read.metadata, read.payloads);
  if (!written.ok()) {
    fuzz::require_refusal(written.status());
    return 0;
  }
  const auto again = Program::from_bytes({written->data(), written->size()});
  fuzz::require(again.ok(), "what is read and written can be read", again.ok() ? "" : again.status().message());
  if (fuzz::chosen_to_run({data, size})) fuzz::run_accepted(*program);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed);
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::vector<std::byte> made = mutated({bytes.begin(), bytes.end()}, max_size, random);
  const size_t kept = std::min(made.size(), max_size);
  if (kept > 0) std::memcpy(data, made.data(), kept);
  return kept;
}

}  // namespace pinnace
