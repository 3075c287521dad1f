/* The native functions of org.pinnace.Native, over the C API and the report of a device alone. A failure is thrown
 * before the function returns: the sentence belongs to the thread, and a virtual thread of the JVM may be on another
 * one at its next call.
 *
 * Texts leave as Cells: UTF-8, each closed by a null character, numbers in decimal. JNI's own strings have another
 * encoding, which names from files need not fit. */
#include <jni.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pinnace/pinnace.h>

#include "border.h"
#include "report/report.h"

static jfieldID descriptor_number; /* of java.io.FileDescriptor; null: it has another name here */

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void* reserved) {
  (void)reserved;
  JNIEnv* env = NULL;
  if ((*vm)->GetEnv(vm, (void**)&env, JNI_VERSION_1_6) != JNI_OK) return JNI_ERR;
  if (!load_border(env) || !load_operators(env) || !load_log(env)) return JNI_ERR;
  jclass descriptors = (*env)->FindClass(env, "java/io/FileDescriptor");
  if (!descriptors) return JNI_ERR;
  descriptor_number = (*env)->GetFieldID(env, descriptors, "fd", "I");
  if (!descriptor_number) {
    (*env)->ExceptionClear(env);
    descriptor_number = (*env)->GetFieldID(env, descriptors, "descriptor", "I"); /* Android */
  }
  if (!descriptor_number) (*env)->ExceptionClear(env);
  return JNI_VERSION_1_6;
}

/* ---- arguments -------------------------------------------------------------------------------------------------- */

/* Tensors from their packed form, in memory for free(); null with an exception. Sizes were checked by Tensor. */
static pnc_tensor* tensors_of(JNIEnv* env, jlongArray packed, jint count) {
  const jsize length = (*env)->GetArrayLength(env, packed);
  pnc_tensor* tensors = calloc((size_t)count + 1, sizeof *tensors);
  jlong* numbers = tensors ? malloc(((size_t)length + 1) * sizeof *numbers) : NULL;
  if (!numbers) {
    free(tensors);
    throw_new(env, "java/lang/OutOfMemoryError", "the tensors of a run");
    return NULL;
  }
  (*env)->GetLongArrayRegion(env, packed, 0, length, numbers);
  const jlong* at = numbers;
  for (jint i = 0; i < count; ++i) {
    tensors[i].data = pointer(at[0]);
    tensors[i].bytes = (size_t)at[1];
    tensors[i].dtype = (pnc_dtype)at[2];
    tensors[i].rank = (int32_t)at[3];
    for (int32_t d = 0; d < tensors[i].rank; ++d) tensors[i].shape[d] = at[4 + d];
    at += 4 + tensors[i].rank;
  }
  free(numbers);
  return tensors;
}

/* ---- programs --------------------------------------------------------------------------------------------------- */

NATIVE(jbyteArray, version)(JNIEnv* env, jclass self) {
  (void)self;
  cells list = {0};
  add(&list, pnc_version());
  return give(env, &list);
}

NATIVE(jbyteArray, devices)(JNIEnv* env, jclass self) {
  (void)self;
  const pnc_device* devices = NULL;
  int32_t count = 0;
  cells list = {0};
  if (!ok(env, pnc_devices(&devices, &count))) return NULL;
  for (int32_t i = 0; i < count; ++i) {
    add(&list, devices[i].target);
    add(&list, devices[i].description);
    add_number(&list, devices[i].available);
  }
  pnc_free(devices);
  return give(env, &list);
}

NATIVE(void, free)(JNIEnv* env, jclass self, jint kind, jlong object) {
  (void)self;
  if (kind == 0) pnc_program_close(pointer(object));
  if (kind == 1) pnc_session_close(pointer(object));
  if (kind == 2) pnc_cancel_token_close(pointer(object));
  if (kind == 3) free_operator(env, object);
}

NATIVE(jlong, openPath)(JNIEnv* env, jclass self, jbyteArray path, jint verify) {
  (void)self;
  pnc_program* program = NULL;
  char* text = text_of(env, path);
  if (text) ok(env, pnc_program_open_with(text, (pnc_verify)verify, &program));
  free(text);
  return number_of(program);
}

