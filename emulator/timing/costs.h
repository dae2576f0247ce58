// What things cost on one SM, in cycles unless said. Every number has a source and a range; those that no
// source settles are as wide as what is known of them (docs/prediction.md).
#pragma once

#include <span>

#include "device/device.h"

namespace flashback::emulator::timing {

struct Costs {
  // Cycles for which a warp instruction occupies its pipe of the sub-partition.
  double fma, fma2, integer, alu, special, convert, transferred;
  // From issue to the first instruction that can use the result, beyond that.
  double arithmetic_latency, special_latency;

  // Shared memory. Ports: 1, all traffic queues for one; 2, operands of the tensor core have their own.
  double shared_ports, shared_bytes;  // bytes a cycle of a port
  double register_bytes;              // a cycle, between shared memory and registers
  double shared_latency, fence, warp_sync;
  double global_latency;

  // Barriers. Named: after the last arrival, plus some for each warp of it. mbarrier: from arrival to the
  // phase, from the phase to the waiter, and the question when the answer is there already.
  double barrier, barrier_warp;
  double arrive, wake, ask;

  // Tensor core: from issue to start, from the end of a product to the mbarrier, N/2 a step of 16 or what
  // the narrow shapes take at least.
  double product_issue, commit, product_floor;
  // wgmma: from the end of a group to its waiters.
  double group_end;

  // Tensor memory, of one sub-partition: bytes a cycle, and latencies.
  double tensor_read_bytes, tensor_write_bytes, tensor_load_latency, tensor_store_latency;

  // Bulk copies: latency of a load that hits L2, of small ones, bytes a cycle into an SM; of reductions bytes
  // a cycle that an SM gets of the chip's atomics, those that leave it while others do not use theirs, if
  // that is more, and their latency.
  double copy_latency, small_copy_latency, copy_bytes;
  double reduce_bytes, reduce_alone_bytes, reduce_latency;

  // Launch: until the first instruction, allocation included. The chip: SMs, clock, memory.
  double launch;
  double multiprocessors, gigahertz, memory_terabytes;
};

struct Constant {
  const char* name;
  double Costs::*value;
  double low, nominal, high;
  // Open: no source settles it, and the interval of a prediction goes over low, nominal and high.
  bool open;
  const char* source;
};

// All fields of Costs, in the order of the table of docs/prediction.md.
std::span<const Constant> constants(Arch arch);
Costs nominal(Arch arch);

}  // namespace flashback::emulator::timing
