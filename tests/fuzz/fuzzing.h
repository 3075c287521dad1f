// What the fuzz targets share: files that stand in memory, properties that end a target when they are broken, and the
// run of a program that was accepted. A target is one .cc file here with LLVMFuzzerTestOneInput; libFuzzer's main calls
// it, and LLVMFuzzerCustomMutator where there is one. scripts/fuzz.py runs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <pinnace/model.h>

#include "base/status.h"

namespace pinnace::fuzz {

/// A file whose contents are replaced by each input, for readers that take a path. It lies in the folder that the
/// environment variable PINNACE_FUZZ_FOLDER names, else in memory (/dev/shm), in a folder that goes with the process.
class InputFile {
 public:
  explicit InputFile(std::string_view name);
  const std::string& path() const { return path_; }
  void write(std::span<const uint8_t> bytes) const;
  void write(std::string_view text) const { write({reinterpret_cast<const uint8_t*>(text.data()), text.size()}); }

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// Ends the process with the sentence if `holds` is false; libFuzzer then keeps the input.
void require(bool holds, std::string_view rule, std::string_view found = {});

/// What a reader may answer to any bytes: one of its documented codes, with a sentence of less than 64 KiB.
void require_refusal(const Status& status);

/// Prepares the program for the CPU, makes inputs of its declared types, and runs it twice. Programs whose declared
/// values take more than 1 MiB, or whose work is known to be large, are left out; what runs for longer than 100 ms is
/// cancelled. Whatever happens, the answers are results or documented errors, and every byte of a result can be read.
void run_accepted(const Program& program);

/// The model as a program, written and read back, then run_accepted. Refusals of any step are fine.
void build_and_run(const Model& model);

/// What a target does with a reader's answer: refusals are documented ones, models are built and run.
void judge(const Result<Model>& model);
/// The same for an input of a reader, of which only those that are chosen_to_run() are run.
void judge(const Result<Model>& model, std::span<const uint8_t> bytes);

/// Whether a file of these bytes goes to the importer of that format.
bool is_taken_for(std::string_view format, std::span<const uint8_t> bytes);

/// True for one input of eight, always for the same ones, and for all where PINNACE_FUZZ_RUN is set: targets for
/// readers run only these, since a run takes several times as long as reading.
bool chosen_to_run(std::span<const uint8_t> bytes);

}  // namespace pinnace::fuzz

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out,
                                 size_t max_size, unsigned seed);
/// libFuzzer's own mutations, for parts of an input.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
}
