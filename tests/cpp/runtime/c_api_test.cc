// The C functions: what they give is what their C++ namesakes give, and misuse is an error with a sentence.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <pinnace/pinnace.h>

#include "cpp/program/program_fixture.h"
#include "graph/graph.h"
#include "program/writer.h"

namespace pinnace::testing {
namespace {

/// A dynamic size, a quantised input, and a state that counts runs.
constexpr const char* kCounter = R"(graph "counter" {
  symbol n 1..8
  input %x : f32[n,2]
  input %q : i8[2]{scale 0.5, zero 3}
  const %w : f32[2,2] = {1,2,3,4}
  const %one : f32[1] = {1}
  state "count" %s : f32[1] next %t = {10}
  %t : f32[1] = add(%s, %one)
  %m : f32[n,2] = mat_mul(%x, %w)
  %y : f32[n,2] = relu(%m)
  %z : i8[2]{scale 0.5, zero 3} = relu(%q)
  output "y" %y
  output "z" %z
})";

std::vector<std::byte> bytes_of(const char* text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  auto bytes = write_program(*graph, {{"producer", "test"}, {"license", "none"}}, {});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return to_vector(*bytes);
}

/// A number that an enumeration does not have, as a caller of C may give it.
template <class Enum>
Enum number(int given) {
  static_assert(sizeof(Enum) == sizeof given);
  Enum made;
  std::memcpy(&made, &given, sizeof made);
  return made;
}

/// A list that goes with its scope.
template <class Row>
struct List {
  const Row* rows = nullptr;
  int32_t count = -1;
  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { pnc_free(rows); }
};

class CApi : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto bytes = bytes_of(kCounter);
    ASSERT_EQ(pnc_program_from_bytes(bytes.data(), bytes.size(), PNC_VERIFY_FULL, &program), PNC_OK) << pnc_error();
  }
  void TearDown() override {
    pnc_session_close(session);
    pnc_program_close(program);
  }
  void create() { ASSERT_EQ(pnc_session_create(program, nullptr, &session), PNC_OK) << pnc_error(); }
  /// Whether the last failure's sentence has these words.
  static ::testing::AssertionResult says(const char* words) {
    if (std::strstr(pnc_error(), words)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "the sentence is: " << pnc_error();
  }

  pnc_program* program = nullptr;
  pnc_session* session = nullptr;
  float x[4] = {1, 2, 3, 4};
  int8_t q[2] = {3, 5};
  pnc_tensor inputs[2] = {{x, sizeof x, PNC_F32, 2, {2, 2}}, {q, sizeof q, PNC_I8, 1, {2}}};
  const std::vector<float> right = {7, 10, 15, 22};
};

