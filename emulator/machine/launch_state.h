// What all CTAs of one launch share. Constant while they run, but for the order of reductions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/printed.h"
#include "emulator/machine/reduction_order.h"
#include "emulator/machine/registers.h"
#include "emulator/program/program.h"

namespace flashback::emulator {

struct LaunchState {
  const Program* program = nullptr;
  Dim3 grid, cluster, block;  // the grid in CTAs
  std::uint32_t dynamic_shared_bytes = 0;
  const std::byte* parameters = nullptr;  // Program::parameter_bytes of them
  const GlobalMemory* memory = nullptr;
  Schedule schedule;
  Observer* observer = nullptr;
  int multiprocessors = 1;
  StartRegisters registers;
  ReductionOrder* reductions = nullptr;  // null: reductions take effect at once
  Printed* printed = nullptr;

  std::uint32_t threads() const { return block.x * block.y * block.z; }
  std::uint32_t warps() const { return (threads() + 31) / 32; }
  std::uint32_t cluster_size() const { return cluster.x * cluster.y * cluster.z; }
  Dim3 clusters() const { return {grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z}; }
  // Offset of dynamic shared memory from the start of the shared window: 1 KiB, so that every swizzle fits.
  std::uint32_t dynamic_shared_offset() const { return (program->static_shared_bytes + 1023) / 1024 * 1024; }
  std::uint32_t shared_bytes() const {
    return dynamic_shared_bytes == 0 ? program->static_shared_bytes
                                     : dynamic_shared_offset() + dynamic_shared_bytes;
  }
  // Instructions before a warp yields although nothing stops it: spin loops exist.
  std::uint32_t slice() const { return schedule.slice != 0 ? schedule.slice : 4096; }
};

}  // namespace flashback::emulator
