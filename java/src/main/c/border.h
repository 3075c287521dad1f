/* What the files of the Java package's native functions share: texts that leave for Java or come from there, failures,
 * and pointers as numbers. */
#ifndef PINNACE_JNI_BORDER_H
#define PINNACE_JNI_BORDER_H

#include <jni.h>
#include <stdint.h>

#include <pinnace/pinnace.h>

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_org_pinnace_Native_##name

/* Texts one after another, each closed by a null character; numbers in decimal. All zero: none yet. */
typedef struct cells {
  char* bytes;
  size_t used, room;
  int failed; /* memory has run out */
} cells;

void add(cells* list, const char* text);
void add_number(cells* list, int64_t number);
void add_all(cells* list, const char* const* texts, size_t count);
/* The list as a byte[], and its end; null with an exception. */
jbyteArray give(JNIEnv* env, cells* list);

/* Throws an exception of the class of that name. */
void throw_new(JNIEnv* env, const char* name, const char* text);
/* Throws the failure that the list says: its sentence, its rule, its nodes. */
void throw_failure(JNIEnv* env, pnc_status status, int64_t offset, cells* list);
/* 1 where the call succeeded, else 0 with the thread's last failure thrown. */
int ok(JNIEnv* env, pnc_status status);

/* The bytes of a byte[] that is closed by a null character, in memory for free(); null with an exception. */
char* text_of(JNIEnv* env, jbyteArray array);

/* This thread's environment. A thread that is not the JVM's is attached to it, which *attached says: detach() follows.
 * NULL: it cannot be attached. */
JNIEnv* attach(int* attached);
void detach(int attached);

static inline void* pointer(jlong number) {
  return (void*)(intptr_t)number;
}
static inline jlong number_of(const void* object) {
  return (jlong)(intptr_t)object;
}

/* Look up what each file asks Java for, once; 0: it is not there, with an exception. */
int load_border(JNIEnv* env);
int load_operators(JNIEnv* env);
int load_log(JNIEnv* env);

/* Operators of the application: see operators.c. */
const pnc_custom_op* operator_of(jlong number);
void free_operator(JNIEnv* env, jlong number);

#endif /* PINNACE_JNI_BORDER_H */