TEST_F(CApi, ProgramsAreOpenedFromPathsDescriptorsAndMemory) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.pnc");
  ASSERT_EQ(pnc_program_save(program, path.c_str()), PNC_OK);
  const void* data = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(pnc_program_bytes(program, &data, &bytes), PNC_OK);
  const std::string whole(static_cast<const char*>(data), bytes);

  const auto same = [&](pnc_program* other) {
    const char* lines = nullptr;
    EXPECT_EQ(pnc_program_diff(program, other, 1, &lines), PNC_OK);
    EXPECT_STREQ(lines, "");
    pnc_free(lines);
    pnc_program_close(other);
  };
  pnc_program* other = nullptr;
  for (const pnc_verify verify : {PNC_VERIFY_FULL, PNC_VERIFY_ON_USE, PNC_VERIFY_STRUCTURE}) {
    ASSERT_EQ(pnc_program_open_with(path.c_str(), verify, &other), PNC_OK);
    same(other);
  }
  pnc_program* none = nullptr;
  // At the file's beginning, at a multiple of 64 bytes (mapped) and elsewhere (copied).
  for (const size_t before : {size_t{0}, size_t{64}, size_t{4096}, size_t{5000}, size_t{16448}}) {
    std::ofstream(folder.file("b"), std::ios::binary) << std::string(before, '?') << whole << "behind";
    const int file = ::open(folder.file("b").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(file, 0);
    const auto offset = static_cast<int64_t>(before), size = static_cast<int64_t>(bytes);
    ASSERT_EQ(pnc_program_open_descriptor(file, offset, size, PNC_VERIFY_FULL, &other), PNC_OK) << pnc_error();
    EXPECT_EQ(pnc_program_open_descriptor(file, offset, size + 7, PNC_VERIFY_FULL, &none), PNC_INVALID_ARGUMENT);
    EXPECT_TRUE(says("are not inside 'descriptor"));
    EXPECT_EQ(pnc_program_open_descriptor(file, offset, -1, PNC_VERIFY_FULL, &none), PNC_CORRUPT_FILE);
    EXPECT_EQ(pnc_program_open_descriptor(file, -1, 5, PNC_VERIFY_FULL, &none), PNC_INVALID_ARGUMENT);
    EXPECT_EQ(pnc_program_open_descriptor(file, INT64_MIN, -1, PNC_VERIFY_FULL, &none), PNC_INVALID_ARGUMENT);
    EXPECT_EQ(pnc_program_open_descriptor(file, INT64_MAX, -1, PNC_VERIFY_FULL, &none), PNC_INVALID_ARGUMENT);
    EXPECT_EQ(pnc_program_open_descriptor(file, INT64_MAX, 5, PNC_VERIFY_FULL, &none), PNC_INVALID_ARGUMENT);
    EXPECT_EQ(pnc_program_open_descriptor(file, 5, INT64_MAX, PNC_VERIFY_FULL, &none), PNC_INVALID_ARGUMENT);
    EXPECT_EQ(pnc_program_open_descriptor(file, 0, 0, PNC_VERIFY_FULL, &none), PNC_CORRUPT_FILE);
    ::close(file);
    same(other);
  }
  // To the end.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(pnc_program_open_descriptor(file, 0, -1, PNC_VERIFY_ON_USE, &other), PNC_OK) << pnc_error();
  ::close(file);
  same(other);
  EXPECT_EQ(pnc_program_open_descriptor(-1, 0, -1, PNC_VERIFY_FULL, &other), PNC_FILE);
  EXPECT_EQ(other, nullptr);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(pnc_program_open_descriptor(ends[0], 0, -1, PNC_VERIFY_FULL, &other), PNC_FILE);
  EXPECT_TRUE(says("not a regular file"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(CApi, ProgramsAreDescribed) {
  pnc_spec spec;
  pnc_type type;
  EXPECT_EQ(pnc_program_input_count(program), 2);
  EXPECT_EQ(pnc_program_output_count(program), 2);
  EXPECT_EQ(pnc_program_state_count(program), 1);
  ASSERT_EQ(pnc_program_state(program, 0, &spec), PNC_OK);
  EXPECT_STREQ(spec.name, "count");
  EXPECT_EQ(spec.rank, 1);
  ASSERT_EQ(pnc_program_state_type(program, 0, &type), PNC_OK);
  EXPECT_EQ(type.dims[0].size, 1);
  ASSERT_EQ(pnc_program_input_type(program, 0, &type), PNC_OK);
  EXPECT_EQ(type.dtype, PNC_F32);
  EXPECT_EQ(type.rank, 2);
  EXPECT_EQ(type.dims[0].size, -1);
  EXPECT_EQ(type.dims[0].symbol, 0);
  EXPECT_EQ(type.dims[1].size, 2);
  EXPECT_EQ(type.dims[1].symbol, -1);
  EXPECT_EQ(type.scale_count, 0);
  ASSERT_EQ(pnc_program_input_type(program, 1, &type), PNC_OK);
  ASSERT_EQ(type.scale_count, 1);
  EXPECT_EQ(type.scales[0], 0.5f);
  EXPECT_EQ(type.zero_points[0], 3);
  EXPECT_EQ(type.axis, -1);
  ASSERT_EQ(pnc_program_output_type(program, 0, &type), PNC_OK);
  EXPECT_EQ(type.rank, 2);

  List<pnc_symbol> symbols;
  ASSERT_EQ(pnc_program_symbols(program, &symbols.rows, &symbols.count), PNC_OK);
  ASSERT_EQ(symbols.count, 1);
  EXPECT_STREQ(symbols.rows[0].name, "n");
  EXPECT_EQ(symbols.rows[0].min, 1);
  EXPECT_EQ(symbols.rows[0].max, 8);
  EXPECT_EQ(symbols.rows[0].multiple_of, 1);
  List<pnc_node> nodes;
  ASSERT_EQ(pnc_program_nodes(program, &nodes.rows, &nodes.count), PNC_OK);
  ASSERT_EQ(nodes.count, 4);
  EXPECT_STREQ(nodes.rows[1].op, "mat_mul");
  EXPECT_STREQ(nodes.rows[1].inputs, "x\nw");
  EXPECT_STREQ(nodes.rows[1].outputs, "m");
  EXPECT_STREQ(nodes.rows[1].output_types, "float32[n,2]");
  List<pnc_constant> constants;
  ASSERT_EQ(pnc_program_constants(program, &constants.rows, &constants.count), PNC_OK);
  ASSERT_GE(constants.count, 2);
  EXPECT_STREQ(constants.rows[0].name, "w");
  EXPECT_STREQ(constants.rows[0].type, "float32[2,2]");
  EXPECT_EQ(constants.rows[0].bytes, 16);
  const char* text = nullptr;
  ASSERT_EQ(pnc_program_text(program, 64, &text), PNC_OK);
  EXPECT_NE(std::strstr(text, "mat_mul"), nullptr);
  pnc_free(text);
  List<pnc_payload> payloads;
  ASSERT_EQ(pnc_program_payloads(program, &payloads.rows, &payloads.count), PNC_OK);
  EXPECT_EQ(payloads.count, 0);
  EXPECT_EQ(payloads.rows, nullptr);
}

TEST_F(CApi, ProgramsAreChanged) {
  const pnc_fact facts[] = {{"author", "somebody"}, {"license", "some"}};
  pnc_program *changed = nullptr, *bare = nullptr;
  ASSERT_EQ(pnc_program_with_metadata(program, facts, 2, &changed), PNC_OK);
  List<pnc_fact> all;
  ASSERT_EQ(pnc_program_metadata(changed, &all.rows, &all.count), PNC_OK);
  ASSERT_EQ(all.count, 3);
  EXPECT_STREQ(all.rows[0].key, "author");
  EXPECT_STREQ(all.rows[1].value, "some");
  EXPECT_STREQ(all.rows[2].key, "producer");
  const char* lines = nullptr;
  ASSERT_EQ(pnc_program_diff(program, changed, 1, &lines), PNC_OK);
  EXPECT_NE(std::strstr(lines, "author"), nullptr) << lines;
  pnc_free(lines);
  ASSERT_EQ(pnc_program_diff(program, changed, 0, &lines), PNC_OK);
  EXPECT_STREQ(lines, "");
  pnc_free(lines);
  pnc_program_close(changed);
  ASSERT_EQ(pnc_program_without_payloads(program, &bare), PNC_OK);
  pnc_program_close(bare);

  const auto sample = sample_bytes();  // which has two payloads
  ASSERT_EQ(pnc_program_from_bytes(sample.data(), sample.size(), PNC_VERIFY_FULL, &changed), PNC_OK);
  List<pnc_payload> payloads, none;
  ASSERT_EQ(pnc_program_payloads(changed, &payloads.rows, &payloads.count), PNC_OK);
  EXPECT_EQ(payloads.count, 2);
  EXPECT_GT(payloads.rows[0].bytes, 0);
  EXPECT_STRNE(payloads.rows[1].target, "");
  ASSERT_EQ(pnc_program_without_payloads(changed, &bare), PNC_OK);
  ASSERT_EQ(pnc_program_payloads(bare, &none.rows, &none.count), PNC_OK);
  EXPECT_EQ(none.count, 0);
  pnc_program_close(bare);
  pnc_program_close(changed);
}

TEST_F(CApi, SessionsHaveAllOptions) {
  const char* keep[] = {"m"};
  pnc_session_options options = {};
  options.size = sizeof options;
  options.target = "cpu";
  options.precision = "fp32";
  options.threads = 1;
  options.no_fallback = 1;
  options.plan_cache = 1;
  options.keep = keep;
  options.keep_count = 1;
  options.preference = "fast_single_answer";
  options.priority = "low";
  options.cache_folder = "nowhere";
  options.device = "none";
  options.deadline_ns = 1;
  options.loop_timeout_ns = 1;
  ASSERT_EQ(pnc_session_create_with(program, &options, &session), PNC_OK) << pnc_error();
  const pnc_placement* rows = nullptr;
  int32_t row_count = 0;
  ASSERT_EQ(pnc_session_placement(session, &rows, &row_count), PNC_OK);
  ASSERT_GT(row_count, 0);
  EXPECT_STREQ(rows[0].notice, "cpu has no use of priority, deadline, cache_folder, device");
  pnc_free(rows);
  ASSERT_EQ(pnc_session_output_count(session), 3);
  pnc_spec spec;
  ASSERT_EQ(pnc_session_output_spec(session, 2, &spec), PNC_OK);
  EXPECT_STREQ(spec.name, "m");
  pnc_type type;
  ASSERT_EQ(pnc_session_output_type(session, 0, &type), PNC_OK);
  EXPECT_EQ(type.dims[0].size, -1);
  ASSERT_EQ(pnc_session_run(session, inputs, 2, nullptr, 0), PNC_OK) << pnc_error();
  ASSERT_EQ(pnc_session_output_type(session, 0, &type), PNC_OK);
  EXPECT_EQ(type.dims[0].size, 2);
  pnc_tensor m;
  ASSERT_EQ(pnc_session_output(session, 2, &m), PNC_OK);
  EXPECT_EQ(std::vector<float>(static_cast<float*>(m.data), static_cast<float*>(m.data) + 4),
            (std::vector<float>{7, 10, 15, 22}));

  pnc_session* other = nullptr;
  options.keep_count = 2;
  const char* wrong[] = {"m", "nowhere"};
  options.keep = wrong;
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_INVALID_ARGUMENT);
  EXPECT_TRUE(says("nowhere"));
  options.keep = nullptr;
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_INVALID_ARGUMENT);
  options.keep_count = -1;
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_INVALID_ARGUMENT);
  options.keep_count = 0;
  options.preference = "fast";
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_INVALID_ARGUMENT);
  EXPECT_TRUE(says("preference is 'fast'"));
  options.preference = nullptr;
  options.deadline_ns = -1;
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_INVALID_ARGUMENT);
  EXPECT_TRUE(says("deadline is -1 ns"));
  options.deadline_ns = 0;
  const int32_t processors[] = {0, -5};
  options.processor_count = 2;
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_INVALID_ARGUMENT);
  options.processors = processors;
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_INVALID_ARGUMENT);
  EXPECT_TRUE(says("processor "));
  options.processor_count = -1;
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_INVALID_ARGUMENT);
  options.processors = nullptr;
  options.processor_count = 0;
  options.keep_count = -1;
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_INVALID_ARGUMENT);
  options.keep_count = 0;
  options.size = 8;
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_INVALID_ARGUMENT);
  EXPECT_TRUE(says("options of 8 bytes"));
  EXPECT_EQ(other, nullptr);
  // A later version's caller: more members than are known here.
  options.size = sizeof options + 64;
  EXPECT_EQ(pnc_session_create_with(program, &options, &other), PNC_OK);
  pnc_session_close(other);
}

