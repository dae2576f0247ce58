// What an opcode's text says about order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/program/program.h"

namespace flashback::emulator::checking {

// Whose threads an operation synchronises with directly. ISA 8.5.
enum class Scope : std::uint8_t { kCta, kCluster, kGpu };  // kGpu: the system too

struct Form {
  enum class Kind : std::uint8_t {
    kOther,
    kWarpSync,         // bar.warp.sync
    kProxyFence,       // fence.proxy.async
    kInitFence,        // fence.mbarrier_init
    kMemoryFence,      // fence.sc, .acq_rel, ..., membar
    kFenceBeforeSync,  // tcgen05.fence::before_thread_sync
    kFenceAfterSync,   // tcgen05.fence::after_thread_sync
    kBulkCommit,       // cp.async.bulk.commit_group
    kBulkWait,         // cp.async.bulk.wait_group
    kBulkWaitRead,     // the same with .read
    kCopyCommit,       // cp.async.commit_group
    kCopyWait,         // cp.async.wait_group
    kCopyWaitAll,      // cp.async.wait_all
    kProductFence,     // wgmma.fence
    kProductCommit,    // wgmma.commit_group
    kProductWait,      // wgmma.wait_group
    kProduct,          // wgmma.mma_async
  };
  Kind kind = Kind::kOther;
  bool strong = false;   // an access that does not race with other strong ones
  bool acquire = false;  // of a strong access
  bool release = false;
  bool sums_floats = false;  // atomically, so that the order shows in the last bits
  bool relaxed = false;      // of an mbarrier operation: it orders nothing but what fences say
  Scope scope = Scope::kGpu;
  bool of_shared = false;  // of a fence: orders accesses of shared memory alone
};

Form form_of(std::string_view opcode);
std::vector<Form> forms_of(const Program& program);

}  // namespace flashback::emulator::checking
