/* pinnace for applications. In C: the functions pnc_*, declared here, stable. In C++: <pinnace/program.h> and
 * <pinnace/session.h>, which this header includes.
 *
 * C: every function that can fail returns a pnc_status; pnc_error() then has the sentence, for the calling thread.
 * Objects are freed by their pnc_*_close; closing NULL does nothing. */
#ifndef PINNACE_PINNACE_H
#define PINNACE_PINNACE_H

#ifdef __cplusplus
#include <pinnace/cancel.h>
#include <pinnace/log.h>
#include <pinnace/program.h>
#include <pinnace/session.h>
#include <pinnace/status.h>
#include <pinnace/tensor.h>
#else
#include <stdbool.h>
#endif
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PNC_API __attribute__((visibility("default")))
#else
#define PNC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of pinnace::Code. */
typedef enum pnc_status {
  PNC_OK = 0,
  PNC_INVALID_ARGUMENT = 1,
  PNC_UNSUPPORTED = 2,
  PNC_CORRUPT_FILE = 3,
  PNC_OUT_OF_MEMORY = 4,
  PNC_DEVICE_LOST = 5,
  PNC_CANCELLED = 6,
  PNC_CONVERSION = 7,
  PNC_FILE = 8,
  PNC_VERIFICATION = 9
} pnc_status;

/* The numbers of pinnace::DType. */
typedef enum pnc_dtype {
  PNC_F32 = 0,
  PNC_F16 = 1,
  PNC_BF16 = 2,
  PNC_F64 = 3,
  PNC_I8 = 4,
  PNC_U8 = 5,
  PNC_I16 = 6,
  PNC_U16 = 7,
  PNC_I32 = 8,
  PNC_U32 = 9,
  PNC_I64 = 10,
  PNC_U64 = 11,
  PNC_BOOL = 12,
  PNC_I4 = 13,
  PNC_U4 = 14,
  PNC_F8E4M3FN = 15,
  PNC_F8E4M3FNUZ = 16,
  PNC_F8E5M2 = 17,
  PNC_F8E5M2FNUZ = 18,
  PNC_F8E8M0 = 19,
  PNC_F6E2M3 = 20,
  PNC_F6E3M2 = 21,
  PNC_F4E2M1 = 22,
  PNC_I2 = 23,
  PNC_U2 = 24
} pnc_dtype;

#define PNC_MAX_RANK 32

/* An array in memory of the caller: dense, row-major. As an output, data NULL asks the session to own the bytes. */
typedef struct pnc_tensor {
  void* data;
  size_t bytes; /* available from data on */
  pnc_dtype dtype;
  int32_t rank;
  int64_t shape[PNC_MAX_RANK];
} pnc_tensor;

/* What a program says of an input or output. A size of -1 is fixed by each run. `name` lives as long as the program. */
typedef struct pnc_spec {
  const char* name;
  pnc_dtype dtype;
  int32_t rank;
  int64_t shape[PNC_MAX_RANK];
} pnc_spec;

typedef struct pnc_options {
  const char* target;    /* "auto", "cpu", "cpu:avx2", …; NULL is "auto" */
  const char* precision; /* "fp32", "fp16", "bf16", "auto"; NULL is "fp32" */
  int32_t threads;       /* 0: as many as the process may use processors */
  int32_t no_fallback;   /* not 0: PNC_UNSUPPORTED rather than run a node elsewhere than asked */
} pnc_options;

typedef struct pnc_program pnc_program;
typedef struct pnc_session pnc_session;
typedef struct pnc_cancel_token pnc_cancel_token;

/* When a run is to end before it is done. All zero: when it is done. */
typedef struct pnc_run_options {
  const pnc_cancel_token* cancel; /* may be NULL; to be closed only when the run has returned */
  int64_t timeout_ns;             /* from the call on; 0: as long as it takes */
} pnc_run_options;

