/* Every function of the C API, on a program with a dynamic size and a state: argv[1]; argv[2] is a file to write. Prints
 * the outputs as consumer.c does. What each function gives in detail: tests/cpp/runtime/c_api_test.cc. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pinnace/pinnace.h>

/* Ends the program with the line of what did not hold. */
#define CHECK(holds)                                                                   \
  do {                                                                                 \
    if (!(holds)) {                                                                    \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #holds, pnc_error()); \
      exit(1);                                                                         \
    }                                                                                  \
  } while (0)
#define OK(call) CHECK((call) == PNC_OK)

static void count_message(void* user, pnc_log_level level, const char* text) {
  if (level < PNC_LOG_OFF && strlen(text) > 0) ++*(int*)user;
}
static bool never(void* context) {
  return *(bool*)context;
}
static void finish(void* user) {
  *(bool*)user = true;
}
static pnc_status no_shape(void* user, pnc_op_call* call) {
  (void)user, (void)call;
  return PNC_UNSUPPORTED;
}

static void describe(const pnc_program* program) {
  pnc_spec spec;
  pnc_type type;
  int32_t count;
  CHECK(pnc_program_input_count(program) == 1 && pnc_program_output_count(program) == 1);
  CHECK(pnc_program_state_count(program) == 1);
  OK(pnc_program_input(program, 0, &spec));
  OK(pnc_program_input_type(program, 0, &type));
  CHECK(type.rank == spec.rank && type.dims[0].size == spec.shape[0] && type.dims[0].symbol == 0);
  OK(pnc_program_output(program, 0, &spec));
  OK(pnc_program_output_type(program, 0, &type));
  OK(pnc_program_state(program, 0, &spec));
  OK(pnc_program_state_type(program, 0, &type));
  const pnc_symbol* symbols;
  OK(pnc_program_symbols(program, &symbols, &count));
  CHECK(count == 1 && symbols[0].min <= 2);
  pnc_free(symbols);
  const pnc_fact* facts;
  OK(pnc_program_metadata(program, &facts, &count));
  CHECK(count > 0 && strlen(facts[0].key) > 0);
  pnc_free(facts);
  const pnc_payload* payloads;
  OK(pnc_program_payloads(program, &payloads, &count));
  pnc_free(payloads);
  const pnc_streamed_input* streams;
  const pnc_streamed_output* streamed;
  OK(pnc_program_streamed_inputs(program, &streams, &count));
  CHECK(count == 0 && !streams);
  OK(pnc_program_streamed_outputs(program, &streamed, &count));
  CHECK(count == 0 && !streamed);
  const pnc_node* nodes;
  OK(pnc_program_nodes(program, &nodes, &count));
  CHECK(count > 0 && strlen(nodes[0].op) > 0);
  pnc_free(nodes);
  const pnc_constant* constants;
  OK(pnc_program_constants(program, &constants, &count));
  CHECK(count > 0 && constants[0].bytes > 0);
  pnc_free(constants);
  const char* text;
  OK(pnc_program_text(program, 64, &text));
  CHECK(strstr(text, "graph"));
  pnc_free(text);
}