NATIVE(jlong, openDescriptor)(JNIEnv* env, jclass self, jobject descriptor, jlong offset, jlong bytes, jint verify) {
  (void)self;
  pnc_program* program = NULL;
  if (!descriptor_number) {
    throw_new(env, "java/lang/UnsupportedOperationException", "the number of a FileDescriptor is not to be had here");
    return 0;
  }
  const jint file = (*env)->GetIntField(env, descriptor, descriptor_number);
  ok(env, pnc_program_open_descriptor(file, offset, bytes, (pnc_verify)verify, &program));
  return number_of(program);
}

NATIVE(jlong, openBytes)(JNIEnv* env, jclass self, jobject buffer, jlong offset, jlong bytes, jint verify) {
  (void)self;
  pnc_program* program = NULL;
  const char* data = (*env)->GetDirectBufferAddress(env, buffer);
  ok(env, pnc_program_from_bytes(data ? data + offset : "", (size_t)bytes, (pnc_verify)verify, &program));
  return number_of(program);
}

typedef pnc_status (*spec_function)(const pnc_program*, int32_t, pnc_spec*);
typedef pnc_status (*type_function)(const pnc_program*, int32_t, pnc_type*);

static int add_specs(JNIEnv* env, cells* list, const pnc_program* program, int32_t count, spec_function spec_of,
                     type_function type_of) {
  add_number(list, count);
  for (int32_t i = 0; i < count; ++i) {
    pnc_spec spec;
    pnc_type type;
    if (!ok(env, spec_of(program, i, &spec)) || !ok(env, type_of(program, i, &type))) return 0;
    add(list, spec.name);
    add_number(list, type.dtype);
    add_number(list, type.rank);
    for (int32_t d = 0; d < type.rank; ++d) {
      add_number(list, type.dims[d].size);
      add_number(list, type.dims[d].max);
      add_number(list, type.dims[d].symbol);
    }
    add_number(list, type.scale_count);
    for (int64_t s = 0; s < type.scale_count; ++s) {
      char text[32];
      snprintf(text, sizeof text, "%.9g", (double)type.scales[s]);
      for (char* c = text; *c; ++c) {
        if (*c == ',') *c = '.'; /* of a locale */
      }
      add(list, text);
      add_number(list, type.zero_points[s]);
    }
    add_number(list, type.axis);
    add_number(list, type.block);
  }
  return 1;
}

NATIVE(jbyteArray, specs)(JNIEnv* env, jclass self, jlong object) {
  (void)self;
  const pnc_program* program = pointer(object);
  const pnc_symbol* symbols = NULL;
  int32_t count = 0;
  cells list = {0};
  if (!ok(env, pnc_program_symbols(program, &symbols, &count))) return NULL;
  add_number(&list, count);
  for (int32_t i = 0; i < count; ++i) {
    add(&list, symbols[i].name);
    add_number(&list, symbols[i].min);
    add_number(&list, symbols[i].max);
    add_number(&list, symbols[i].multiple_of);
  }
  pnc_free(symbols);
  if (!add_specs(env, &list, program, pnc_program_input_count(program), pnc_program_input, pnc_program_input_type) ||
      !add_specs(env, &list, program, pnc_program_output_count(program), pnc_program_output, pnc_program_output_type) ||
      !add_specs(env, &list, program, pnc_program_state_count(program), pnc_program_state, pnc_program_state_type)) {
    free(list.bytes);
    return NULL;
  }
  return give(env, &list);
}

NATIVE(jbyteArray, metadata)(JNIEnv* env, jclass self, jlong program) {
  (void)self;
  const pnc_fact* facts = NULL;
  int32_t count = 0;
  cells list = {0};
  if (!ok(env, pnc_program_metadata(pointer(program), &facts, &count))) return NULL;
  for (int32_t i = 0; i < count; ++i) {
    add(&list, facts[i].key);
    add(&list, facts[i].value);
  }
  pnc_free(facts);
  return give(env, &list);
}

