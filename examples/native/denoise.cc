// Takes noise out of sound while it comes: WAV from standard input, WAV to standard output, chunk by chunk.
// denoise net.pnc [MILLISECONDS] < noisy.wav > clean.wav
//
// The file holds a network of samples that was loaded as a stream, [1, 1, T] -> [1, 1, T]; outputs behind the first are
// not looked at:
//   pn.load(net, x, stream={"audio": 2}).build().save("net.pnc")
// examples/suppress_noise.py makes one of a published noise suppressor, examples/spectral_gate.py one of a small
// module. Each channel is a stream of its own, and both share the weights. The output has as many samples as the input:
// what the network lags behind is left off at the start, and comes from finish() at the end. A chunk has about so many
// milliseconds, 10 where nothing is said. After the first chunk nothing is allocated until the sound ends, which this
// program counts and says.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <pinnace/pinnace.h>

// count_allocations.cc
size_t allocations();
bool allocations_are_counted();

namespace {

int fail(const std::string& sentence) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  return 1;
}

uint32_t number(const uint8_t* bytes, int count) {
  uint32_t n = 0;
  for (int i = count - 1; i >= 0; --i) n = n << 8 | bytes[i];
  return n;
}

void put(uint8_t* bytes, uint32_t n, int count) {
  for (int i = 0; i < count; ++i, n >>= 8) bytes[i] = static_cast<uint8_t>(n);
}

/// What a file says of its samples, which are 16 bits each.
struct Format {
  uint32_t rate = 0, channels = 0;
  uint32_t bytes = 0;  ///< of all samples; kUnknown: until the file ends
  static constexpr uint32_t kUnknown = UINT32_MAX;
};

bool read_all(uint8_t* to, size_t count) {
  return std::fread(to, 1, count, stdin) == count;
}

/// Reads up to the first sample; gives what is wrong, or an empty string.
std::string read_header(Format& format) {
  uint8_t head[40];
  if (!read_all(head, 12) || std::memcmp(head, "RIFF", 4) != 0 || std::memcmp(head + 8, "WAVE", 4) != 0) {
    return "standard input is no WAV file: it does not begin with RIFF and WAVE";
  }
  while (read_all(head, 8)) {
    const uint32_t size = number(head + 4, 4);
    if (std::memcmp(head, "data", 4) == 0) {
      if (!format.channels) return "the WAV file has samples before it says of what form they are";
      // Programs that write to a pipe cannot know, and give 0 or the largest number.
      const uint32_t frame = format.channels * 2;
      format.bytes = size == 0 || size >= 0x7ffff000 ? Format::kUnknown : size / frame * frame;
      return {};
    }
    uint64_t rest = uint64_t{size} + size % 2;  // parts begin at even places
    if (std::memcmp(head, "fmt ", 4) == 0) {
      if (size < 16) return "the WAV file's fmt part has " + std::to_string(size) + " bytes, and needs 16";
      const size_t count = std::min<size_t>(size, sizeof head);
      if (!read_all(head, count)) break;
      rest -= count;
      // 1 is PCM; 0xfffe says so 24 bytes on.
      const uint32_t kind = number(head, 2) == 0xfffe && count >= 26 ? number(head + 24, 2) : number(head, 2);
      const uint32_t bits = number(head + 14, 2);
      format.channels = number(head + 2, 2);
      format.rate = number(head + 4, 4);
      if (kind != 1 || bits != 16) {
        return "the WAV file has samples of form " + std::to_string(kind) + " with " + std::to_string(bits) +
               " bits; this program takes PCM, form 1, with 16 bits";
      }
      if (format.channels < 1 || format.channels > 2 || !format.rate) {
        return "the WAV file has " + std::to_string(format.channels) + " channels at " + std::to_string(format.rate) +
               " Hz; this program takes one or two channels";
      }
    }
    for (uint8_t skipped[256]; rest > 0;) {
      const size_t count = static_cast<size_t>(std::min<uint64_t>(rest, sizeof skipped));
      if (!read_all(skipped, count)) break;
      rest -= count;
    }
  }
  return "the WAV file ends before its samples";
}

