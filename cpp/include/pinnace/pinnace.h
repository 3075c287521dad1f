/* pinnace for applications. In C: the functions pnc_*, declared here, stable. In C++: <pinnace/program.h> and
 * <pinnace/session.h>, which this header includes. The C functions are everything that C++ can do on a device;
 * tests/python/repository/c_calls.toml says which function stands for which call, and why a call has none.
 *
 * C: every function that can fail returns a pnc_status; pnc_error() then has the sentence, for the calling thread.
 * A pointer that is NULL where nothing is said of NULL is PNC_INVALID_ARGUMENT. What a function makes is NULL (a list
 * too, whose count is 0) where it fails.
 *
 * Ownership: objects are freed by their pnc_*_close; closing NULL does nothing. Lists and texts that a function makes
 * are freed by pnc_free, with all that they point to. Arguments are borrowed until return, unless something else is
 * said.
 *
 * Threads: programs may be used by any number of threads at once, a session by one at a time: another caller of what
 * runs, reads or writes state gets PNC_INVALID_ARGUMENT. Nothing may be closed while a function has it. */
#ifndef PINNACE_PINNACE_H
#define PINNACE_PINNACE_H

#ifdef __cplusplus
#include <pinnace/cancel.h>
#include <pinnace/descriptor.h>
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

/* An array in memory of the caller: dense, row-major, at a multiple of its elements' bytes (PNC_INVALID_ARGUMENT from a
 * run otherwise). As an output, data NULL asks the session to own the bytes. */
typedef struct pnc_tensor {
  void* data;
  size_t bytes; /* available from data on */
  pnc_dtype dtype;
  int32_t rank;
  int64_t shape[PNC_MAX_RANK];
} pnc_tensor;

/* What a program says of an input, output or state. A size of -1 is fixed by each run. `name` lives as long as the
 * program or session that was asked. */
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
typedef struct pnc_run pnc_run;
typedef struct pnc_cancel_token pnc_cancel_token;
typedef struct pnc_cancel_scope pnc_cancel_scope;
typedef struct pnc_custom_op pnc_custom_op;

/* All of pinnace::Options that is there on a device. All zero, but for `size`, are the defaults. */
typedef struct pnc_session_options {
  size_t size;        /* sizeof(pnc_session_options): later versions have more members, which are then their default */
  const char* target; /* as in pnc_options */
  const char* precision;   /* as in pnc_options */
  int32_t threads;         /* as in pnc_options */
  int32_t no_fallback;     /* as in pnc_options */
  int32_t plan_cache;      /* how many sets of input shapes keep their plan and memory; 0: 8 */
  int32_t require_payload; /* not 0: PNC_UNSUPPORTED rather than pack weights that the file does not hold packed */
  const char* const* keep; /* names of inner values that become outputs, after the program's */
  const pnc_custom_op* const* ops; /* to be closed only after every session that was made with them, and its runs */
  int32_t keep_count;
  int32_t op_count;
  /* The members of pinnace::Service. NULL and 0: left to the back end. */
  const char* preference;    /* "low_power", "fast_single_answer" or "sustained_speed" */
  const char* priority;      /* "low", "medium" or "high" */
  const char* cache_folder;  /* where a driver keeps what it compiled */
  const char* device;        /* by its name */
  int64_t deadline_ns;       /* of a compilation, and of each run on a device */
  int64_t loop_timeout_ns;   /* of each loop whose turns are not counted */
  const int32_t* processors; /* that runs stay on */
  int32_t processor_count;
  int32_t shape_invariant; /* not 0: an element's bits do not depend on what else a run computes; the CPU's alone */
} pnc_session_options;

/* When the hashes of weights and payloads are checked. The numbers of pinnace::Verify. */
typedef enum pnc_verify {
  PNC_VERIFY_FULL = 0,     /* all of them when the program is opened */
  PNC_VERIFY_ON_USE = 1,   /* each before its first use: a session that meets a damaged one is not created */
  PNC_VERIFY_STRUCTURE = 2 /* not at all */
} pnc_verify;