NATIVE(jbyteArray, streams)(JNIEnv* env, jclass self, jlong object) {
  (void)self;
  const pnc_streamed_input* inputs = NULL;
  const pnc_streamed_output* outputs = NULL;
  int32_t count = 0;
  cells list = {0};
  if (!ok(env, pnc_program_streamed_inputs(pointer(object), &inputs, &count))) return NULL;
  add_number(&list, count);
  for (int32_t i = 0; i < count; ++i) {
    add(&list, inputs[i].name);
    add_number(&list, inputs[i].axis);
    add_number(&list, inputs[i].latency);
    add_number(&list, inputs[i].multiple);
    add_number(&list, inputs[i].tail);
  }
  pnc_free(inputs);
  if (!ok(env, pnc_program_streamed_outputs(pointer(object), &outputs, &count))) {
    free(list.bytes);
    return NULL;
  }
  for (int32_t i = 0; i < count; ++i) {
    add(&list, outputs[i].name);
    add_number(&list, outputs[i].axis);
    add_number(&list, outputs[i].up);
    add_number(&list, outputs[i].down);
    add_number(&list, outputs[i].more);
  }
  pnc_free(outputs);
  return give(env, &list);
}

/* ---- sessions --------------------------------------------------------------------------------------------------- */

/* The texts of options, in Options.java's order. */
enum { TARGET, PRECISION, PREFERENCE, PRIORITY, CACHE_FOLDER, DEVICE, WORD_COUNT };

NATIVE(jlong, create)(JNIEnv* env, jclass self, jlong program, jobjectArray words, jintArray numbers, jlongArray times,
                      jintArray processors, jobjectArray keep, jlongArray operator_pointers) {
  (void)self;
  pnc_session* session = NULL;
  pnc_session_options options = {0};
  jint given[5] = {0};
  jlong given_times[2] = {0};
  (*env)->GetIntArrayRegion(env, numbers, 0, 5, given);
  (*env)->GetLongArrayRegion(env, times, 0, 2, given_times);
  const jsize keep_count = (*env)->GetArrayLength(env, keep), count = keep_count + WORD_COUNT;
  const jsize processor_count = (*env)->GetArrayLength(env, processors);
  char** texts = calloc((size_t)count, sizeof *texts);
  const jsize op_count = (*env)->GetArrayLength(env, operator_pointers);
  jint* chosen = calloc((size_t)processor_count + 1, sizeof *chosen);
  const pnc_custom_op** ops = calloc((size_t)op_count + 1, sizeof *ops);
  if (!texts || !chosen || !ops) {
    free(texts);
    free(chosen);
    free(ops);
    throw_new(env, "java/lang/OutOfMemoryError", "the options of a session");
    return 0;
  }
  (*env)->GetIntArrayRegion(env, processors, 0, processor_count, chosen);
  for (jsize i = 0; i < op_count; ++i) {
    jlong number = 0;
    (*env)->GetLongArrayRegion(env, operator_pointers, i, 1, &number);
    ops[i] = operator_of(number);
  }
  int complete = 1;
  for (jsize i = 0; complete && i < count; ++i) { /* those to keep first */
    const int kept = i < keep_count;
    jbyteArray text = (*env)->GetObjectArrayElement(env, kept ? keep : words, kept ? i : i - keep_count);
    complete = (texts[i] = text_of(env, text)) != NULL;
    (*env)->DeleteLocalRef(env, text);
  }
  if (complete) {
    char* const* word = texts + keep_count;
    options.size = sizeof options;
    options.target = word[TARGET];
    options.precision = word[PRECISION];
    options.threads = given[0];
    options.no_fallback = given[1];
    options.plan_cache = given[2];
    options.require_payload = given[3];
    options.shape_invariant = given[4];
    options.keep = (const char* const*)texts;
    options.keep_count = keep_count;
    options.ops = ops;
    options.op_count = op_count;
    options.preference = word[PREFERENCE];
    options.priority = word[PRIORITY];
    options.cache_folder = word[CACHE_FOLDER];
    options.device = word[DEVICE];
    options.deadline_ns = given_times[0];
    options.loop_timeout_ns = given_times[1];
    options.processors = (const int32_t*)chosen;
    options.processor_count = processor_count;
    ok(env, pnc_session_create_with(pointer(program), &options, &session));
  }
  for (jsize i = 0; i < count; ++i) free(texts[i]);
  free(texts);
  free(chosen);
  free(ops);
  return number_of(session);
}

