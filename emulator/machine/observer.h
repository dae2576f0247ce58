// Someone who watches a run. An observed run uses a second loop and one host thread; an unobserved one tests
// a pointer where memory or a barrier is touched. docs/emulator/observers.md says in which order events come.
//
// What an instruction asks for (memory order, scope, proxy, groups) stands in its opcode,
// Program::forms[step.form]; events say what cannot be read there. A shared address comes with its owner and
// without the owner's rank.
#pragma once

#include <cstdint>
#include <span>

#include "emulator/program/program.h"

namespace flashback::emulator {

class Cta;

enum class Use : std::uint8_t { kRead, kWrite, kReadWrite };

// Lanes of a warp access shared or global memory in one instruction, which is atomic for kReadWrite.
struct LaneAccess {
  const Cta* owner = nullptr;  // of the shared memory; null: global memory
  Use use = Use::kRead;
  LaneMask lanes = 0;
  std::uint32_t bytes = 0;                   // of each lane
  const std::uint64_t* addresses = nullptr;  // of each lane
};

// A piece of work that hardware does beside the warps.
struct Operation {
  enum class Kind : std::uint8_t {
    kBulkLoad,       // cp.async.bulk(.tensor) into shared memory, told by an mbarrier
    kBulkStore,      // cp.async.bulk(.tensor) out of it, in a bulk group of its thread
    kBulkReduce,     // cp.reduce.async.bulk(.tensor), likewise
    kCopy,           // cp.async of one warp instruction
    kCopyArrival,    // cp.async.mbarrier.arrive: arrives when the lanes' copies so far are done
    kProduct,        // tcgen05.mma
    kCommit,         // tcgen05.commit: arrives when the thread's products so far are done
    kWarpProduct,    // a warp's part of wgmma.mma_async
    kTensorLoad,     // tcgen05.ld
    kTensorStore,    // tcgen05.st
    kPeerCopy,       // cp.async.bulk from shared memory to another CTA's, told by an mbarrier there
    kPeerStore,      // st.async or red.async of one thread, likewise
    kLaunchRequest,  // clusterlaunchcontrol.try_cancel, told by an mbarrier
  };
  std::uint64_t number = 0;  // in the order of issue; never 0
  Kind kind = Kind::kBulkLoad;
  const Warp* warp = nullptr;  // who issued it,
  const Step* step = nullptr;  // where,
  LaneMask lanes = 0;          // by which of its lanes
  std::uint32_t bytes = 0;     // that a copy moves, out-of-bounds parts of a box included
  // What is told of its end; null: nothing, or the groups of its threads.
  const Cta* mbarrier_owner = nullptr;
  std::uint32_t mbarrier = 0;
};

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

// An operation accesses shared or global memory; kReadWrite adds atomically.
struct OperationAccess {
  std::uint64_t operation = 0;
  const Cta* owner = nullptr;  // of the shared memory; null: global memory
  Use use = Use::kRead;
  std::span<const ByteRange> ranges;
  LaneMask lanes = kAllLanes;  // for which of the lanes that issued it
};

// An operation accesses tensor memory; kReadWrite reads and overwrites.
struct ColumnAccess {
  std::uint64_t operation = 0;
  const Cta* owner = nullptr;
  Use use = Use::kRead;
  std::uint32_t first = 0, columns = 0;
  LaneMask lanes[4] = {};  // of tensor memory, 32 each
};

struct MbarrierEvent {
  enum class Kind : std::uint8_t {
    kInit,        // amount: the arrivals of a phase
    kInvalidate,  //
    kExpect,      // amount: bytes that are still to come
    kComplete,    // amount: bytes that came
    kIncrement,   // amount: arrivals that this phase waits for beyond the expected ones
    kArrive,      // amount: arrivals
    kWait,        // a wait or test found the phase of `parity` over
  };
  Kind kind = Kind::kArrive;
  const Cta* owner = nullptr;
  std::uint32_t address = 0;    // in the owner's shared memory
  const Warp* warp = nullptr;   // whose lanes did it,
  const Step* step = nullptr;   //
  LaneMask lanes = 0;           //
  std::uint64_t operation = 0;  // or which operation; then warp and step are its issuer's
  std::uint32_t amount = 0;     // of all lanes together
  std::uint32_t parity = 0;     // of kWait
  bool ends_phase = false;      // the next phase begins
};

class Observer {
 public:
  virtual ~Observer() = default;

  virtual void launch_began(const Program&) {}
  virtual void launch_ended() {}  // also after a fault
  virtual void cta_began(const Cta&) {}
  virtual void cta_ended(const Cta&) {}
  virtual void warp_ended(const Warp&) {}
  // No warp of the CTA can go on and no operation is left; a fault follows.
  virtual void stuck(const Cta&) {}

  // Once for each executed instruction that was not put off (a wait that fails is not reported until it
  // succeeds), after the other events that the instruction causes.
  virtual void executed(const Warp&, const Step&, LaneMask) {}
  virtual void accessed(const Warp&, const Step&, const LaneAccess&) {}

  // An operation is issued, then accesses memory, then ends: it has taken effect. Whatever tells the warps
  // (an mbarrier event, the execution of a wait) comes later.
  virtual void issued(const Operation&) {}
  virtual void accessed(const OperationAccess&) {}
  virtual void accessed(const ColumnAccess&) {}
  virtual void ended(std::uint64_t /*operation*/) {}

  virtual void mbarrier(const MbarrierEvent&) {}
  // Named barriers: a warp joins a generation of one, which waits for `threads` (0: all of the CTA); a warp
  // that waits goes on when it is complete.
  virtual void barrier_joined(const Warp&, const Step&, std::uint32_t /*id*/, std::uint32_t /*threads*/,
                              std::uint32_t /*generation*/) {}
  virtual void barrier_passed(const Warp&, const Step&, std::uint32_t /*id*/, std::uint32_t /*generation*/) {}
  // The barrier of the cluster likewise; a warp that joins goes on and waits later.
  virtual void cluster_barrier_joined(const Warp&, const Step&, std::uint32_t /*generation*/) {}
  virtual void cluster_barrier_passed(const Warp&, const Step&, std::uint32_t /*generation*/) {}
  virtual void columns_allocated(const Warp&, const Step&, std::uint32_t /*first*/,
                                 std::uint32_t /*columns*/) {}
  virtual void columns_released(const Warp&, const Step&, std::uint32_t /*first*/,
                                std::uint32_t /*columns*/) {}

  // For the machine.
  std::uint64_t next_operation() { return ++operations_; }

 private:
  std::uint64_t operations_ = 0;
};

}  // namespace flashback::emulator