TEST_F(CApi, SessionsAreDescribed) {
  create();
  List<pnc_placement> before, after;
  ASSERT_EQ(pnc_session_placement(session, &before.rows, &before.count), PNC_OK);
  ASSERT_EQ(before.count, 4);
  ASSERT_EQ(pnc_session_run(session, inputs, 2, nullptr, 0), PNC_OK);
  ASSERT_EQ(pnc_session_placement(session, &after.rows, &after.count), PNC_OK);
  ASSERT_EQ(after.count, 4);
  EXPECT_STREQ(after.rows[1].op, "mat_mul");
  EXPECT_STREQ(after.rows[1].backend, "cpu");
  EXPECT_STRNE(after.rows[1].kernel, "");
  pnc_plan_info plan = {};
  ASSERT_EQ(pnc_session_plan(session, &plan), PNC_OK);
  EXPECT_GT(plan.peak_bytes, 0);
  EXPECT_GT(plan.nodes_run, 0);
  const char* precision = nullptr;
  ASSERT_EQ(pnc_session_precision(session, &precision), PNC_OK);
  EXPECT_STREQ(precision, "fp32");
  pnc_free(precision);
  List<pnc_profile_event> events;
  ASSERT_EQ(pnc_session_profile(session, inputs, 2, nullptr, 0, nullptr, &events.rows, &events.count), PNC_OK);
  ASSERT_GE(events.count, 3);
  EXPECT_STREQ(events.rows[0].backend, "cpu");
  EXPECT_GE(events.rows[0].duration_ns, 0);
  EXPECT_LE(events.rows[0].start_ns, events.rows[1].start_ns);
  List<pnc_device> devices;
  ASSERT_EQ(pnc_devices(&devices.rows, &devices.count), PNC_OK);
  ASSERT_GE(devices.count, 1);
  bool cpu = false;
  for (int32_t i = 0; i < devices.count; ++i) {
    cpu |= !std::strcmp(devices.rows[i].target, "cpu") && devices.rows[i].available == 1;
  }
  EXPECT_TRUE(cpu);
}

