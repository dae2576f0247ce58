// The emulated GPU of this process. The faces (runtime/, driver/) turn CUDA's calls into calls of these
// parts.
#pragma once

#include <atomic>
#include <new>
#include <string>

#include "emulator/cuda/error.h"
#include "emulator/cuda/gpu.h"
#include "emulator/cuda/handles.h"
#include "emulator/cuda/limits.h"
#include "emulator/cuda/memory.h"
#include "emulator/cuda/module.h"
#include "emulator/cuda/pool.h"
#include "emulator/cuda/report.h"
#include "emulator/cuda/stream.h"
#include "emulator/machine/machine.h"

namespace flashback::emulator::cuda {

struct Process {
  Process();

  const Gpu& gpu;
  Machine machine;
  Memory memory;
  Streams streams;
  Pools pools;
  Limits limits;
  Handles<Function> functions;
  Handles<Module> modules;
  std::atomic<bool> initialized{false};     // by cuInit, or by the runtime's first call
  std::atomic<bool> primary_active{false};  // the context that the runtime works in
  // After a fault in a kernel a context is lost: every call answers with the fault's code.
  std::atomic<Error> lost{Error::kSuccess};
};

// Made at first use as the environment says (environment.h), and never destroyed: programs call from
// destructors.
Process& process();

// For a kernel that does not run, or not to its end: what it should have computed is missing, and from now on
// every call fails.
[[noreturn]] void lose_context(Error error, const std::string& sentence);

// The code that a call answers with: that of a lost context, that of the Refusal which `call` throws, or
// success.
template <class Call>
Error attempt(Call&& call) {
  try {
    if (const Error lost = process().lost; lost != Error::kSuccess) return lost;
    call();
    return Error::kSuccess;
  } catch (const Refusal& refusal) {
    if (!refusal.sentence().empty()) report_failure(refusal.sentence());
    return refusal.error();
  } catch (const std::bad_alloc&) {
    return Error::kOutOfMemory;
  }
}

}  // namespace flashback::emulator::cuda
