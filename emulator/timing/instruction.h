// What a PTX instruction costs an SM before any number is put to it: which unit works on it, how many
// instructions the assembler makes of it, and whether it takes part in synchronisation.
//
// PTX is not SASS. Most forms are one instruction. Some are none: moves and packs of registers, which become
// the choice of a register; conversions between addresses; negations, which are modifiers of the operand that
// follows; parameters, which are operands in constant memory; waits that are a scoreboard. Some are several.
#pragma once

#include <cstdint>
#include <string_view>

namespace flashback::emulator::timing {

enum class Action : std::uint8_t {
  kArithmetic,     // a pipe, nothing else
  kSharedLoad,     // ld, ldmatrix
  kSharedStore,    // st, stmatrix
  kGlobalLoad,     // ld, atom: a register waits for L2
  kGlobalStore,    // st, red
  kBranch,         // ends a stretch that the assembler may reorder
  kWarpSync,       // bar.warp.sync
  kFence,          // fence.proxy.async: earlier stores reach the asynchronous units
  kBarrier,        // bar.sync
  kBarrierArrive,  // bar.arrive
  kPhaseInit,      // mbarrier.init
  kPhaseArrive,    // mbarrier.arrive
  kPhaseExpect,    // mbarrier.arrive.expect_tx
  kPhaseWait,      // mbarrier.try_wait, once it succeeds
  kTensorLoad,     // tcgen05.ld
  kTensorStore,    // tcgen05.st
  kTensorLoadWait,
  kTensorStoreWait,
  kProduct,     // tcgen05.mma
  kCommit,      // tcgen05.commit
  kCopyIn,      // global to shared, completing on an mbarrier
  kCopyOut,     // shared to global
  kReduceOut,   // shared added to global
  kCopyCommit,  // bulk groups of a thread
  kCopyWait,
  kCopyWaitRead,
  kGroupProduct,  // wgmma.mma_async: issued by four warps
  kGroupCommit,
  kGroupWait,
  kStop,  // ret
};

enum class Pipe : std::uint8_t {
  kNone,         // an issue slot only
  kFma,          // fp32, one a lane
  kFma2,         // fp32, two a lane
  kInteger,      // multiplication, on the fma pipe at half rate
  kAlu,          // integer, logic, selection, comparison
  kSpecial,      // the special function unit
  kConvert,      // between formats
  kTransferred,  // one instruction of the load/store unit
};
inline constexpr int kPipes = 8;

struct Form {
  std::string_view prefix;  // of the opcode; the longest that fits counts
  Action action;
  Pipe pipe;
  double instructions;  // of SASS
};

// The form of an opcode; null when none fits: what has no cost is not replayed.
const Form* form_of(std::string_view opcode);

// Whether the assembler keeps its place: nothing is moved over it.
bool keeps_its_place(Action action);

}  // namespace flashback::emulator::timing
