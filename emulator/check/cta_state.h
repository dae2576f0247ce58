// What the checker keeps of a CTA while it runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/check/released.h"
#include "emulator/check/shadow.h"
#include "emulator/check/threads.h"
#include "emulator/machine/cluster.h"
#include "emulator/machine/observer.h"

namespace flashback::emulator::checking {

// Whether it accesses memory as instructions do, not through the asynchronous proxy.
constexpr bool is_generic(Operation::Kind kind) {
  return kind == Operation::Kind::kCopy || kind == Operation::Kind::kPeerStore;
}

// An operation, and when it is over: for the threads of its warp from `ended` on (`read_ended`: as far as it
// reads), for whoever knows one of whom it has `told`.
struct OperationState {
  const Step* step = nullptr;
  Operation::Kind kind = Operation::Kind::kBulkLoad;
  View view;  // at the issue; given up at the end
  Agent first = 0;
  LaneMask lanes = 0;
  Time ended = 0, read_ended = 0;
  struct Told {
    std::uint64_t cta;  // whose agent
    Agent agent;
    Time time;
  };
  std::vector<Told> told;
  std::uint64_t instruction = 0;  // of the warp: lanes issue several operations in one
  std::uint32_t group = 0;        // among the bulk, cp.async or wgmma groups of the thread or warp
  std::uint32_t accumulator = 0;  // of tcgen05.mma: its first column and width, told apart by strict order
};

// The operations of a launch, by the number of their CTA: an access of one CTA is compared with those of
// others that have ended.
using Operations = std::unordered_map<std::uint64_t, std::vector<OperationState>>;

// An mbarrier: what the arrivals of the phase under way pass on, and what those of the last one did.
struct MbarrierState {
  Agent agent = 0;  // the copies that it tells of; the next one: those that other CTAs issued
  std::uint32_t expected = 0;
  std::uint32_t phase = 0;  // phases that are over
  bool in_use = false;
  Record init;
  Released arriving, over;
  std::map<int, std::uint32_t>
      seen;  // by thread, -1 - warp where it is the whole warp: phases at its last wait
  std::vector<std::uint32_t> arrived_warps;         // in this phase
  std::map<std::uint32_t, std::uint64_t> arrivals;  // by warp, of all phases
};

struct BarrierState {
  struct Generation {
    std::uint32_t number = 0;
    Knowledge joined;
    std::vector<std::pair<std::uint32_t, Time>> members;  // warps, and when they joined

    bool has(std::uint32_t warp) const {
      return std::any_of(members.begin(), members.end(), [=](const auto& m) { return m.first == warp; });
    }
  };
  std::vector<Generation> generations;  // the last few
};

struct WarpState {
  Threads threads;
  std::uint32_t bulk_groups[32] = {};  // committed
  std::uint32_t copy_groups[32] = {};
  std::uint32_t product_groups = 0;
  std::uint64_t executed = 0;       // instructions
  std::vector<std::uint32_t> open;  // operations that the warp has yet to wait for: index into operations
  // Of accesses that order by fences: what strong reads and relaxed waits have seen, and what fences have
  // released, by their scope.
  Released seen;
  std::map<Scope, Knowledge> at_release_fence;
  std::vector<bool> touched;  // by slot / 4: registers accessed since the last wgmma.fence
};

struct CtaState {
  const Cta* cta = nullptr;
  std::uint64_t number = 0;
  std::vector<WarpState> warps;
  std::vector<OperationState>* operations = nullptr;
  std::vector<Piece> shared;
  std::vector<Piece> columns;                        // 4 * column + quarter
  std::map<std::uint32_t, MbarrierState> mbarriers;  // by address
  BarrierState barriers[16];
  Agent next_agent = 0;
  Time products = 0;  // issued to the tensor core
  std::size_t ended_warps = 0;

  std::uint32_t cluster() const { return cta->cluster().size(); }
  Agent tensor_core() const { return static_cast<Agent>(32 * warps.size()); }
  OperationState& operation(std::uint32_t place) { return (*operations)[place - 1]; }
};

}  // namespace flashback::emulator::checking