NATIVE(jbyteArray, outputs)(JNIEnv* env, jclass self, jlong session) {
  (void)self;
  cells list = {0};
  const int32_t count = pnc_session_output_count(pointer(session));
  for (int32_t i = 0; i < count; ++i) {
    pnc_spec spec;
    if (!ok(env, pnc_session_output_spec(pointer(session), i, &spec))) {
      free(list.bytes);
      return NULL;
    }
    add(&list, spec.name);
  }
  return give(env, &list);
}

/* What run and profile are given. */
typedef struct run_arguments {
  pnc_tensor *inputs, *outputs;
  pnc_run_options options;
} run_arguments;

static int arguments_of(JNIEnv* env, jlongArray inputs, jint input_count, jlongArray outputs, jint output_count,
                        jlong token, jlong timeout_ns, run_arguments* run) {
  run->options.cancel = pointer(token);
  run->options.timeout_ns = timeout_ns;
  run->outputs = NULL;
  run->inputs = tensors_of(env, inputs, input_count);
  if (run->inputs) run->outputs = tensors_of(env, outputs, output_count);
  return run->outputs != NULL;
}
static void end(run_arguments* run) {
  free(run->inputs);
  free(run->outputs);
}

NATIVE(void, run)(JNIEnv* env, jclass self, jlong session, jobject owners, jlongArray inputs, jint input_count,
                  jlongArray outputs, jint output_count, jlong token, jlong timeout_ns) {
  (void)self, (void)owners;
  run_arguments run;
  if (arguments_of(env, inputs, input_count, outputs, output_count, token, timeout_ns, &run)) {
    ok(env, pnc_session_run_with(pointer(session), run.inputs, input_count, output_count ? run.outputs : NULL,
                                 output_count, &run.options));
  }
  end(&run);
}

NATIVE(jbyteArray, profile)(JNIEnv* env, jclass self, jlong session, jobject owners, jlongArray inputs,
                            jint input_count, jlongArray outputs, jint output_count, jlong token, jlong timeout_ns) {
  (void)self, (void)owners;
  run_arguments run;
  jbyteArray given = NULL;
  const pnc_profile_event* events = NULL;
  int32_t count = 0;
  if (arguments_of(env, inputs, input_count, outputs, output_count, token, timeout_ns, &run) &&
      ok(env, pnc_session_profile(pointer(session), run.inputs, input_count, output_count ? run.outputs : NULL,
                                  output_count, &run.options, &events, &count))) {
    cells list = {0};
    for (int32_t i = 0; i < count; ++i) {
      add_all(&list, (const char* const*)&events[i], 5);
      add_number(&list, events[i].start_ns);
      add_number(&list, events[i].duration_ns);
    }
    pnc_free(events);
    given = give(env, &list);
  }
  end(&run);
  return given;
}

NATIVE(jlongArray, outputType)(JNIEnv* env, jclass self, jlong session, jint index) {
  (void)self;
  pnc_tensor tensor;
  jlong numbers[1 + PNC_MAX_RANK];
  if (!ok(env, pnc_session_output(pointer(session), index, &tensor))) return NULL;
  numbers[0] = tensor.dtype;
  for (int32_t d = 0; d < tensor.rank; ++d) numbers[1 + d] = tensor.shape[d];
  jlongArray array = (*env)->NewLongArray(env, 1 + tensor.rank);
  if (array) (*env)->SetLongArrayRegion(env, array, 0, 1 + tensor.rank, numbers);
  return array;
}