/* The numbers of pinnace::LogLevel. */
typedef enum pnc_log_level {
  PNC_LOG_TRACE = 0, /* each run */
  PNC_LOG_DEBUG = 1, /* each node and each decision */
  PNC_LOG_INFO = 2,  /* each phase: loaded, planned, packed, measured, prepared */
  PNC_LOG_WARN = 3,  /* something is slower than it could be, or other than was asked for */
  PNC_LOG_ERROR = 4, /* something failed in a place from which no call can return it */
  PNC_LOG_OFF = 5    /* of no message; as a limit: none is wanted */
} pnc_log_level;

/* Takes one message: one line of UTF-8, valid until return. It may be called on any thread and on several at once, and
 * must neither call pinnace nor wait for a thread that does. See pinnace::LogSink. */
typedef void (*pnc_log_sink)(void* user, pnc_log_level level, const char* text);

/* "0.1.0" */
PNC_API const char* pnc_version(void);
/* The sentence of the last failure of the calling thread; valid until its next failure. Never NULL. */
PNC_API const char* pnc_error(void);

/* Sends messages of level `least` and above to `sink`, with `user`, instead of the one before; NULL: they are dropped.
 * On return no call of the one before is under way. See pinnace::set_log_sink. PNC_INVALID_ARGUMENT: called by a sink,
 * or `least` is no level. */
PNC_API pnc_status pnc_set_log_sink(pnc_log_sink sink, pnc_log_level least, void* user);
/* Changes the least level that the present sink gets. See pinnace::set_log_level. */
PNC_API pnc_status pnc_set_log_level(pnc_log_level least);

/* Maps and verifies a .pnc file. *program is NULL on failure. */
PNC_API pnc_status pnc_program_open(const char* path, pnc_program** program);
/* Sessions keep what they need of a program: it may be closed before them. */
PNC_API void pnc_program_close(pnc_program* program);
PNC_API int32_t pnc_program_input_count(const pnc_program* program);
PNC_API int32_t pnc_program_output_count(const pnc_program* program);
/* PNC_INVALID_ARGUMENT: index outside the count. */
PNC_API pnc_status pnc_program_input(const pnc_program* program, int32_t index, pnc_spec* spec);
PNC_API pnc_status pnc_program_output(const pnc_program* program, int32_t index, pnc_spec* spec);

/* options may be NULL: the defaults. *session is NULL on failure. */
PNC_API pnc_status pnc_session_create(const pnc_program* program, const pnc_options* options, pnc_session** session);
PNC_API void pnc_session_close(pnc_session* session);
/* Runs once. inputs and outputs in the program's order; outputs NULL (count 0): all are owned by the session. One
 * thread at a time. See pinnace::Session::run. */
PNC_API pnc_status pnc_session_run(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                                   const pnc_tensor* outputs, int32_t output_count);
/* The same with options, which may be NULL. PNC_CANCELLED: they ended it, pnc_error() says which and in which node.
 * Outputs are then unspecified, state is unchanged, and the session can run again. See pinnace::RunOptions. */
PNC_API pnc_status pnc_session_run_with(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                                        const pnc_tensor* outputs, int32_t output_count,
                                        const pnc_run_options* options);
/* Output `index` of the last run: its type, and its bytes, which are valid until the next run. */
PNC_API pnc_status pnc_session_output(const pnc_session* session, int32_t index, pnc_tensor* tensor);
/* Puts every state back to its initial value; PNC_INVALID_ARGUMENT while the session runs on another thread. */
PNC_API pnc_status pnc_session_reset_state(pnc_session* session);

/* A request that runs should stop, for any number of them; *token is NULL on failure. See pinnace::CancelToken. */
PNC_API pnc_status pnc_cancel_token_create(pnc_cancel_token** token);
PNC_API void pnc_cancel_token_close(pnc_cancel_token* token);
/* Ends the runs that have the token, and those that get it later: it stays cancelled. From any thread, and from a
 * signal handler. NULL: nothing happens. */
PNC_API void pnc_cancel_token_cancel(pnc_cancel_token* token);
/* 1 once it was cancelled, else 0. */
PNC_API int32_t pnc_cancel_token_cancelled(const pnc_cancel_token* token);

#ifdef __cplusplus
}
#endif
#endif /* PINNACE_PINNACE_H */
