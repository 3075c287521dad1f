// A plugin for QEMU's user mode that counts the instructions a program executes, and the vector multiply-adds among
// them: `qemu-aarch64 -plugin count_instructions.so,out=FILE PROGRAM` leaves {"instructions": N, "fma": M} in FILE.
// Exact and repeatable for one thread, since a counter is an addition compiled into every translated block. Debian has
// the plugin interface (version 1) in qemu-user, but not its header: the few declarations used are written out.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*translated_t)(uint64_t id, struct qemu_plugin_tb* block);
typedef void (*ended_t)(uint64_t id, void* data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated_t callback);
void qemu_plugin_register_atexit_cb(uint64_t id, ended_t callback, void* data);
// operation 0: *counter += amount each time that the block is executed
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, int operation, void* counter,
                                              uint64_t amount);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t index);
const void* qemu_plugin_insn_data(const struct qemu_plugin_insn* instruction);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

static uint64_t instructions, fma;
static char out_path[4096];

static int is_fma(uint32_t word) {
  return (word & 0xbfa0fc00) == 0x0e20cc00      // FMLA of three vectors
         || (word & 0xbf80f400) == 0x0f801000;  // FMLA by one lane
}

static void translated(uint64_t id, struct qemu_plugin_tb* block) {
  (void)id;
  const size_t count = qemu_plugin_tb_n_insns(block);
  uint64_t multiply_adds = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t word;
    memcpy(&word, qemu_plugin_insn_data(qemu_plugin_tb_get_insn(block, i)), sizeof word);
    multiply_adds += is_fma(word);
  }
  qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &instructions, count);
  if (multiply_adds) qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &fma, multiply_adds);
}

static void ended(uint64_t id, void* data) {
  (void)id, (void)data;
  FILE* out = *out_path ? fopen(out_path, "w") : stderr;
  if (!out) return;
  fprintf(out, "{\"instructions\": %" PRIu64 ", \"fma\": %" PRIu64 "}\n", instructions, fma);
  if (out != stderr) fclose(out);
}

EXPORT int qemu_plugin_install(uint64_t id, const void* info, int argc, char** argv) {
  (void)info;
  for (int i = 0; i < argc; ++i) {
    if (strncmp(argv[i], "out=", 4) == 0) snprintf(out_path, sizeof out_path, "%s", argv[i] + 4);
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
