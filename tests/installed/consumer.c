/* What a C application does with the installed library: as consumer.cc, and what it is told when it does it wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pinnace/pinnace.h>

static int fail(void) {
  fprintf(stderr, "%s\n", pnc_error());
  return 1;
}

static void count_message(void* user, pnc_log_level level, const char* text) {
  if (level < PNC_LOG_OFF && strlen(text) > 0) ++*(int*)user;
}

int main(int argc, char** argv) {
  pnc_program* program = NULL;
  pnc_session* session = NULL;
  if (argc != 2 || strlen(pnc_version()) == 0) return 2;
  if (pnc_program_open("/nowhere.pnc", &program) != PNC_FILE || program || !strstr(pnc_error(), "/nowhere.pnc"))
    return 3;
  if (pnc_program_open(NULL, &program) != PNC_INVALID_ARGUMENT) return 4;
  if (pnc_program_open(argv[1], &program) != PNC_OK) return fail();

  pnc_options options = {"nothing", NULL, 2, 0};
  if (pnc_session_create(program, &options, &session) == PNC_OK || session) return 5;
  int messages = 0;
  if (pnc_set_log_sink(count_message, PNC_LOG_INFO, &messages) != PNC_OK) return fail();
  if (pnc_set_log_level(PNC_LOG_DEBUG) != PNC_OK) return fail();
  if (pnc_session_create(program, NULL, &session) != PNC_OK) return fail();
  if (pnc_set_log_sink(NULL, PNC_LOG_INFO, NULL) != PNC_OK || messages == 0) return 14;

  pnc_spec spec;
  pnc_tensor output;
  if (pnc_program_input_count(program) != 1) return 6;
  if (pnc_program_input(program, 1, &spec) != PNC_INVALID_ARGUMENT) return 7;
  if (pnc_program_input(program, 0, &spec) != PNC_OK) return fail();
  if (pnc_session_output(session, 0, &output) != PNC_INVALID_ARGUMENT) return 8;
  if (pnc_session_output(session, 99, &output) != PNC_INVALID_ARGUMENT) return 8;
  if (pnc_session_output(session, -1, &output) != PNC_INVALID_ARGUMENT) return 8;

  pnc_tensor input = {NULL, 0, spec.dtype, spec.rank, {0}};
  size_t count = 1;
  for (int32_t d = 0; d < spec.rank; ++d) {
    input.shape[d] = spec.shape[d] < 0 ? 2 : spec.shape[d];
    count *= (size_t)input.shape[d];
  }
  float* data = malloc(count * sizeof(float));
  if (!data) return 9;
  for (size_t i = 0; i < count; ++i) data[i] = (float)i;
  input.data = data;
  input.bytes = count * sizeof(float);
  if (pnc_session_run(session, NULL, 0, NULL, 0) != PNC_INVALID_ARGUMENT) return 10;
  input.bytes -= 1;
  if (pnc_session_run(session, &input, 1, NULL, 0) != PNC_INVALID_ARGUMENT) return 11;
  input.bytes += 1;

  /* A program may be closed while a session lives. Names are its own. */
  char name[256];
  if (pnc_program_output_count(program) != 1 || pnc_program_output(program, 0, &spec) != PNC_OK) return fail();
  snprintf(name, sizeof name, "%s", spec.name);
  pnc_program_close(program);
  pnc_program_close(NULL);
  pnc_cancel_token* token = NULL;
  if (pnc_cancel_token_create(&token) != PNC_OK) return fail();
  pnc_run_options options_of_run = {token, 0};
  if (pnc_session_run_with(session, &input, 1, NULL, 0, &options_of_run) != PNC_OK) return fail();
  pnc_cancel_token_cancel(token);
  if (pnc_cancel_token_cancelled(token) != 1) return 12;
  if (pnc_session_run_with(session, &input, 1, NULL, 0, &options_of_run) != PNC_CANCELLED) return 13;
  pnc_cancel_token_close(token);
  if (pnc_session_run(session, &input, 1, NULL, 0) != PNC_OK) return fail();
  if (pnc_session_reset_state(session) != PNC_OK) return fail();
  if (pnc_session_output(session, 0, &output) != PNC_OK) return fail();
  printf("%s", name);
  size_t elements = 1;
  for (int32_t d = 0; d < output.rank; ++d) elements *= (size_t)output.shape[d];
  for (size_t i = 0; i < elements; ++i) printf(" %.9g", ((const float*)output.data)[i]);
  printf("\n");
  pnc_session_close(session);
  pnc_session_close(NULL);
  free(data);
  return 0;
}
