#include <vector>

#include "emulator/program/instruction_set.h"

namespace flashback::emulator {

std::span<const std::span<const Row>> instruction_families() {
  static const std::vector<std::span<const Row>> all = {
      integer_rows(), float_rows(),       half_rows(),
      extreme_rows(), approximate_rows(), comparison_rows(),
      convert_rows(), move_rows(),        memory_rows(),
      atomic_rows(),  peer_store_rows(),  launch_control_rows(),
      control_rows(), provided_rows(),    convergence_rows(),
      barrier_rows(), copy_rows(),        tensor_memory_rows(),
      matrix_rows(),  warpgroup_rows(),   matrix_transfer_rows(),
  };
  return all;
}

}  // namespace flashback::emulator