TEST_F(CApi, States) {
  create();
  const auto count = [&] {
    float value = 0;
    const pnc_tensor to = {&value, sizeof value, PNC_F32, 1, {1}};
    EXPECT_EQ(pnc_session_copy_state(session, 0, &to), PNC_OK) << pnc_error();
    return value;
  };
  EXPECT_EQ(count(), 10);
  ASSERT_EQ(pnc_session_run(session, inputs, 2, nullptr, 0), PNC_OK);
  EXPECT_EQ(count(), 11);
  pnc_tensor state;
  ASSERT_EQ(pnc_session_state(session, 0, &state), PNC_OK);
  EXPECT_EQ(*static_cast<float*>(state.data), 11);
  float given = 3;
  pnc_tensor value = {&given, sizeof given, PNC_F32, 1, {1}};
  ASSERT_EQ(pnc_session_set_state(session, 0, &value), PNC_OK);
  EXPECT_EQ(count(), 3);
  value.shape[0] = 2;
  EXPECT_EQ(pnc_session_set_state(session, 0, &value), PNC_INVALID_ARGUMENT);
  EXPECT_TRUE(says("state 'count' is float32[1], was given float32[2]"));
  value.shape[0] = 1;
  value.bytes = 3;
  EXPECT_EQ(pnc_session_set_state(session, 0, &value), PNC_INVALID_ARGUMENT);
  EXPECT_EQ(pnc_session_copy_state(session, 0, &value), PNC_INVALID_ARGUMENT);
  value.bytes = 4;
  EXPECT_EQ(pnc_session_set_state(session, 1, &value), PNC_INVALID_ARGUMENT);
  EXPECT_EQ(pnc_session_state(session, -1, &state), PNC_INVALID_ARGUMENT);
  EXPECT_EQ(count(), 3);
  ASSERT_EQ(pnc_session_reset_state(session), PNC_OK);
  EXPECT_EQ(count(), 10);
}

