/* Texts and failures between C and Java. */
#include "border.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static JavaVM* machine;
static jclass exceptions; /* org.pinnace.PinnaceException */
static jmethodID exception_of;

int load_border(JNIEnv* env) {
  if ((*env)->GetJavaVM(env, &machine) != JNI_OK) return 0;
  jclass found = (*env)->FindClass(env, "org/pinnace/PinnaceException");
  if (!found || !(exceptions = (*env)->NewGlobalRef(env, found))) return 0;
  exception_of = (*env)->GetStaticMethodID(env, exceptions, "of", "(IJ[B)Lorg/pinnace/PinnaceException;");
  return exception_of != NULL;
}

JNIEnv* attach(int* attached) {
  JNIEnv* env = NULL;
  *attached = 0;
  if ((*machine)->GetEnv(machine, (void**)&env, JNI_VERSION_1_6) == JNI_OK) return env;
  *attached = (*machine)->AttachCurrentThreadAsDaemon(machine, (void*)&env, NULL) == JNI_OK;
  return *attached ? env : NULL;
}

void detach(int attached) {
  if (attached) (*machine)->DetachCurrentThread(machine);
}

/* ---- cells ------------------------------------------------------------------------------------------------------ */

void add(cells* list, const char* text) {
  const size_t more = strlen(text) + 1;
  if (list->failed) return;
  if (list->used + more > list->room) {
    const size_t room = 2 * (list->used + more) + 256;
    char* bytes = realloc(list->bytes, room);
    if (!bytes) {
      list->failed = 1;
      return;
    }
    list->bytes = bytes;
    list->room = room;
  }
  memcpy(list->bytes + list->used, text, more);
  list->used += more;
}

void add_number(cells* list, int64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, number);
  add(list, text);
}

void add_all(cells* list, const char* const* texts, size_t count) {
  for (size_t i = 0; i < count; ++i) add(list, texts[i]);
}

void throw_new(JNIEnv* env, const char* name, const char* text) {
  jclass class = (*env)->FindClass(env, name);
  if (class) (*env)->ThrowNew(env, class, text);
}

/* The list as a byte[], and its end; null with an exception. */
jbyteArray give(JNIEnv* env, cells* list) {
  jbyteArray array = NULL;
  if (list->failed || list->used > INT32_MAX) {
    throw_new(env, "java/lang/OutOfMemoryError", "a list of pinnace");
  } else if ((array = (*env)->NewByteArray(env, (jsize)list->used))) {
    (*env)->SetByteArrayRegion(env, array, 0, (jsize)list->used, (const jbyte*)list->bytes);
  }
  free(list->bytes);
  return array;
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

/* Throws the failure that the list says: its sentence, its rule, its nodes. */
void throw_failure(JNIEnv* env, pnc_status status, int64_t offset, cells* list) {
  jbyteArray said = give(env, list);
  if (!said) return;
  jobject failure = (*env)->CallStaticObjectMethod(env, exceptions, exception_of, (jint)status, (jlong)offset, said);
  if (failure && !(*env)->ExceptionCheck(env)) (*env)->Throw(env, (jthrowable)failure);
}

/* 1 where the call succeeded, else 0 with the thread's last failure thrown. */
int ok(JNIEnv* env, pnc_status status) {
  if (status == PNC_OK) return 1;
  const int64_t offset = pnc_error_offset();
  cells list = {0};
  add(&list, pnc_error());
  add(&list, pnc_error_rule());
  const pnc_node_problem* nodes = NULL;
  int32_t count = 0;
  if (pnc_error_nodes(&nodes, &count) == PNC_OK) {
    for (int32_t i = 0; i < count; ++i) add_all(&list, (const char* const*)&nodes[i], 6);
    pnc_free(nodes);
  }
  throw_failure(env, status, offset, &list);
  return 0;
}

/* The bytes of a byte[] that is closed by a null character, in memory for free(); null with an exception. */
char* text_of(JNIEnv* env, jbyteArray array) {
  const jsize bytes = (*env)->GetArrayLength(env, array);
  char* text = malloc((size_t)bytes + 1);
  if (!text) {
    throw_new(env, "java/lang/OutOfMemoryError", "a text of pinnace");
    return NULL;
  }
  (*env)->GetByteArrayRegion(env, array, 0, bytes, (jbyte*)text);
  text[bytes] = '\0';
  return text;
}
