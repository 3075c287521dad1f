// Stacks of fibers and the switch between them.
#include "backends/softmetal/execution/fiber.h"

#include <sys/mman.h>

#include <cstring>

// The switch keeps the registers that a called function must keep. On x86-64 the control words of x87 and SSE belong to
// them; nothing here changes those.
#if defined(__x86_64__)
asm(R"(
.text
.hidden pinnace_softmetal_switch
.globl pinnace_softmetal_switch
.type pinnace_softmetal_switch,@function
pinnace_softmetal_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size pinnace_softmetal_switch,.-pinnace_softmetal_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.hidden pinnace_softmetal_switch
.globl pinnace_softmetal_switch
.type pinnace_softmetal_switch,%function
pinnace_softmetal_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size pinnace_softmetal_switch,.-pinnace_softmetal_switch
)");
#else
#error "softmetal: no switch between fibers for this processor"
#endif

namespace softmetal {

Stacks::~Stacks() {
  if (base_) munmap(base_, count_ * (kBytes + kGuard));
}

bool Stacks::reserve(uint32_t count) {
  if (count <= count_) return true;
  const size_t bytes = count * (kBytes + kGuard);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  char* base = static_cast<char*>(memory);
  for (uint32_t i = 0; i < count; ++i) {
    if (mprotect(base + i * (kBytes + kGuard), kGuard, PROT_NONE)) {
      munmap(memory, bytes);
      return false;
    }
  }
  if (base_) munmap(base_, count_ * (kBytes + kGuard));
  base_ = base;
  count_ = count;
  return true;
}

void* first_frame(char* bottom, void (*entry)()) {
  void** sp = reinterpret_cast<void**>(bottom + Stacks::kBytes);
#if defined(__x86_64__)
  *--sp = nullptr;  // a function starts with its stack pointer at 8 modulo 16
  *--sp = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--sp = nullptr;
#else
  sp -= 20;
  memset(sp, 0, 160);
  sp[11] = reinterpret_cast<void*>(entry);  // x30, where the switch returns to
#endif
  return static_cast<void*>(sp);
}

}  // namespace softmetal