/* One dimension: a size, a symbol, or unknown until the model runs, then perhaps with an upper bound. */
typedef struct pnc_dim {
  int64_t size;   /* -1: not known */
  int64_t max;    /* of an unknown size; -1: there is no bound */
  int32_t symbol; /* index in pnc_program_symbols; -1: none */
} pnc_dim;

/* All that is known of a type. real = (q - zero_point) * scale, see pinnace::Quantization; scale_count 0: it is not
 * quantised. The lists live as long as the program, those of a session's output until its next run. */
typedef struct pnc_type {
  pnc_dtype dtype;
  int32_t rank;
  pnc_dim dims[PNC_MAX_RANK];
  const float* scales;
  const int32_t* zero_points; /* as many as scales */
  int64_t scale_count;
  int64_t block;
  int32_t axis;
} pnc_type;

/* Rows of lists. Texts are never NULL, and empty where there is nothing to say. */

/* A named dimension that each run fixes: min <= size <= max, size % multiple_of == 0. max INT64_MAX: no bound. */
typedef struct pnc_symbol {
  const char* name;
  int64_t min;
  int64_t max;
  int64_t multiple_of;
} pnc_symbol;

/* An input that runs take in chunks; see pinnace::StreamedInput. Sizes are numbers of its elements along `axis`. */
typedef struct pnc_streamed_input {
  const char* name;
  int64_t axis;
  int64_t latency;  /* by how many elements the outputs are delayed */
  int64_t multiple; /* every chunk's size is a multiple of it */
  int64_t tail;     /* how many zeros pnc_session_finish runs on; 0: it runs nothing */
} pnc_streamed_input;

/* An output of such a program: T * up / down + more elements along `axis` for T elements of the input, delayed by
 * latency * up / down elements, which are zeros at the front. */
typedef struct pnc_streamed_output {
  const char* name;
  int64_t axis;
  int64_t up;
  int64_t down;
  int64_t more;
} pnc_streamed_output;

/* A fact that was recorded at conversion, or an attribute of a node. */
typedef struct pnc_fact {
  const char* key;
  const char* value;
} pnc_fact;

typedef struct pnc_payload {
  const char* target; /* "cpu:avx2" */
  const char* key;
  int64_t bytes;
} pnc_payload;

/* One node of the graph; see pinnace::NodeInfo. Lists are texts with a line for each entry. */
typedef struct pnc_node {
  const char* name;
  const char* op;
  const char* path;
  const char* source;
  const char* module;
  const char* inputs; /* names of values; an empty line: left out */
  const char* outputs;
  const char* output_types; /* "float32[2,?]" */
} pnc_node;

typedef struct pnc_constant {
  const char* name;
  const char* type; /* "float32[64,3,3,3]" */
  int64_t bytes;
} pnc_constant;

/* Where one node runs, and why not elsewhere; see pinnace::Placement. */
typedef struct pnc_placement {
  const char* node;
  const char* op;
  const char* source;
  const char* backend;
  const char* kernel;
  const char* why; /* a line for each preferred target that was passed over */
  const char* notice;
  const char* module;
  const char* path;
  int64_t bytes_copied;
} pnc_placement;

/* One timed node; times are since the run's start. */
typedef struct pnc_profile_event {
  const char* node;
  const char* op;
  const char* backend;
  const char* kernel;
  const char* module;
  int64_t start_ns;
  int64_t duration_ns;
} pnc_profile_event;

typedef struct pnc_device {
  const char* target;
  const char* description; /* processor and instruction set, or the reason why it is not available */
  int64_t available;       /* 1 or 0 */
} pnc_device;

/* One node that is concerned by a failure; see pinnace::NodeProblem. */
typedef struct pnc_node_problem {
  const char* node;
  const char* op;
  const char* source;
  const char* rule;
  const char* value;
  const char* module;
} pnc_node_problem;

/* Sizes of the plan for the shapes of the last run that succeeded; see pinnace::PlanInfo. */
typedef struct pnc_plan_info {
  int64_t peak_bytes;
  int64_t constant_bytes;
  int64_t segments;
  int64_t nodes_run;
  int64_t nodes_computed_ahead;
} pnc_plan_info;

