/* The library's messages, which go to Log.java. */
#include <string.h>

#include "border.h"

static jclass logs; /* org.pinnace.Log */
static jmethodID log_called;

int load_log(JNIEnv* env) {
  jclass found = (*env)->FindClass(env, "org/pinnace/Log");
  if (!found || !(logs = (*env)->NewGlobalRef(env, found))) return 0;
  log_called = (*env)->GetStaticMethodID(env, logs, "called", "(I[B)V");
  return log_called != NULL;
}

/* On any thread, also while an exception waits for the return to Java. A message for which the JVM has no memory is
 * lost, as any other is. */
static void call_sink(void* user, pnc_log_level level, const char* text) {
  (void)user;
  int attached;
  JNIEnv* env = attach(&attached);
  if (!env) return;
  jthrowable waiting = (*env)->ExceptionOccurred(env);
  if (waiting) (*env)->ExceptionClear(env);
  const jsize length = (jsize)strlen(text);
  jbyteArray bytes = (*env)->NewByteArray(env, length);
  if (bytes) {
    (*env)->SetByteArrayRegion(env, bytes, 0, length, (const jbyte*)text);
    (*env)->CallStaticVoidMethod(env, logs, log_called, (jint)level, bytes);
    (*env)->DeleteLocalRef(env, bytes);
  }
  if ((*env)->ExceptionCheck(env)) (*env)->ExceptionClear(env);
  if (waiting) {
    (*env)->Throw(env, waiting);
    (*env)->DeleteLocalRef(env, waiting);
  }
  detach(attached);
}

NATIVE(void, logTo)(JNIEnv* env, jclass self, jboolean wanted, jint least) {
  (void)self;
  ok(env, pnc_set_log_sink(wanted ? call_sink : NULL, (pnc_log_level)least, NULL));
}

NATIVE(void, logLevel)(JNIEnv* env, jclass self, jint least) {
  (void)self;
  ok(env, pnc_set_log_level((pnc_log_level)least));
}
