// What libpinnace_softmetal.so exports: Metal kernels, compiled for this processor, and one call that runs a grid of
// them. A C interface, since kernels are compiled by another compiler than the library that loads them. The library
// opens no device and keeps no buffers; device.cc does that.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Changes with every change of this header; a library that answers another number is refused.
#define SOFTMETAL_INTERFACE 1u

enum { kSoftmetalBuffers = 31, kSoftmetalThreadgroups = 8 };

/// Order in which the invocations of a threadgroup run between two barriers, and threadgroups one after the other.
enum SoftmetalOrder { kSoftmetalForward = 0, kSoftmetalReverse = 1, kSoftmetalShuffled = 2 };

enum SoftmetalResult {
  kSoftmetalOk = 0,
  kSoftmetalFault = 1,     ///< the kernel did what Metal does not define; buffers are half written
  kSoftmetalRefused = 2,   ///< the call breaks a limit or names no kernel; nothing ran
  kSoftmetalNoMemory = 3,  ///< no room for stacks or threadgroup memory; nothing ran
};

/// [[buffer(n)]]: accesses outside of [data, data + bytes) are faults. Null: not bound.
struct SoftmetalBuffer {
  void* data;
  uint64_t bytes;
};

/// [[function_constant(id)]]: the 32 bits of an int, uint or float; a bool is true unless all are 0. Other ids are
/// undefined.
struct SoftmetalConstant {
  uint32_t id;
  uint32_t bits;
};

struct SoftmetalLaunch {
  struct SoftmetalBuffer buffers[kSoftmetalBuffers];
  uint32_t threadgroup_bytes[kSoftmetalThreadgroups];  ///< of [[threadgroup(n)]] parameters
  const struct SoftmetalConstant* constants;           ///< borrowed until return
  size_t constant_count;
  uint32_t groups[3];      ///< as in dispatchThreadgroups:threadsPerThreadgroup:
  uint32_t group_size[3];  ///< product 1 to 1024
  uint32_t order;          ///< SoftmetalOrder
  uint32_t seed;           ///< of the shuffled order
  uint32_t simd_width;     ///< 8, 16, 32 or 64; Apple's is 32
  uint32_t races;          ///< not 0: accesses of threadgroup memory that no barrier orders are faults
  char* message;           ///< receives why, a sentence, where the result is not kSoftmetalOk
  size_t message_bytes;
};

struct SoftmetalLibrary {
  uint32_t interface;     ///< SOFTMETAL_INTERFACE
  uint32_t kernel_count;  ///< at most
  /// Name of a kernel; in ascending order.
  const char* (*name)(uint32_t kernel);
  /// Runs the whole grid and returns. Thread-safe; calls of one kernel take turns.
  enum SoftmetalResult (*run)(uint32_t kernel, const struct SoftmetalLaunch* launch);
};

/// The only exported symbol. Null where this processor lacks what the kernels were compiled for (x86-64: AVX2, FMA,
/// F16C).
typedef const struct SoftmetalLibrary* (*SoftmetalEntry)(void);
#define SOFTMETAL_ENTRY "pinnace_softmetal"

#ifdef __cplusplus
}
#endif