NATIVE(void, copyOutput)(JNIEnv* env, jclass self, jlong session, jint index, jobject to) {
  (void)self;
  pnc_tensor tensor;
  if (!ok(env, pnc_session_output(pointer(session), index, &tensor)) || !tensor.bytes) return;
  void* data = (*env)->GetDirectBufferAddress(env, to);
  if (data && (*env)->GetDirectBufferCapacity(env, to) >= (jlong)tensor.bytes) memcpy(data, tensor.data, tensor.bytes);
}

NATIVE(jbyteArray, placement)(JNIEnv* env, jclass self, jlong session) {
  (void)self;
  const pnc_placement* rows = NULL;
  int32_t count = 0;
  cells list = {0};
  if (!ok(env, pnc_session_placement(pointer(session), &rows, &count))) return NULL;
  for (int32_t i = 0; i < count; ++i) {
    add_all(&list, (const char* const*)&rows[i], 9);
    add_number(&list, rows[i].bytes_copied);
  }
  pnc_free(rows);
  return give(env, &list);
}

NATIVE(jlongArray, plan)(JNIEnv* env, jclass self, jlong session) {
  (void)self;
  pnc_plan_info plan;
  if (!ok(env, pnc_session_plan(pointer(session), &plan))) return NULL;
  const jlong numbers[5] = {plan.peak_bytes, plan.constant_bytes, plan.segments, plan.nodes_run,
                            plan.nodes_computed_ahead};
  jlongArray array = (*env)->NewLongArray(env, 5);
  if (array) (*env)->SetLongArrayRegion(env, array, 0, 5, numbers);
  return array;
}

NATIVE(jbyteArray, precision)(JNIEnv* env, jclass self, jlong session) {
  (void)self;
  const char* text = NULL;
  cells list = {0};
  if (!ok(env, pnc_session_precision(pointer(session), &text))) return NULL;
  add(&list, text);
  pnc_free(text);
  return give(env, &list);
}

NATIVE(void, limitLoops)(JNIEnv* env, jclass self, jlong session, jlong limit_ns) {
  (void)self;
  ok(env, pnc_session_limit_loops(pointer(session), limit_ns));
}

NATIVE(void, copyState)(JNIEnv* env, jclass self, jlong session, jint index, jobject owner, jlongArray to) {
  (void)self, (void)owner;
  pnc_tensor* tensor = tensors_of(env, to, 1);
  if (tensor) ok(env, pnc_session_copy_state(pointer(session), index, tensor));
  free(tensor);
}

NATIVE(void, setState)(JNIEnv* env, jclass self, jlong session, jint index, jobject owner, jlongArray value) {
  (void)self, (void)owner;
  pnc_tensor* tensor = tensors_of(env, value, 1);
  if (tensor) ok(env, pnc_session_set_state(pointer(session), index, tensor));
  free(tensor);
}

NATIVE(void, resetState)(JNIEnv* env, jclass self, jlong session) {
  (void)self;
  ok(env, pnc_session_reset_state(pointer(session)));
}

NATIVE(jbyteArray, saveState)(JNIEnv* env, jclass self, jlong session) {
  (void)self;
  const void* saved = NULL;
  size_t bytes = 0;
  jbyteArray array = NULL;
  if (!ok(env, pnc_session_save_state(pointer(session), &saved, &bytes))) return NULL;
  if (bytes > INT32_MAX) {
    throw_new(env, "java/lang/OutOfMemoryError", "states of more bytes than an array can have");
  } else if ((array = (*env)->NewByteArray(env, (jsize)bytes))) {
    (*env)->SetByteArrayRegion(env, array, 0, (jsize)bytes, saved);
  }
  pnc_free(saved);
  return array;
}

NATIVE(void, restoreState)(JNIEnv* env, jclass self, jlong session, jbyteArray saved) {
  (void)self;
  const jsize bytes = (*env)->GetArrayLength(env, saved);
  char* copy = text_of(env, saved);
  if (copy) ok(env, pnc_session_restore_state(pointer(session), copy, (size_t)bytes));
  free(copy);
}