/* When a run is to end before it is done. All zero: when it is done. */
typedef struct pnc_run_options {
  const pnc_cancel_token* cancel; /* may be NULL; to be closed only when the run has returned */
  int64_t timeout_ns;             /* from the call on; 0: as long as it takes */
} pnc_run_options;

/* Called on a run's thread after it succeeded, while the session still refuses everyone else: there pnc_session_output
 * gives that run's for sure. */
typedef void (*pnc_finished)(void* user);

/* One call of an application's operator. A left-out input has no data and rank 0. */
typedef struct pnc_op_call {
  const pnc_tensor* inputs;
  pnc_tensor* outputs;
  const pnc_fact* attributes; /* numbers and lists as the graph's text form writes them */
  int32_t input_count;
  int32_t output_count;
  int32_t attribute_count;
  char message[256]; /* for the sentence of a failure */
} pnc_op_call;

/* Gives PNC_OK, or a code after a sentence was written to call->message. May be called from any thread, on several at
 * once; must be pure. See pnc_custom_op_create. */
typedef pnc_status (*pnc_op_function)(void* user, pnc_op_call* call);

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
/* Of the same failure: the byte at which a file is damaged (PNC_CORRUPT_FILE), else -1. */
PNC_API int64_t pnc_error_offset(void);
/* Of the same failure: the identifier of the broken rule ("F-12"), may be empty; valid as the sentence is. */
PNC_API const char* pnc_error_rule(void);
/* Of the same failure: every node concerned, may be none. To be freed by pnc_free. */
PNC_API pnc_status pnc_error_nodes(const pnc_node_problem** nodes, int32_t* count);
/* "InvalidArgument"; of what is no status "Unknown". */
PNC_API const char* pnc_status_name(pnc_status status);
/* Frees a list or a text that a function of pinnace made; NULL: nothing happens. */
PNC_API void pnc_free(const void* made);

/* "float32", as numpy or ml_dtypes has it; of what is no dtype "". */
PNC_API const char* pnc_dtype_name(pnc_dtype dtype);
/* The inverse. PNC_INVALID_ARGUMENT: the name is unknown. */
PNC_API pnc_status pnc_dtype_from_name(const char* name, pnc_dtype* dtype);
/* Bits of one element: 2, 4, 6, or a multiple of 8; 0 of what is no dtype. */
PNC_API int32_t pnc_dtype_bits(pnc_dtype dtype);
/* The targets that this build knows on this machine. To be freed by pnc_free. */
PNC_API pnc_status pnc_devices(const pnc_device** devices, int32_t* count);

/* Sends messages of level `least` and above to `sink`, with `user`, instead of the one before; NULL: they are dropped.
 * On return no call of the one before is under way. See pinnace::set_log_sink. PNC_INVALID_ARGUMENT: called by a sink,
 * or `least` is no level. */
PNC_API pnc_status pnc_set_log_sink(pnc_log_sink sink, pnc_log_level least, void* user);
/* Changes the least level that the present sink gets. See pinnace::set_log_level. */
PNC_API pnc_status pnc_set_log_level(pnc_log_level least);
/* "trace", "debug", "info", "warn", "error", "off". */
PNC_API const char* pnc_log_level_name(pnc_log_level level);
/* The inverse. PNC_INVALID_ARGUMENT: there is none of that name; the sentence lists them. */
PNC_API pnc_status pnc_log_level_from_name(const char* name, pnc_log_level* level);

/* Maps and verifies a .pnc file, its weights when they are first used. *program is NULL on failure. */
PNC_API pnc_status pnc_program_open(const char* path, pnc_program** program);
/* The same, with the choice of what is verified when. */
PNC_API pnc_status pnc_program_open_with(const char* path, pnc_verify verify, pnc_program** program);
/* The same from a descriptor of a regular file that is open for reading: `bytes` bytes from `offset` on, -1: to the
 * end. The descriptor is duplicated, its position is not used: it may be closed at once. A program that begins at a
 * multiple of 64 bytes is mapped, any other is copied. PNC_INVALID_ARGUMENT: the range is not inside the file. */
PNC_API pnc_status pnc_program_open_descriptor(int32_t descriptor, int64_t offset, int64_t bytes, pnc_verify verify,
                                               pnc_program** program);