/* The same program by every other way, changed and back again. */
static void write_and_read(const pnc_program* program, const char* path) {
  pnc_program *changed, *bare, *read;
  const void* data;
  size_t bytes;
  const char* lines;
  const pnc_fact fact = {"author", "every_call.c"};
  OK(pnc_program_with_metadata(program, &fact, 1, &changed));
  OK(pnc_program_diff(program, changed, 1, &lines));
  CHECK(strstr(lines, "author"));
  pnc_free(lines);
  const pnc_fact lie = {"stream.nowhere", "axis 0, latency 0, multiple 1, tail 0"};
  const pnc_streamed_input* streams;
  int32_t count;
  OK(pnc_program_with_metadata(program, &lie, 1, &read));
  CHECK(pnc_program_streamed_inputs(read, &streams, &count) == PNC_CORRUPT_FILE && !streams);
  pnc_program_close(read);
  OK(pnc_program_without_payloads(changed, &bare));
  OK(pnc_program_save(bare, path));
  OK(pnc_program_open_with(path, PNC_VERIFY_FULL, &read));
  OK(pnc_program_bytes(read, &data, &bytes));
  pnc_program_close(changed);
  OK(pnc_program_from_bytes(data, bytes, PNC_VERIFY_FULL, &changed));
  pnc_program_close(changed);
  CHECK(pnc_program_with_metadata(read, &fact, -3, &changed) == PNC_INVALID_ARGUMENT && !changed);
  lines = path;
  CHECK(pnc_program_text(NULL, 64, &lines) == PNC_INVALID_ARGUMENT && !lines);
  lines = path;
  CHECK(pnc_session_precision(NULL, &lines) == PNC_INVALID_ARGUMENT && !lines);
  CHECK(pnc_program_bytes(NULL, &data, &bytes) == PNC_INVALID_ARGUMENT && !data && !bytes);
  const int file = open(path, O_RDONLY);
  CHECK(file >= 0);
  CHECK(pnc_program_open_descriptor(file, 0, -7, PNC_VERIFY_ON_USE, &changed) == PNC_INVALID_ARGUMENT && !changed);
  OK(pnc_program_open_descriptor(file, 0, -1, PNC_VERIFY_ON_USE, &changed));
  close(file);
  OK(pnc_program_diff(read, changed, 1, &lines));
  CHECK(!*lines);
  pnc_free(lines);
  pnc_program_close(changed);
  pnc_program_close(read);
  pnc_program_close(bare);
}

static void names(void) {
  pnc_dtype dtype;
  pnc_log_level level;
  const pnc_device* devices;
  const pnc_node_problem* nodes;
  int32_t count;
  pnc_program* none;
  CHECK(strlen(pnc_version()) > 0);
  CHECK(pnc_program_open("/nowhere.pnc", &none) == PNC_FILE && !none && strstr(pnc_error(), "/nowhere.pnc"));
  CHECK(pnc_error_offset() == -1 && !*pnc_error_rule());
  OK(pnc_error_nodes(&nodes, &count));
  CHECK(count == 0 && !nodes);
  CHECK(!strcmp(pnc_status_name(PNC_FILE), "File"));
  CHECK(pnc_dtype_bits(PNC_F16) == 16 && !strcmp(pnc_dtype_name(PNC_F16), "float16"));
  OK(pnc_dtype_from_name("int8", &dtype));
  CHECK(dtype == PNC_I8);
  CHECK(!strcmp(pnc_log_level_name(PNC_LOG_INFO), "info"));
  OK(pnc_log_level_from_name("warn", &level));
  CHECK(level == PNC_LOG_WARN);
  OK(pnc_devices(&devices, &count));
  CHECK(count > 0);
  pnc_free(devices);
}

