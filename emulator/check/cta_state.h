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
  std::uint32_t group = 0;        // among the bulk or cp.async groups of the thread
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
  Time products = 0;                 // of wgmma, issued
  std::vector<Time> product_groups;  // those issued when a wgmma-group was committed
  std::uint64_t executed = 0;        // instructions
  std::vector<std::uint32_t> open;   // operations that the warp has yet to wait for: index into operations
  // Of accesses that order by fences: what strong reads and relaxed waits have seen, and what fences have
  // released, by their scope.
  Released seen;
  std::map<Scope, Knowledge> at_release_fence;
  std::vector<bool> touched;  // by slot / 4: registers accessed since the last wgmma.fence
};

// Products that add to one accumulator, with nothing but each other in between: the first stands for all of
// them in the columns, and is over when the last is. Between commits nobody can know more of one than of the
// other.
struct Sum {
  const struct CtaState* by = nullptr;
  std::uint32_t product = 0;  // the first
  std::uint32_t commits = 0;  // of the CTA that issues, when it was issued
  ColumnAccess accumulator;

  bool goes_on(const CtaState& state, const ColumnAccess& columns) const;
  bool overlaps(const ColumnAccess& columns) const {
    return accumulator.first < columns.first + columns.columns &&
           columns.first < accumulator.first + accumulator.columns;
  }
};

struct CtaState {
  const Cta* cta = nullptr;
  std::uint64_t number = 0;
  std::vector<WarpState> warps;
  std::vector<OperationState>* operations = nullptr;
  std::vector<Piece> shared;
  std::vector<Piece> columns;                        // kColumns * quarter + column
  std::map<std::uint32_t, MbarrierState> mbarriers;  // by address
  BarrierState barriers[16];
  Agent next_agent = 0;
  Sum sum;
  Time products = 0;          // issued to the tensor core
  std::uint32_t commits = 0;  // likewise
  std::size_t ended_warps = 0;

  std::uint32_t cluster() const { return cta->cluster().size(); }
  Agent tensor_core() const { return static_cast<Agent>(32 * warps.size()); }
  // Who tells of the products of a warp's warpgroup: its n-th is over at time n.
  Agent warpgroup(Agent first_lane) const { return tensor_core() + 1 + first_lane / 128; }
  Agent first_mbarrier() const { return warpgroup(tensor_core()) + 1; }
  void forget_columns(std::uint32_t first, std::uint32_t count) {
    sum = {};
    for (std::uint32_t quarter = 0; quarter < 4; ++quarter) {
      Piece* const begin = columns.data() + TensorMemory::kColumns * quarter + first;
      std::for_each(begin, begin + count, [](Piece& piece) { piece.clear(); });
    }
  }
  void prefetch(std::uint64_t shared_byte) const {
    const Piece* const piece = &shared[shared_byte / kPieceBytes];
    __builtin_prefetch(piece);
    __builtin_prefetch(reinterpret_cast<const char*>(piece + 1) - 1);
  }
  OperationState& operation(std::uint32_t place) { return (*operations)[place - 1]; }
};

inline bool Sum::goes_on(const CtaState& state, const ColumnAccess& columns) const {
  return by == &state && commits == state.commits && columns.use == Use::kReadWrite &&
         accumulator.first == columns.first && accumulator.columns == columns.columns &&
         std::equal(accumulator.lanes, accumulator.lanes + 4, columns.lanes);
}

}  // namespace flashback::emulator::checking
