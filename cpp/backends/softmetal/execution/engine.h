// What compiled Metal kernels see of the engine that runs them: where an invocation stands, the buffers that are bound,
// barriers, lanes of a simdgroup, threadgroup memory, and how a fault ends the run. Light: every kernel includes it.
#pragma once

#include "backends/softmetal/library.h"

namespace softmetal {

/// The grid, and the threadgroup of it that runs.
struct Grid {
  uint32_t group_in_grid[3], group_size[3], groups[3], grid_size[3];
  uint32_t simd_width, simdgroups;
};

/// One invocation: what the [[...]] attributes of a kernel's parameters can ask for.
struct Invocation {
  uint32_t thread_in_group[3];
  uint32_t index, lane, simdgroup;
  const Grid* grid;
  uint32_t thread_in_grid(int axis) const {
    return grid->group_in_grid[axis] * grid->group_size[axis] + thread_in_group[axis];
  }
};

struct Arguments {
  SoftmetalBuffer buffers[kSoftmetalBuffers];
  SoftmetalBuffer threadgroup[kSoftmetalThreadgroups];
};

/// Value of a function constant; not defined: null.
const uint32_t* function_constant(uint32_t id);

/// A kernel, as the table that the translator writes lists it.
struct Kernel {
  const char* name;
  /// One invocation on a fiber of its own; null for a kernel without barriers, simd functions and threadgroup memory.
  void (*invoke)(const Arguments&, const Invocation&);
  /// The invocations all[order[0..count)] one after the other; null for a kernel with fibers.
  void (*invoke_all)(const Arguments&, const Invocation* all, const uint32_t* order, uint32_t count);
  /// Sets the kernel's function constants, and what is derived from them.
  void (*specialise)();
};

// ---- what kernels call; all of it only from a kernel that runs

/// Records what is wrong and ends the run; the first fault counts.
[[noreturn]] void fault(int line, const char* format, ...) __attribute__((format(printf, 2, 3), cold));

void threadgroup_barrier(int line);
/// `memory`: orders accesses of threadgroup memory inside the simdgroup.
void simdgroup_barrier(bool memory, int line);

/// The invocation that runs on a fiber.
const Invocation& self();

/// What the lanes of a simdgroup show each other.
struct Lanes {
  const uint64_t* slots;  ///< one per lane
  uint64_t active;        ///< lanes that take part, those that have not returned
};
/// Shows the lower `bytes` (1 to 8) of `value` to the other lanes and waits for them. Valid until the next call.
Lanes publish(const void* value, uint32_t bytes, int line);

/// What the lanes of a simdgroup do once, all together: the first lane that comes here does it and writes its result
/// into the room, which the others take from there. `key` is what all lanes must agree on, such as an address.
struct Together {
  void* room;  ///< of so many bytes, until the next call
  bool first;
};
/// A fault where a lane does another thing next, or with another key; that all lanes have come is seen at the next
/// barrier or simd function, or at the end.
Together together(uint64_t key, uint32_t bytes, int line);

/// Room for the threadgroup variable number `key` of the file; the same for every invocation, filled with 0xff before
/// each threadgroup. More than 32 KiB in all is a fault.
void* threadgroup_variable(uint32_t key, uint32_t bytes, const char* name, int line);

/// Notes that the invocation touches an element of threadgroup memory; a fault where no barrier stands between this and
/// another invocation's access, unless both read or both are atomic. Does nothing for other addresses.
void note_read(const void* address, int line);
void note_write(const void* address, int line);
void note_atomic(const void* address, int line);

/// A range of memory that kernels may touch.
struct Range {
  const char* begin;
  const char* end;
};
/// The bound buffer or threadgroup variable that holds an address, else an empty range.
Range range_of(const void* address);

}  // namespace softmetal