int main(int argc, char** argv) {
  pnc_program* program;
  pnc_session *session, *second;
  CHECK(argc == 3);
  names();
  int messages = 0;
  OK(pnc_set_log_sink(count_message, PNC_LOG_INFO, &messages));
  OK(pnc_set_log_level(PNC_LOG_DEBUG));
  OK(pnc_program_open(argv[1], &program));
  describe(program);
  write_and_read(program, argv[2]);

  pnc_custom_op* op;
  OK(pnc_custom_op_create("every.call", 1, no_shape, no_shape, NULL, &op));
  pnc_session_options options = {0};
  options.size = sizeof options;
  options.target = "cpu";
  options.ops = (const pnc_custom_op* const*)&op;
  options.op_count = 1;
  OK(pnc_session_create_with(program, &options, &session));
  OK(pnc_session_create(program, NULL, &second));
  pnc_session_close(second);
  OK(pnc_set_log_sink(NULL, PNC_LOG_INFO, NULL));
  CHECK(messages > 0);

  pnc_spec spec;
  OK(pnc_program_input(program, 0, &spec));
  pnc_tensor input = {NULL, sizeof(float), spec.dtype, spec.rank, {0}};
  for (int32_t d = 0; d < spec.rank; ++d) {
    input.shape[d] = spec.shape[d] < 0 ? 2 : spec.shape[d];
    input.bytes *= (size_t)input.shape[d];
  }
  float* x = malloc(input.bytes);
  CHECK(x);
  for (size_t i = 0; i < input.bytes / sizeof(float); ++i) x[i] = (float)i;
  input.data = x;

  pnc_run* run;
  bool finished = false;
  pnc_cancel_token* token;
  OK(pnc_cancel_token_create(&token));
  pnc_run_options limits = {token, 60000000000};
  OK(pnc_session_limit_loops(session, 1000000000));
  OK(pnc_session_submit(session, &input, 1, NULL, 0, &limits, finish, &finished, &run));
  while (!pnc_run_done(run)) pnc_run_wait_for(run, 1000000);
  OK(pnc_run_wait(run));
  CHECK(finished);
  pnc_run_cancel(run);
  pnc_run_close(run);
  const pnc_profile_event* events;
  int32_t count;
  OK(pnc_session_profile(session, &input, 1, NULL, 0, &limits, &events, &count));
  CHECK(count > 0 && events[0].duration_ns >= 0);
  pnc_free(events);

  /* The state: read, copied, set, put back. */
  pnc_tensor state;
  OK(pnc_session_state(session, 0, &state));
  void* copy = malloc(state.bytes);
  CHECK(copy);
  memcpy(copy, state.data, state.bytes);
  state.data = copy;
  OK(pnc_session_copy_state(session, 0, &state));
  OK(pnc_session_set_state(session, 0, &state));
  const void* saved;
  size_t saved_bytes;
  pnc_session* forked;
  OK(pnc_session_save_state(session, &saved, &saved_bytes));
  OK(pnc_session_fork(session, &forked));
  OK(pnc_session_restore_state(forked, saved, saved_bytes));
  CHECK(pnc_session_restore_state(forked, saved, saved_bytes - 1) == PNC_CORRUPT_FILE);
  pnc_session_close(forked);
  pnc_free(saved);
  int64_t rest[16];
  CHECK(pnc_session_finish(session, &input, 1, NULL, rest, pnc_session_output_count(session)) == PNC_INVALID_ARGUMENT);
  OK(pnc_session_reset_state(session));
  free(copy);

  /* Calls that end early. */
  pnc_cancel_scope* scope;
  bool stop = false;
  OK(pnc_cancel_scope_enter_poll(never, &stop, &scope));
  OK(pnc_session_run(session, &input, 1, NULL, 0));
  pnc_cancel_scope_leave(scope);
  OK(pnc_cancel_scope_enter(&limits, &scope));
  pnc_cancel_token_cancel(token);
  CHECK(pnc_cancel_token_cancelled(token) == 1);
  CHECK(pnc_session_run(session, &input, 1, NULL, 0) == PNC_CANCELLED);
  pnc_cancel_scope_leave(scope);
  CHECK(pnc_session_run_with(session, &input, 1, NULL, 0, &limits) == PNC_CANCELLED);
  pnc_cancel_token_close(token);

  OK(pnc_session_reset_state(session));
  OK(pnc_session_run(session, &input, 1, NULL, 0));
  const pnc_placement* rows;
  OK(pnc_session_placement(session, &rows, &count));
  CHECK(count > 0 && strlen(rows[0].backend) > 0);
  pnc_free(rows);
  pnc_plan_info plan;
  OK(pnc_session_plan(session, &plan));
  CHECK(plan.nodes_run > 0);
  const char* precision;
  OK(pnc_session_precision(session, &precision));
  CHECK(!strcmp(precision, "fp32"));
  pnc_free(precision);
  pnc_type type;
  CHECK(pnc_session_output_count(session) == 1);
  OK(pnc_session_output_spec(session, 0, &spec));
  OK(pnc_session_output_type(session, 0, &type));
  pnc_tensor output;
  OK(pnc_session_output(session, 0, &output));
  CHECK(type.dims[0].size == output.shape[0]);
  printf("%s", spec.name);
  for (size_t i = 0; i < output.bytes / sizeof(float); ++i) printf(" %.9g", ((const float*)output.data)[i]);
  printf("\n");
  pnc_session_close(session);
  pnc_program_close(program);
  pnc_custom_op_close(op);
  free(x);
  return 0;
}
