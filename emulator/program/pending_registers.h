// Which steps may find asynchronous work unfinished that still has registers of the warp.
//
// A tcgen05.ld owes its registers until its wait, or until one of them is used: the hardware interlocks the
// register, so compilers move uses above the wait. A wgmma.mma_async has its accumulator, and A where that is
// in registers, until its wait_group; whoever touches them before does what the ISA leaves undefined.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/program/draft.h"
#include "emulator/program/flow.h"

namespace flashback::emulator {

// The steps between which the work of `step` may be unfinished: its registers keep their slots from `first`
// to `last`.
struct PendingSpan {
  std::uint32_t step;
  std::uint32_t first, last;
};

// Whether an access of a step is to a register that its asynchronous work holds on to.
bool is_held(const DraftStep& step, const VirtualRegister& accessed, const Access& access);

// Sets Step::touches_pending_load of every step that reads or writes a register of a load that may be
// unfinished there, and Step::touches_pending_product of every step that uses the accumulator of a product or
// writes its A. Products that continue on an accumulator, and reads of A, do no harm.
std::vector<PendingSpan> mark_pending_registers(Draft* draft, const Flow& flow);

}  // namespace flashback::emulator
