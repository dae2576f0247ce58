// The symbol that device/emulator.cpp looks up. Compiled for any x86-64, so that it can refuse politely.
#include "device/emulator.h"
#include "emulator/workbench.h"

extern "C" __attribute__((visibility("default"))) void flashback_emulator_open_v1(
    flashback::Arch arch, int threads, flashback::Status* status,
    std::unique_ptr<flashback::Workbench>* workbench) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) {
    *status = flashback::unsupported(
        "this processor lacks AVX2, FMA or F16C; the emulator needs an x86-64-v3 processor (Haswell, Zen or "
        "later)");
    return;
  }
  flashback::emulator::MachineOptions options;
  options.arch = arch;
  options.threads = threads;
  *workbench = flashback::emulator::make_workbench(options);
  *status = {};
}