bool write_header(const Format& format) {
  uint8_t head[44] = {'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'A', 'V', 'E', 'f', 'm', 't', ' '};
  put(head + 4, format.bytes == Format::kUnknown ? Format::kUnknown : format.bytes + 36, 4);
  put(head + 16, 16, 4);
  put(head + 20, 1, 2);
  put(head + 22, format.channels, 2);
  put(head + 24, format.rate, 4);
  put(head + 28, format.rate * format.channels * 2, 4);
  put(head + 32, format.channels * 2, 2);
  put(head + 34, 16, 2);
  std::copy_n("data", 4, head + 36);
  put(head + 40, format.bytes, 4);
  return std::fwrite(head, 1, sizeof head, stdout) == sizeof head && std::fflush(stdout) == 0;
}

/// Its only input, if the program takes samples in chunks and its first output has one for each.
std::optional<pinnace::StreamedInput> stream_of(const pinnace::Program& program) {
  const auto streams = program.streamed_inputs();
  const auto streamed = program.streamed_outputs();
  if (!streams || !streamed || streams->size() != 1 || streamed->empty()) return std::nullopt;
  const auto is_sound = [](const pinnace::TensorSpec& t) {
    const auto is_one = [](const pinnace::Dim& d) { return d.known() && d.size == 1; };
    return t.type.dtype == pinnace::DType::kF32 && t.type.rank() == 3 && is_one(t.type.shape[0]) &&
           is_one(t.type.shape[1]);
  };
  const auto inputs = program.inputs(), outputs = program.outputs();
  const pinnace::StreamedOutput& to = streamed->front();
  const bool fits = inputs.size() == 1 && to.name == outputs[0].name && is_sound(inputs[0]) && is_sound(outputs[0]) &&
                    streams->front().axis == 2 && to.axis == 2 && to.up == to.down && to.more == 0;
  return fits ? std::optional(streams->front()) : std::nullopt;
}

/// One channel: a session, and the samples that it is given.
class Channel {
 public:
  Channel(pinnace::Session session, int64_t chunk) : session_(std::move(session)) {
    outputs_.resize(session_.outputs().size());  // those behind the first stay in memory of the session
    for (auto [tensor, samples] : {std::pair(&input_, &samples_), std::pair(&outputs_[0], &made_)}) {
      samples->resize(static_cast<size_t>(chunk));
      tensor->type.shape = {1, 1, chunk};
      tensor->memory = {samples->data(), samples->size() * sizeof(float)};
    }
  }
  std::vector<float>& samples() { return samples_; }
  /// What run() made of them, as many.
  const float* made() const { return made_.data(); }
  pinnace::Status run() { return session_.run({&input_, 1}, outputs_); }
  /// Ends the stream; the samples that are left are the session's.
  pinnace::Result<const float*> finish() {
    const auto rest = session_.finish();
    if (!rest) return rest.status();
    return static_cast<const float*>(session_.output(0).memory.host);
  }

 private:
  pinnace::Session session_;
  pinnace::Tensor input_;
  std::vector<pinnace::Tensor> outputs_;
  std::vector<float> samples_, made_;
};

/// Writes samples of all channels, without the first `late`, and never more of them in all than were taken. `most` is
/// the largest count of one write().
class Writer {
 public:
  Writer(size_t channels, int64_t late, size_t most) : channels_(channels), late_(late), bytes_(most * channels * 2) {}
  bool write(const std::vector<const float*>& from, int64_t count, int64_t taken) {
    const int64_t begin = std::min(late_, count);
    late_ -= begin;
    count = std::min(count, begin + taken - given_);  // what stands for the end of a chunk is not written
    if (count <= begin) return true;
    uint8_t* to = bytes_.data();
    for (int64_t i = begin; i < count; ++i) {
      for (const float* channel : from) {
        const float scaled = std::clamp(std::nearbyint(channel[i] * 32768.0f), -32768.0f, 32767.0f);
        put(to, static_cast<uint32_t>(static_cast<int32_t>(scaled)), 2);
        to += 2;
      }
    }
    given_ += count - begin;
    const auto size = static_cast<size_t>(to - bytes_.data());
    return std::fwrite(bytes_.data(), 1, size, stdout) == size && std::fflush(stdout) == 0;
  }

 private:
  size_t channels_;
  int64_t late_, given_ = 0;
  std::vector<uint8_t> bytes_;
};

}  // namespace

