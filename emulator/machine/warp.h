// A warp: its registers, where its lanes are, and how it stops. The interface that instruction bodies are
// written against.
//
// Lanes that are at the same place form a group. The group with the lowest pc runs, until it reaches the next
// group's pc; there the two merge. That reconverges every structured branch without looking at the control
// flow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/machine/units/tensor_memory.h"
#include "emulator/machine/units/warp_products.h"
#include "emulator/program/program.h"

namespace flashback::emulator {

class Cta;

// What an instruction that was put off waits for.
struct Wait {
  enum class Kind : std::uint8_t {
    kNothing,
    kLanes,       // what: the lanes that must execute it together
    kBarrier,     // what: named barrier, when: its generation at the arrival
    kCluster,     // the cluster barrier
    kMbarrier,    // what: shared address, when: parity of the wanted phase
    kBulkGroups,  // what: groups that may stay pending
    kCopyGroups,  // what: groups of cp.async that may stay pending
    kRegisters,   // what: registers a thread wanted
    kColumns,     // what: columns of tensor memory wanted
    kPair,        // a warp of the pair's other CTA, which does the same
    kWarpgroup,   // what: the warpgroup whose warps must reach its fence, when: how many it had passed before
    kProducts,    // what: the warpgroup whose warps must have committed so many wgmma-groups, when
  };
  Kind kind = Kind::kNothing;
  std::uint32_t what = 0;
  std::uint32_t when = 0;
};

class Warp {
 public:
  // ---- for instruction bodies

  // The 32 lanes of a register.
  template <class T>
  T* lanes(Slot slot) {
    return reinterpret_cast<T*>(registers_ + slot);
  }
  template <class T>
  const T* lanes(Slot slot) const {
    return reinterpret_cast<const T*>(registers_ + slot);
  }
  LaneMask predicate(Slot slot) const { return *lanes<LaneMask>(slot); }
  void set_predicate(Slot slot, LaneMask bits, LaneMask mask) {
    LaneMask* p = lanes<LaneMask>(slot);
    *p = (*p & ~mask) | (bits & mask);
  }

  Cta& cta() const { return *cta_; }
  int index() const { return index_; }         // in the CTA
  LaneMask active() const { return active_; }  // lanes of the group that runs
  LaneMask live() const { return live_; }      // lanes that have not exited
  std::uint32_t pc() const { return pc_; }     // of the next instruction

  // The lanes of `taken` go on at `target`, the other active ones at the next instruction.
  void branch(std::uint32_t target, LaneMask taken) {
    if (taken == active_) {
      pc_ = target;
    } else {
      diverge(target, taken);
    }
  }
  void exit(LaneMask lanes);
  // Puts this instruction off: it has had no effect but on what `waited` tells it, and runs again later.
  void wait_here(Wait wait) {
    --pc_;
    wait_ = wait;
    stop_ = Stop::kWaits;
  }
  // What this instruction waited for when it was put off; kNothing at its first attempt.
  const Wait& waited() const { return wait_; }
  // Lets other warps run after this instruction, which asked for something that has not happened yet.
  void poll() { stop_ = Stop::kPolled; }
  // Lets other warps run after this instruction, which got what it waited for.
  void yield() { stop_ = Stop::kYields; }
  // True when all live lanes of `lanes` execute this instruction together; else puts it off.
  bool gathers(LaneMask lanes) {
    if ((active_ & lanes & live_) == (lanes & live_)) return true;
    wait_here({Wait::Kind::kLanes, lanes & live_, 0});
    return false;
  }

  // Loads and stores of tensor memory that were issued and have not taken effect.
  struct PendingLoad {
    const Step* step;
    TensorAccess from;
    std::uint64_t operation = 0;
    bool is_copied = false;  // it has taken effect, and is kept until the warp could know: for the observer
  };
  struct PendingStore {
    TensorAccess to;
    std::vector<std::uint32_t> values;  // 32 lanes a register
    std::uint64_t operation = 0;
  };
  std::vector<PendingLoad> pending_loads;
  std::vector<PendingStore> pending_stores;
  WarpProducts products;

  // Throws a Fault whose sentence is `what` plus where: entry, CTA, warp, PTX line, opcode, CUDA source line.
  [[noreturn]] void fault(const Step& step, const std::string& what,
                          FaultKind kind = FaultKind::kOther) const;

  // ---- for the CTA

  struct Group {
    std::uint32_t pc;
    LaneMask mask;
    Wait wait = {};
    bool tried = false;
  };
  enum class Progress { kNone, kPolled, kSliceEnded, kMoved };  // least to most

  // Takes its place in `cta`, with registers and local memory of the start.
  void start(Cta& cta, int index);
  // Runs every group until it waits, exits or `slice` instructions have gone by.
  template <bool kObserved>
  Progress run(std::uint32_t slice);
  bool finished() const { return groups_.empty(); }
  const std::vector<Group>& groups() const { return groups_; }
  std::uint64_t executed() const { return executed_; }
  // The lanes' own memory, Program::local_bytes each.
  bool local_holds(std::uint64_t address, std::size_t bytes) const;

 private:
  enum class Stop : std::uint8_t {
    kNone,
    kWaits,
    kPolled,
    kYields,
    kDiverged,
    kMerges,
    kExited,
    kSliceEnded
  };

  void diverge(std::uint32_t target, LaneMask taken);
  void merge_groups();
  bool waits_in_vain(const Wait& wait) const;
  template <bool kObserved>
  void run_group(std::uint32_t& slice);

  std::byte* registers_ = nullptr;
  Cta* cta_ = nullptr;
  int index_ = 0;
  LaneMask active_ = 0, live_ = 0;
  std::uint32_t pc_ = 0, merge_pc_ = 0;
  Stop stop_ = Stop::kNone;
  Wait wait_;
  std::size_t current_ = 0;  // of groups_
  std::vector<Group> groups_;
  std::uint64_t executed_ = 0;
  std::vector<std::byte> register_memory_, local_memory_;
};

}  // namespace flashback::emulator