TEST_F(CApi, RunsOnAThreadOfTheirOwn) {
  create();
  std::vector<float> y(4);
  int8_t z[2];
  const pnc_tensor outputs[] = {{y.data(), 16, PNC_F32, 2, {2, 2}}, {z, 2, PNC_I8, 1, {2}}};
  std::atomic<int> finished = 0;
  pnc_run* run = nullptr;
  const auto count = [](void* user) { ++*static_cast<std::atomic<int>*>(user); };
  ASSERT_EQ(pnc_session_submit(session, inputs, 2, outputs, 2, nullptr, count, &finished, &run), PNC_OK) << pnc_error();
  EXPECT_EQ(pnc_run_wait(run), PNC_OK);
  EXPECT_EQ(pnc_run_wait(run), PNC_OK);
  EXPECT_EQ(pnc_run_done(run), 1);
  EXPECT_EQ(pnc_run_wait_for(run, 0), 1);
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(y, right);
  pnc_run_cancel(run);
  pnc_run_close(run);

  pnc_cancel_token* token = nullptr;
  ASSERT_EQ(pnc_cancel_token_create(&token), PNC_OK);
  pnc_cancel_token_cancel(token);
  const pnc_run_options options = {token, 0};
  ASSERT_EQ(pnc_session_submit(session, inputs, 2, nullptr, 0, &options, count, &finished, &run), PNC_OK);
  EXPECT_EQ(pnc_run_wait(run), PNC_CANCELLED);
  EXPECT_EQ(finished, 1);
  pnc_run_close(run);
  pnc_cancel_token_close(token);
  inputs[0].bytes = 5;
  ASSERT_EQ(pnc_session_submit(session, inputs, 2, nullptr, 0, nullptr, nullptr, nullptr, &run), PNC_OK);
  EXPECT_EQ(pnc_run_wait(run), PNC_INVALID_ARGUMENT);
  EXPECT_TRUE(says("'x'"));
  pnc_run_close(run);
  inputs[0].rank = 33;
  EXPECT_EQ(pnc_session_submit(session, inputs, 2, nullptr, 0, nullptr, nullptr, nullptr, &run), PNC_INVALID_ARGUMENT);
  EXPECT_EQ(run, nullptr);
}

/// Kernels take addresses of whole elements; a slice of bytes may begin anywhere.
TEST_F(CApi, MemoryBeginsAtAMultipleOfItsElements) {
  create();
  alignas(8) std::byte room[2 * sizeof x] = {};
  const pnc_tensor aligned = inputs[0];
  float y[4];
  int8_t z[2];
  pnc_tensor outputs[] = {{y, sizeof y, PNC_F32, 2, {2, 2}}, {z, sizeof z, PNC_I8, 1, {2}}};
  for (size_t at = 0; at < 8; ++at) {
    std::memcpy(room + at, x, sizeof x);
    inputs[0].data = room + at;
    const pnc_status status = pnc_session_run(session, inputs, 2, outputs, 2);
    EXPECT_EQ(status, at % 4 ? PNC_INVALID_ARGUMENT : PNC_OK) << at;
    if (at % 4) EXPECT_TRUE(says("input 'x' begins at an address that is no multiple of 4, the bytes of one float32"));
  }
  inputs[0] = aligned;
  outputs[0].data = room + 2;
  EXPECT_EQ(pnc_session_run(session, inputs, 2, outputs, 2), PNC_INVALID_ARGUMENT);
  EXPECT_TRUE(says("output 'y' begins at an address that is no multiple of 4"));
  outputs[0].data = y;
  int8_t bytes[3] = {0, 3, 5};
  inputs[1].data = bytes + 1;
  EXPECT_EQ(pnc_session_run(session, inputs, 2, outputs, 2), PNC_OK) << pnc_error();
  EXPECT_EQ(std::vector<float>(y, y + 4), right);
  // States are copied.
  float three = 3;
  std::memcpy(room + 1, &three, sizeof three);
  const pnc_tensor state = {room + 1, sizeof three, PNC_F32, 1, {1}};
  EXPECT_EQ(pnc_session_set_state(session, 0, &state), PNC_OK) << pnc_error();
  EXPECT_EQ(pnc_session_copy_state(session, 0, &state), PNC_OK) << pnc_error();
}

TEST_F(CApi, ScopesEndCallsThatTakeNoOptions) {
  pnc_cancel_scope* scope = nullptr;
  pnc_session* other = nullptr;
  bool stop = true;
  ASSERT_EQ(pnc_cancel_scope_enter_poll([](void* context) { return *static_cast<bool*>(context); }, &stop, &scope),
            PNC_OK);
  const auto bytes = bytes_of(kCounter);
  create();  // done before the first question, or ended by it
  pnc_cancel_scope_leave(scope);
  pnc_cancel_token* token = nullptr;
  ASSERT_EQ(pnc_cancel_token_create(&token), PNC_OK);
  pnc_cancel_token_cancel(token);
  const pnc_run_options options = {token, 0};
  ASSERT_EQ(pnc_cancel_scope_enter(&options, &scope), PNC_OK);
  EXPECT_EQ(pnc_session_run(session, inputs, 2, nullptr, 0), PNC_CANCELLED);
  pnc_cancel_scope_leave(scope);
  pnc_cancel_scope_leave(nullptr);
  EXPECT_EQ(pnc_session_run(session, inputs, 2, nullptr, 0), PNC_OK);
  pnc_cancel_token_close(token);
  EXPECT_EQ(other, nullptr);
}

