/* What the C library has handed out and not got back, for HeldMemory.java: the JVM's own part and every library's. */
#include <jni.h>
#include <malloc.h>

JNIEXPORT jlong JNICALL Java_org_pinnace_HeldMemory_handedOut(JNIEnv* env, jclass self) {
  (void)env, (void)self;
  const struct mallinfo2 info = mallinfo2();
  return (jlong)(info.uordblks + info.hblkhd);
}