int main(int argc, char** argv) {
  char* end = nullptr;
  const int64_t milliseconds = argc == 3 ? std::strtoll(argv[2], &end, 10) : 10;
  if (argc < 2 || argc > 3 || (end && *end) || milliseconds < 1 || milliseconds > 10000) {
    std::fprintf(stderr,
                 "usage: denoise net.pnc [MILLISECONDS] < noisy.wav > clean.wav\n"
                 "  MILLISECONDS of a chunk, 1 to 10000; 10 where nothing is said\n");
    return 2;
  }
  const auto program = pinnace::Program::open(argv[1]);
  if (!program) return fail(program.status().message());
  const auto stream = stream_of(*program);
  if (!stream) {
    return fail(std::string(argv[1]) + " is no stream of samples: it needs one input and a first output of float32 " +
                "[1, 1, T] with a sample out for each one in, and to be made with load(stream={name: 2})");
  }
  Format format;
  if (const std::string wrong = read_header(format); !wrong.empty()) return fail(wrong);
  for (const auto& [name, text] : program->metadata()) {
    if (name == "rate" && text != std::to_string(format.rate)) {
      return fail(std::string(argv[1]) + " is for " + text + " Hz, and the WAV file has " +
                  std::to_string(format.rate));
    }
  }

  const int64_t wanted = std::max<int64_t>(1, format.rate * milliseconds / 1000);
  const int64_t chunk = (wanted + stream->multiple - 1) / stream->multiple * stream->multiple;
  std::vector<Channel> channels;
  auto session = pinnace::Session::create(*program, {.target = "cpu", .threads = 1});
  if (!session) return fail(session.status().message());
  if (format.channels == 2) {  // both at their beginning
    auto second = session->fork();
    if (!second) return fail(second.status().message());
    channels.emplace_back(std::move(*second), chunk);
  }
  channels.emplace_back(std::move(*session), chunk);

  const size_t frame = format.channels * 2;
  std::vector<uint8_t> bytes(static_cast<size_t>(chunk) * frame);
  std::vector<const float*> results(channels.size());
  Writer writer(channels.size(), stream->latency, static_cast<size_t>(std::max(chunk, stream->latency)));
  if (!write_header(format)) return fail("standard output takes no more");
  int64_t taken = 0;
  uint64_t left = format.bytes == Format::kUnknown ? UINT64_MAX : format.bytes;
  size_t chunks = 0, first = 0, later = 0;
  while (left > 0) {
    const size_t before = allocations();
    const size_t size = static_cast<size_t>(std::min<uint64_t>(left, bytes.size()));
    const size_t got = std::fread(bytes.data(), 1, size, stdin) / frame;
    if (got == 0) break;
    left -= std::min<uint64_t>(left, got * frame);
    taken += static_cast<int64_t>(got);
    for (size_t c = 0; c < channels.size(); ++c) {
      std::vector<float>& samples = channels[c].samples();
      for (size_t i = 0; i < got; ++i) {
        const auto value = static_cast<int16_t>(number(bytes.data() + i * frame + c * 2, 2));
        samples[i] = static_cast<float>(value) / 32768.0f;
      }
      std::fill(samples.begin() + static_cast<ptrdiff_t>(got), samples.end(), 0.0f);  // behind the end
      if (const pinnace::Status status = channels[c].run(); !status.ok()) return fail(status.message());
      results[c] = channels[c].made();
    }
    if (!writer.write(results, chunk, taken)) return fail("standard output takes no more");
    (chunks++ ? later : first) += allocations() - before;
    if (got * frame < size) break;
  }
  for (size_t c = 0; c < channels.size(); ++c) {
    const auto rest = channels[c].finish();
    if (!rest) return fail(rest.status().message());
    results[c] = *rest;
  }
  if (!writer.write(results, stream->latency, taken)) return fail("standard output takes no more");
  std::fprintf(stderr, "%" PRId64 " samples in %zu chunks of %" PRId64 ", %" PRId64 " late", taken, chunks, chunk,
               stream->latency);
  if (allocations_are_counted()) {
    std::fprintf(stderr, "; allocations: %zu in the first chunk, %zu in all others", first, later);
  }
  std::fprintf(stderr, "\n");
  if (left > 0 && format.bytes != Format::kUnknown) return fail("the WAV file ends before its last sample");
  return 0;
}