/// y = x * factor, of as many elements as x; refuses a factor of 0.
pnc_status scaled_shape(void*, pnc_op_call* call) {
  if (call->input_count != 1 || call->output_count != 1) return PNC_INVALID_ARGUMENT;
  call->outputs[0] = call->inputs[0];
  return PNC_OK;
}
pnc_status scaled(void* user, pnc_op_call* call) {
  float factor = 1;
  for (int32_t i = 0; i < call->attribute_count; ++i) {
    if (!std::strcmp(call->attributes[i].key, "factor")) factor = std::strtof(call->attributes[i].value, nullptr);
  }
  ++*static_cast<std::atomic<int>*>(user);
  if (factor == 0) {
    std::strcpy(call->message, "the factor is 0");
    return PNC_UNSUPPORTED;
  }
  const auto* x = static_cast<const float*>(call->inputs[0].data);
  auto* y = static_cast<float*>(call->outputs[0].data);
  for (size_t i = 0; i < call->outputs[0].bytes / sizeof(float); ++i) y[i] = x[i] * factor;
  return PNC_OK;
}

TEST_F(CApi, OperatorsOfTheApplication) {
  const auto program_with = [](const char* factor) {
    Graph graph;
    auto parsed = parse(R"(graph "scaled" {
  input %x : f32[2,2]
  %y : f32[2,2] = relu(%x)
  output "y" %y
})");
    EXPECT_TRUE(parsed.ok());
    graph = std::move(*parsed);
    graph.nodes[0]->op = "mylib.scale";
    graph.nodes[0]->attrs = {{"factor", std::strtod(factor, nullptr)}};
    auto bytes = write_program(graph, {}, {});
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    return to_vector(*bytes);
  };
  std::atomic<int> calls = 0;
  pnc_custom_op* op = nullptr;
  ASSERT_EQ(pnc_custom_op_create("mylib.scale", 1, scaled_shape, scaled, &calls, &op), PNC_OK);
  for (const char* factor : {"3", "0"}) {
    const auto bytes = program_with(factor);
    pnc_program* with = nullptr;
    pnc_session* ran = nullptr;
    ASSERT_EQ(pnc_program_from_bytes(bytes.data(), bytes.size(), PNC_VERIFY_FULL, &with), PNC_OK) << pnc_error();
    EXPECT_NE(pnc_session_create(with, nullptr, &ran), PNC_OK);
    pnc_session_options options = {};
    options.size = sizeof options;
    options.ops = &op;
    options.op_count = 1;
    ASSERT_EQ(pnc_session_create_with(with, &options, &ran), PNC_OK) << pnc_error();
    const pnc_status status = pnc_session_run(ran, inputs, 1, nullptr, 0);
    if (!std::strcmp(factor, "0")) {
      EXPECT_EQ(status, PNC_UNSUPPORTED);
      EXPECT_TRUE(says("the factor is 0"));
    } else {
      ASSERT_EQ(status, PNC_OK) << pnc_error();
      pnc_tensor y;
      ASSERT_EQ(pnc_session_output(ran, 0, &y), PNC_OK);
      EXPECT_EQ(std::vector<float>(static_cast<float*>(y.data), static_cast<float*>(y.data) + 4),
                (std::vector<float>{3, 6, 9, 12}));
    }
    pnc_session_close(ran);
    pnc_program_close(with);
  }
  EXPECT_EQ(calls, 2);
  pnc_custom_op_close(op);
  EXPECT_EQ(pnc_custom_op_create(nullptr, 1, scaled_shape, scaled, &calls, &op), PNC_INVALID_ARGUMENT);
  EXPECT_EQ(pnc_custom_op_create("a.b", 1, nullptr, scaled, &calls, &op), PNC_INVALID_ARGUMENT);
  EXPECT_EQ(op, nullptr);
  pnc_custom_op_close(nullptr);
}