/* The same from bytes in memory, which are copied. */
PNC_API pnc_status pnc_program_from_bytes(const void* data, size_t bytes, pnc_verify verify, pnc_program** program);
/* Sessions keep what they need of a program: it may be closed before them. */
PNC_API void pnc_program_close(pnc_program* program);
PNC_API int32_t pnc_program_input_count(const pnc_program* program);
PNC_API int32_t pnc_program_output_count(const pnc_program* program);
/* PNC_INVALID_ARGUMENT: index outside the count. */
PNC_API pnc_status pnc_program_input(const pnc_program* program, int32_t index, pnc_spec* spec);
PNC_API pnc_status pnc_program_output(const pnc_program* program, int32_t index, pnc_spec* spec);
/* Values that a session keeps from one run to the next. */
PNC_API int32_t pnc_program_state_count(const pnc_program* program);
PNC_API pnc_status pnc_program_state(const pnc_program* program, int32_t index, pnc_spec* spec);
/* The same with symbols, bounds and quantisation. */
PNC_API pnc_status pnc_program_input_type(const pnc_program* program, int32_t index, pnc_type* type);
PNC_API pnc_status pnc_program_output_type(const pnc_program* program, int32_t index, pnc_type* type);
PNC_API pnc_status pnc_program_state_type(const pnc_program* program, int32_t index, pnc_type* type);
/* Lists, each to be freed by pnc_free. Metadata are sorted by key; nodes are in the order in which they run. */
PNC_API pnc_status pnc_program_symbols(const pnc_program* program, const pnc_symbol** symbols, int32_t* count);
PNC_API pnc_status pnc_program_metadata(const pnc_program* program, const pnc_fact** facts, int32_t* count);
PNC_API pnc_status pnc_program_payloads(const pnc_program* program, const pnc_payload** payloads, int32_t* count);
/* Inputs that runs take in chunks, and the outputs of such a program, in order; none: a run takes the whole. Lists,
 * each to be freed by pnc_free. */
PNC_API pnc_status pnc_program_streamed_inputs(const pnc_program* program, const pnc_streamed_input** inputs,
                                               int32_t* count);
PNC_API pnc_status pnc_program_streamed_outputs(const pnc_program* program, const pnc_streamed_output** outputs,
                                                int32_t* count);
/* The file's bytes, which live as long as the program. */
PNC_API pnc_status pnc_program_bytes(const pnc_program* program, const void** data, size_t* bytes);

/* The seven functions from here to pnc_program_diff look into programs and write them. A library that was built for
 * some models alone (-DPINNACE_ONLY) has none of them. */

/* Lists, each to be freed by pnc_free. */
PNC_API pnc_status pnc_program_nodes(const pnc_program* program, const pnc_node** nodes, int32_t* count);
PNC_API pnc_status pnc_program_constants(const pnc_program* program, const pnc_constant** constants, int32_t* count);
/* The graph's text form, to be freed by pnc_free. Constants of more bytes than these are printed as a hash. */
PNC_API pnc_status pnc_program_text(const pnc_program* program, size_t max_constant_bytes, const char** text);
/* Another program with these metadata as well, or instead of those with the same keys. */
PNC_API pnc_status pnc_program_with_metadata(const pnc_program* program, const pnc_fact* facts, int32_t count,
                                             pnc_program** changed);
/* Another program without what back ends stored in this one. */
PNC_API pnc_status pnc_program_without_payloads(const pnc_program* program, pnc_program** changed);
/* Writes the file atomically: whatever fails, one that was there before stays whole. */
PNC_API pnc_status pnc_program_save(const pnc_program* program, const char* path);
/* A line for each difference, to be freed by pnc_free; empty: they are equal in everything but payloads, and metadata
 * where include_metadata is 0. */
PNC_API pnc_status pnc_program_diff(const pnc_program* a, const pnc_program* b, int32_t include_metadata,
                                    const char** lines);