NATIVE(jlong, fork)(JNIEnv* env, jclass self, jlong session) {
  (void)self;
  pnc_session* forked = NULL;
  ok(env, pnc_session_fork(pointer(session), &forked));
  return number_of(forked);
}

NATIVE(jlongArray, finish)(JNIEnv* env, jclass self, jlong session, jobject owners, jlongArray inputs, jint input_count,
                           jlong token, jlong timeout_ns) {
  (void)self, (void)owners;
  const pnc_run_options options = {pointer(token), timeout_ns};
  const int32_t count = pnc_session_output_count(pointer(session));
  jlongArray array = NULL;
  pnc_tensor* tensors = tensors_of(env, inputs, input_count);
  int64_t* rest = calloc((size_t)count + 1, sizeof *rest);
  if (tensors && !rest) throw_new(env, "java/lang/OutOfMemoryError", "the end of a stream");
  if (tensors && rest &&
      ok(env, pnc_session_finish(pointer(session), tensors, input_count, &options, rest, count)) &&
      (array = (*env)->NewLongArray(env, count))) {
    (*env)->SetLongArrayRegion(env, array, 0, count, (const jlong*)rest);
  }
  free(tensors);
  free(rest);
  return array;
}

/* ---- the report of a device -------------------------------------------------------------------------------------- */

/* Of the kit in a direct buffer, or else in the file of that path. */
NATIVE(jbyteArray, report)(JNIEnv* env, jclass self, jbyteArray path, jobject buffer, jlong offset, jlong bytes,
                           jobjectArray targets, jdouble seconds) {
  (void)self;
  const jsize count = (*env)->GetArrayLength(env, targets);
  char** texts = calloc((size_t)count + 1, sizeof *texts); /* of the targets, then the path */
  if (!texts) {
    throw_new(env, "java/lang/OutOfMemoryError", "the options of a report");
    return NULL;
  }
  int complete = (texts[count] = text_of(env, path)) != NULL;
  for (jsize i = 0; complete && i < count; ++i) {
    jbyteArray target = (*env)->GetObjectArrayElement(env, targets, i);
    complete = (texts[i] = text_of(env, target)) != NULL;
    (*env)->DeleteLocalRef(env, target);
  }
  jbyteArray page = NULL;
  if (complete) {
    char* text = NULL;
    int64_t damage = -1;
    const char* kit = buffer ? (*env)->GetDirectBufferAddress(env, buffer) : NULL;
    const pnc_status status =
        pinnace_report_run(texts[count],
                           kit      ? kit + offset
                           : buffer ? ""
                                    : NULL,
                           (size_t)bytes, (const char* const*)texts, count, seconds, &text, &damage);
    cells list = {0};
    if (!text) {
      throw_new(env, "java/lang/OutOfMemoryError", "the report of a device");
    } else if (status == PNC_OK) {
      add(&list, text);
      page = give(env, &list);
    } else {
      add(&list, text);
      add(&list, ""); /* no rule has an identifier */
      throw_failure(env, status, damage, &list);
    }
    free(text);
  }
  for (jsize i = 0; i <= count; ++i) free(texts[i]);
  free(texts);
  return page;
}

/* ---- tokens, buffers -------------------------------------------------------------------------------------------- */

NATIVE(jlong, token)(JNIEnv* env, jclass self) {
  (void)self;
  pnc_cancel_token* token = NULL;
  ok(env, pnc_cancel_token_create(&token));
  return number_of(token);
}

NATIVE(void, cancel)(JNIEnv* env, jclass self, jlong token) {
  (void)env, (void)self;
  pnc_cancel_token_cancel(pointer(token));
}

NATIVE(jboolean, cancelled)(JNIEnv* env, jclass self, jlong token) {
  (void)env, (void)self;
  return pnc_cancel_token_cancelled(pointer(token)) != 0;
}

NATIVE(jlong, address)(JNIEnv* env, jclass self, jobject buffer) {
  (void)self;
  return number_of((*env)->GetDirectBufferAddress(env, buffer));
}