TEST_F(CApi, FailuresSayWhereAndWhich) {
  const void* data = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(pnc_program_bytes(program, &data, &bytes), PNC_OK);
  std::vector<std::byte> damaged(static_cast<const std::byte*>(data), static_cast<const std::byte*>(data) + bytes);
  damaged[bytes / 2] ^= std::byte{1};
  pnc_program* other = nullptr;
  ASSERT_EQ(pnc_program_from_bytes(damaged.data(), bytes, PNC_VERIFY_FULL, &other), PNC_CORRUPT_FILE);
  EXPECT_GE(pnc_error_offset(), 0);
  EXPECT_EQ(pnc_error_rule()[0], 'F');
  List<pnc_node_problem> none, some;
  ASSERT_EQ(pnc_error_nodes(&none.rows, &none.count), PNC_OK);
  EXPECT_EQ(none.count, 0);

  FileParts parts(sample_bytes());
  for (auto& op : parts.model->operators) {
    if (parts.model->strings[op->name] == "add") op->name = static_cast<uint32_t>(parts.model->strings.size());
  }
  parts.model->strings.push_back("gelu_of_tomorrow");
  const auto file = parts.write();
  ASSERT_EQ(pnc_program_from_bytes(file.data(), file.size(), PNC_VERIFY_FULL, &other), PNC_UNSUPPORTED);
  EXPECT_EQ(other, nullptr);
  ASSERT_EQ(pnc_error_nodes(&some.rows, &some.count), PNC_OK);
  ASSERT_EQ(some.count, 3);
  EXPECT_STREQ(some.rows[0].op, "gelu_of_tomorrow");
  EXPECT_STREQ(some.rows[0].source, "net.py:41");
  EXPECT_STREQ(some.rows[1].node, "second");

  EXPECT_STREQ(pnc_status_name(PNC_DEVICE_LOST), "DeviceLost");
  EXPECT_STREQ(pnc_status_name(number<pnc_status>(99)), "Unknown");
  pnc_dtype dtype = PNC_F32;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto each = static_cast<pnc_dtype>(i);
    ASSERT_EQ(pnc_dtype_from_name(pnc_dtype_name(each), &dtype), PNC_OK);
    EXPECT_EQ(dtype, each);
    EXPECT_EQ(pnc_dtype_bits(each), dtype_bits(static_cast<DType>(i)));
  }
  EXPECT_STREQ(pnc_dtype_name(number<pnc_dtype>(kDTypeCount)), "");
  EXPECT_EQ(pnc_dtype_bits(number<pnc_dtype>(-1)), 0);
  EXPECT_EQ(pnc_dtype_from_name("float17", &dtype), PNC_INVALID_ARGUMENT);
  EXPECT_TRUE(says("there is no dtype 'float17'"));
  pnc_log_level level = PNC_LOG_OFF;
  ASSERT_EQ(pnc_log_level_from_name("debug", &level), PNC_OK);
  EXPECT_EQ(level, PNC_LOG_DEBUG);
  EXPECT_STREQ(pnc_log_level_name(PNC_LOG_WARN), "warn");
  EXPECT_EQ(pnc_log_level_from_name("loud", &level), PNC_INVALID_ARGUMENT);
}