/* options may be NULL: the defaults. *session is NULL on failure. */
PNC_API pnc_status pnc_session_create(const pnc_program* program, const pnc_options* options, pnc_session** session);
/* The same with all options. PNC_INVALID_ARGUMENT: also where `size` is less than the first version's. */
PNC_API pnc_status pnc_session_create_with(const pnc_program* program, const pnc_session_options* options,
                                           pnc_session** session);
/* A run that was submitted and is under way goes on. */
PNC_API void pnc_session_close(pnc_session* session);
/* The program's outputs, then those that pnc_session_options::keep added. */
PNC_API int32_t pnc_session_output_count(const pnc_session* session);
PNC_API pnc_status pnc_session_output_spec(const pnc_session* session, int32_t index, pnc_spec* spec);
/* The type of output `index` in the last run; the declared one while a run is under way, after one that failed, and
 * before the first. */
PNC_API pnc_status pnc_session_output_type(const pnc_session* session, int32_t index, pnc_type* type);
/* Runs once. inputs and outputs in the program's order; outputs NULL (count 0): all are owned by the session. One
 * thread at a time. See pinnace::Session::run. */
PNC_API pnc_status pnc_session_run(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                                   const pnc_tensor* outputs, int32_t output_count);
/* The same with options, which may be NULL. PNC_CANCELLED: they ended it, pnc_error() says which and in which node.
 * Outputs are then unspecified, state is unchanged, and the session can run again. See pinnace::RunOptions. */
PNC_API pnc_status pnc_session_run_with(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                                        const pnc_tensor* outputs, int32_t output_count,
                                        const pnc_run_options* options);
/* The same on a thread of its own. The lists of tensors are copied; the tensors' memory and the token are borrowed
 * until the run is done. `finished` may be NULL. PNC_OUT_OF_MEMORY: the system gives no more threads. */
PNC_API pnc_status pnc_session_submit(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                                      const pnc_tensor* outputs, int32_t output_count, const pnc_run_options* options,
                                      pnc_finished finished, void* user, pnc_run** run);
/* The same as pnc_session_run_with; `events`, to be freed by pnc_free, say what each node took, in order of start. */
PNC_API pnc_status pnc_session_profile(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                                       const pnc_tensor* outputs, int32_t output_count, const pnc_run_options* options,
                                       const pnc_profile_event** events, int32_t* count);
/* Output `index` of the last run: its type, and its bytes, which are valid until the next run. */
PNC_API pnc_status pnc_session_output(const pnc_session* session, int32_t index, pnc_tensor* tensor);
/* "fp32", "fp16" or "bf16": what runs on the CPU, and what "auto" became there. To be freed by pnc_free. */
PNC_API pnc_status pnc_session_precision(const pnc_session* session, const char** precision);
/* One row for each node, of the last run that succeeded or, before it, for the declared shapes. To be freed by
 * pnc_free. From any thread at any time. */
PNC_API pnc_status pnc_session_placement(const pnc_session* session, const pnc_placement** rows, int32_t* count);
/* From any thread at any time. */
PNC_API pnc_status pnc_session_plan(const pnc_session* session, pnc_plan_info* plan);
/* A loop without a count of iterations that goes on for longer ends its run with PNC_CANCELLED; 0: none does. */
PNC_API pnc_status pnc_session_limit_loops(pnc_session* session, int64_t limit_ns);
/* State `index` after the last run that succeeded; its bytes are the session's, and valid until its next run. See
 * pinnace::Session::state. */
PNC_API pnc_status pnc_session_state(const pnc_session* session, int32_t index, pnc_tensor* tensor);
/* The same, copied to to->data, which has exactly the state's dtype and shape. */
PNC_API pnc_status pnc_session_copy_state(const pnc_session* session, int32_t index, const pnc_tensor* to);
/* Dense bytes of exactly the state's dtype and shape are copied in. */
PNC_API pnc_status pnc_session_set_state(pnc_session* session, int32_t index, const pnc_tensor* value);
/* Puts every state back to its initial value; PNC_INVALID_ARGUMENT while the session runs on another thread. */
PNC_API pnc_status pnc_session_reset_state(pnc_session* session);
/* All states as bytes, to be freed by pnc_free, from which a session of the same program goes on. See
 * pinnace::Session::save_state. */
