/* Operators of the application whose functions are Java's: CustomOp.java. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "border.h"

static jclass operators; /* org.pinnace.CustomOp */
static jmethodID operator_called;

int load_operators(JNIEnv* env) {
  jclass found = (*env)->FindClass(env, "org/pinnace/CustomOp");
  if (!found || !(operators = (*env)->NewGlobalRef(env, found))) return 0;
  operator_called =
      (*env)->GetStaticMethodID(env, operators, "called", "(Ljava/lang/Object;II[J[Ljava/lang/Object;[B[J)[B");
  return operator_called != NULL;
}

typedef struct java_operator {
  jobject functions; /* a global reference to CustomOp.Functions */
  pnc_custom_op* op;
} java_operator;

/* What CustomOp.called() is given, as it says; null with an exception. */
static jlongArray pack_types(JNIEnv* env, const pnc_op_call* call) {
  const size_t count = (size_t)call->input_count + (size_t)call->output_count;
  jlong* numbers = malloc((count * (2 + PNC_MAX_RANK) + 1) * sizeof *numbers);
  jsize used = 0;
  if (!numbers) {
    throw_new(env, "java/lang/OutOfMemoryError", "the types of an operator");
    return NULL;
  }
  for (size_t i = 0; i < count; ++i) {
    const pnc_tensor* t =
        i < (size_t)call->input_count ? &call->inputs[i] : &call->outputs[i - (size_t)call->input_count];
    numbers[used++] = t->dtype;
    numbers[used++] = t->rank;
    for (int32_t d = 0; d < t->rank; ++d) numbers[used++] = t->shape[d];
  }
  jlongArray array = (*env)->NewLongArray(env, used);
  if (array) (*env)->SetLongArrayRegion(env, array, 0, used, numbers);
  free(numbers);
  return array;
}

/* A tensor's memory as a direct buffer; null where there is none, with an exception or without. */
static jobject view_of(JNIEnv* env, const pnc_tensor* tensor) {
  if (!tensor->data || !tensor->bytes || tensor->bytes > INT32_MAX) return NULL; /* beyond: called() says so */
  return (*env)->NewDirectByteBuffer(env, tensor->data, (jlong)tensor->bytes);
}

/* The call in Java. Gives the code and fills the message. An exception may be left where memory has run out. */
static pnc_status call_java(JNIEnv* env, const java_operator* op, pnc_op_call* call, int shape) {
  const jint inputs = call->input_count, outputs = call->output_count, given_length = 2 + PNC_MAX_RANK;
  jlongArray packed = pack_types(env, call), given = NULL;
  if (!packed) return PNC_OUT_OF_MEMORY;
  jobjectArray memory = NULL;
  if (shape) {
    if (outputs > INT32_MAX / given_length || !(given = (*env)->NewLongArray(env, outputs * given_length))) {
      return PNC_OUT_OF_MEMORY;
    }
  } else {
    jclass objects = (*env)->FindClass(env, "java/lang/Object");
    if (!objects || !(memory = (*env)->NewObjectArray(env, inputs + outputs, objects, NULL))) return PNC_OUT_OF_MEMORY;
    for (jint i = 0; i < inputs + outputs; ++i) {
      jobject view = view_of(env, i < inputs ? &call->inputs[i] : &call->outputs[i - inputs]);
      if ((*env)->ExceptionCheck(env)) return PNC_OUT_OF_MEMORY;
      if (!view) continue;
      (*env)->SetObjectArrayElement(env, memory, i, view);
      (*env)->DeleteLocalRef(env, view);
    }
  }
  cells texts = {0};
  for (int32_t i = 0; i < call->attribute_count; ++i) {
    add(&texts, call->attributes[i].key);
    add(&texts, call->attributes[i].value);
  }
  jbyteArray attributes = give(env, &texts);
  if (!attributes) return PNC_OUT_OF_MEMORY;
  jbyteArray failure = (*env)->CallStaticObjectMethod(env, operators, operator_called, op->functions, inputs, outputs,
                                                      packed, memory, attributes, given);
  if ((*env)->ExceptionCheck(env)) return PNC_OUT_OF_MEMORY; /* it catches all others */
  if (failure) {
    jbyte said[1 + sizeof call->message] = {0};
    jsize bytes = (*env)->GetArrayLength(env, failure);
    if (bytes > (jsize)sizeof call->message) bytes = sizeof call->message; /* the code, and all but the last null */
    (*env)->GetByteArrayRegion(env, failure, 0, bytes, said);
    memcpy(call->message, said + 1, sizeof call->message);
    return (pnc_status)said[0];
  }
  for (jint i = 0; shape && i < outputs; ++i) {
    jlong type[2 + PNC_MAX_RANK];
    (*env)->GetLongArrayRegion(env, given, i * given_length, given_length, type);
    call->outputs[i].dtype = (pnc_dtype)type[0];
    call->outputs[i].rank = (int32_t)type[1];
    for (int32_t d = 0; d < call->outputs[i].rank; ++d) call->outputs[i].shape[d] = type[2 + d];
  }
  return PNC_OK;
}

/* On any thread: one that is not the JVM's is attached for the call. */
static pnc_status call_operator(const java_operator* op, pnc_op_call* call, int shape) {
  int attached;
  JNIEnv* env = attach(&attached);
  if (!env) {
    snprintf(call->message, sizeof call->message, "the thread cannot be attached to the JVM");
    return PNC_OUT_OF_MEMORY;
  }
  pnc_status status = PNC_OUT_OF_MEMORY;
  if ((*env)->PushLocalFrame(env, 16) == 0) { /* a run may call often before it returns to Java */
    status = call_java(env, op, call, shape);
    if ((*env)->ExceptionCheck(env)) (*env)->ExceptionClear(env);
    (*env)->PopLocalFrame(env, NULL);
  } else {
    (*env)->ExceptionClear(env);
  }
  if (status == PNC_OUT_OF_MEMORY && !call->message[0]) {
    snprintf(call->message, sizeof call->message, "the JVM has no memory for the call");
  }
  detach(attached);
  return status;
}

static pnc_status shape_operator(void* user, pnc_op_call* call) {
  return call_operator(user, call, 1);
}
static pnc_status compute_operator(void* user, pnc_op_call* call) {
  return call_operator(user, call, 0);
}

const pnc_custom_op* operator_of(jlong number) {
  return ((const java_operator*)pointer(number))->op;
}

void free_operator(JNIEnv* env, jlong number) {
  java_operator* op = pointer(number);
  pnc_custom_op_close(op->op);
  (*env)->DeleteGlobalRef(env, op->functions);
  free(op);
}

NATIVE(jlong, customOp)(JNIEnv* env, jclass self, jbyteArray name, jint outputs, jobject functions) {
  (void)self;
  char* text = text_of(env, name);
  if (!text) return 0;
  java_operator* op = calloc(1, sizeof *op);
  if (!op || !(op->functions = (*env)->NewGlobalRef(env, functions))) {
    free(op);
    free(text);
    if (!(*env)->ExceptionCheck(env)) throw_new(env, "java/lang/OutOfMemoryError", "an operator of pinnace");
    return 0;
  }
  const int made = ok(env, pnc_custom_op_create(text, outputs, shape_operator, compute_operator, op, &op->op));
  free(text);
  if (made) return number_of(op);
  (*env)->DeleteGlobalRef(env, op->functions);
  free(op);
  return 0;
}