// Each function with each pointer null: an error, never a crash, and what it makes is null.
TEST_F(CApi, NullIsAnError) {
  create();
  pnc_program* made = program;
  pnc_session* session_made = session;
  pnc_spec spec;
  pnc_type type;
  pnc_tensor tensor = inputs[0];
  const char* text = "";
  int32_t count = 7;
  size_t bytes = 0;
  const void* data = nullptr;
  const pnc_fact* facts = nullptr;
  const pnc_symbol* symbols = nullptr;
  const pnc_payload* payloads = nullptr;
  const pnc_node* nodes = nullptr;
  const pnc_constant* constants = nullptr;
  const pnc_placement* rows = nullptr;
  const pnc_profile_event* events = nullptr;
  pnc_run* run = nullptr;
  const pnc_streamed_input* streams = nullptr;
  const pnc_streamed_output* streamed = nullptr;
  pnc_custom_op* op = nullptr;
  int64_t rest[2];
  pnc_plan_info plan;
  const pnc_fact half = {"key", nullptr};
  const pnc_status statuses[] = {
      pnc_error_nodes(nullptr, &count),
      pnc_devices(nullptr, &count),
      pnc_dtype_from_name(nullptr, nullptr),
      pnc_log_level_from_name("info", nullptr),
      pnc_program_open_with(nullptr, PNC_VERIFY_FULL, &made),
      pnc_program_open_with("a", PNC_VERIFY_FULL, nullptr),
      pnc_program_open_with("a", number<pnc_verify>(3), &made),
      pnc_program_open_descriptor(0, 0, 0, PNC_VERIFY_FULL, nullptr),
      pnc_program_from_bytes(nullptr, 0, PNC_VERIFY_FULL, &made),
      pnc_program_from_bytes("a", 1, PNC_VERIFY_FULL, nullptr),
      pnc_program_state(nullptr, 0, &spec),
      pnc_program_state(program, 0, nullptr),
      pnc_program_state(program, 1, &spec),
      pnc_program_input_type(nullptr, 0, &type),
      pnc_program_input_type(program, 0, nullptr),
      pnc_program_output_type(program, -1, &type),
      pnc_program_state_type(program, 1, &type),
      pnc_program_symbols(nullptr, &symbols, &count),
      pnc_program_symbols(program, nullptr, &count),
      pnc_program_symbols(program, &symbols, nullptr),
      pnc_program_metadata(nullptr, &facts, &count),
      pnc_program_payloads(nullptr, &payloads, &count),
      pnc_program_bytes(nullptr, &data, &bytes),
      pnc_program_bytes(program, nullptr, &bytes),
      pnc_program_nodes(nullptr, &nodes, &count),
      pnc_program_constants(nullptr, &constants, &count),
      pnc_program_text(nullptr, 0, &text),
      pnc_program_text(program, 0, nullptr),
      pnc_program_with_metadata(nullptr, nullptr, 0, &made),
      pnc_program_with_metadata(program, nullptr, 1, &made),
      pnc_program_with_metadata(program, &half, 1, &made),
      pnc_program_with_metadata(program, nullptr, 0, nullptr),
      pnc_program_without_payloads(nullptr, &made),
      pnc_program_without_payloads(program, nullptr),
      pnc_program_save(nullptr, "a"),
      pnc_program_save(program, nullptr),
      pnc_program_diff(nullptr, program, 0, &text),
      pnc_program_diff(program, program, 0, nullptr),
      pnc_session_create_with(nullptr, nullptr, &session_made),
      pnc_session_create_with(program, nullptr, nullptr),
      pnc_session_output_spec(nullptr, 0, &spec),
      pnc_session_output_spec(session, 0, nullptr),
      pnc_session_output_spec(session, 2, &spec),
      pnc_session_output_type(nullptr, 0, &type),
      pnc_session_output_type(session, 0, nullptr),
      pnc_session_output_type(session, 9, &type),
      pnc_session_submit(nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr, &run),
      pnc_session_submit(session, nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr, nullptr),
      pnc_session_submit(session, nullptr, 2, nullptr, 0, nullptr, nullptr, nullptr, &run),
      pnc_session_profile(nullptr, nullptr, 0, nullptr, 0, nullptr, &events, &count),
      pnc_session_profile(session, nullptr, 0, nullptr, 0, nullptr, nullptr, &count),
      pnc_session_precision(nullptr, &text),
      pnc_session_precision(session, nullptr),
      pnc_session_placement(nullptr, &rows, &count),
      pnc_session_plan(nullptr, &plan),
      pnc_session_plan(session, nullptr),
      pnc_session_limit_loops(nullptr, 0),
      pnc_session_limit_loops(session, -1),
      pnc_session_state(nullptr, 0, &tensor),
      pnc_session_state(session, 0, nullptr),
      pnc_session_copy_state(nullptr, 0, &tensor),
      pnc_session_copy_state(session, 0, nullptr),
      pnc_session_set_state(nullptr, 0, &tensor),
      pnc_session_set_state(session, 0, nullptr),
      pnc_session_reset_state(nullptr),
      pnc_session_save_state(nullptr, &data, &bytes),
      pnc_session_save_state(session, nullptr, &bytes),
      pnc_session_save_state(session, &data, nullptr),
      pnc_session_restore_state(nullptr, "a", 1),
      pnc_session_restore_state(session, nullptr, 1),
      pnc_session_fork(nullptr, &session_made),
      pnc_session_fork(session, nullptr),
      pnc_session_finish(nullptr, nullptr, 0, nullptr, rest, 2),
      pnc_session_finish(session, nullptr, 0, nullptr, nullptr, 2),
      pnc_session_finish(session, nullptr, 0, nullptr, rest, -1),
      pnc_session_run(nullptr, inputs, 2, nullptr, 0),
      pnc_session_run(session, nullptr, 2, nullptr, 0),
      pnc_session_run(session, inputs, -2, nullptr, 0),
      pnc_session_run(session, inputs, 2, nullptr, 2),
      pnc_session_run(session, inputs, 2, inputs, -1),
      pnc_session_output(nullptr, 0, &tensor),
      pnc_session_output(session, 0, nullptr),
      pnc_program_streamed_inputs(nullptr, &streams, &count),
      pnc_program_streamed_inputs(program, nullptr, &count),
      pnc_program_streamed_outputs(nullptr, &streamed, &count),
      pnc_program_streamed_outputs(program, &streamed, nullptr),
      pnc_cancel_token_create(nullptr),
      pnc_custom_op_create("a.b", 1, scaled_shape, nullptr, nullptr, &op),
      pnc_custom_op_create("a.b", 1, scaled_shape, scaled, nullptr, nullptr),
      pnc_run_wait(nullptr),
      pnc_cancel_scope_enter(nullptr, nullptr),
      pnc_cancel_scope_enter_poll(nullptr, nullptr, nullptr)};
  for (size_t i = 0; i < std::size(statuses); ++i) EXPECT_EQ(statuses[i], PNC_INVALID_ARGUMENT) << i;
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(session_made, nullptr);
  EXPECT_EQ(pnc_program_state_count(nullptr), 0);
  EXPECT_EQ(pnc_session_output_count(nullptr), 0);
  EXPECT_EQ(pnc_run_done(nullptr), 1);
  EXPECT_EQ(pnc_run_wait_for(nullptr, 5), 1);
  pnc_run_cancel(nullptr);
  pnc_run_close(nullptr);
  pnc_free(nullptr);
  EXPECT_EQ(pnc_session_limit_loops(session, 1000), PNC_OK);
}

}  // namespace
}  // namespace pinnace::testing