PNC_API pnc_status pnc_session_save_state(const pnc_session* session, const void** saved, size_t* bytes);
/* Goes on from there. PNC_CORRUPT_FILE: the bytes are damaged. PNC_INVALID_ARGUMENT: they are of another program.
 * PNC_UNSUPPORTED: a newer version of pinnace saved them. */
PNC_API pnc_status pnc_session_restore_state(pnc_session* session, const void* saved, size_t bytes);
/* Ends a stream: rest[i] elements along time are left of output i, which begins with them; where
 * pnc_streamed_input::tail is 0 nothing runs, and there is no output. `inputs` as for a run, those that are streams
 * with data NULL, or NULL with input_count 0 where all are; rest_count is pnc_session_output_count. See
 * pinnace::Session::finish. */
PNC_API pnc_status pnc_session_finish(pnc_session* session, const pnc_tensor* inputs, int32_t input_count,
                                      const pnc_run_options* options, int64_t* rest, int32_t rest_count);
/* A second session with the same states and shared weights, to be closed on its own. */
PNC_API pnc_status pnc_session_fork(const pnc_session* session, pnc_session** forked);

/* A run that was submitted. Any number of threads may wait, ask and cancel at once. See pinnace::Run. */

/* Waits and gives the run's status, the same to every caller. */
PNC_API pnc_status pnc_run_wait(pnc_run* run);
/* Waits for at most this long: 1 if the run is done, else 0. NULL: 1. */
PNC_API int32_t pnc_run_wait_for(const pnc_run* run, int64_t time_ns);
/* 1 if the run is done, else 0. NULL: 1. */
PNC_API int32_t pnc_run_done(const pnc_run* run);
/* Asks the run to stop, as a token does. NULL: nothing happens. */
PNC_API void pnc_run_cancel(pnc_run* run);
/* Waits for the run, but not on its own thread. */
PNC_API void pnc_run_close(pnc_run* run);

/* A request that runs should stop, for any number of them; *token is NULL on failure. See pinnace::CancelToken. */
PNC_API pnc_status pnc_cancel_token_create(pnc_cancel_token** token);
PNC_API void pnc_cancel_token_close(pnc_cancel_token* token);
/* Ends the runs that have the token, and those that get it later: it stays cancelled. From any thread, and from a
 * signal handler. NULL: nothing happens. */
PNC_API void pnc_cancel_token_cancel(pnc_cancel_token* token);
/* 1 once it was cancelled, else 0. */
PNC_API int32_t pnc_cancel_token_cancelled(const pnc_cancel_token* token);

/* From now on every call that this thread makes ends with PNC_CANCELLED once `options` say so, also those that take
 * none (pnc_program_open, pnc_session_create). Scopes nest. See pinnace::CancelScope. */
PNC_API pnc_status pnc_cancel_scope_enter(const pnc_run_options* options, pnc_cancel_scope** scope);
/* The same, once poll(context) gives true: it is asked about every 50 ms, on this thread, perhaps under locks of the
 * library: it must not wait for a thread that waits for this one. */
PNC_API pnc_status pnc_cancel_scope_enter_poll(bool (*poll)(void*), void* context, pnc_cancel_scope** scope);
/* Leaves a scope and frees it: on the thread that entered, in reverse order. */
PNC_API void pnc_cancel_scope_leave(pnc_cancel_scope* scope);

/* An operator of the application, for pnc_session_options::ops; `name` is what the source model calls it.
 *
 * shape      gives the outputs' types from the inputs': dtype, rank and shape, where -1 is a size that is not known
 *            yet. No tensor has data. What becomes an output of the program must be as the program declares it: else
 *            runs give PNC_INVALID_ARGUMENT.
 * reference  computes the outputs: all tensors are dense, and the outputs' data are to be filled.
 * user       goes to both.
 *
 * See pinnace::CustomOp. */
PNC_API pnc_status pnc_custom_op_create(const char* name, int32_t outputs, pnc_op_function shape,
                                        pnc_op_function reference, void* user, pnc_custom_op** op);
PNC_API void pnc_custom_op_close(pnc_custom_op* op);

#ifdef __cplusplus
}
#endif
#endif /* PINNACE_PINNACE_H */
