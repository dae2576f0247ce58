#include "emulator/cuda/occupancy.h"

#include <cuda.h>

#include <algorithm>

#include "emulator/cuda/process.h"
#include "emulator/machine/address_space.h"
#include "emulator/machine/grid.h"

namespace flashback::emulator::cuda {
namespace {

constexpr int kSharedBytesOfMultiprocessor = 228 * 1024;

}  // namespace

int resident_ctas(Function* function, std::uint32_t threads, std::size_t shared_bytes) {
  require(threads != 0);
  const Program& program = function->program();
  const std::uint32_t most = program.max_threads != 0 ? program.max_threads : 1024;
  if (threads > most || program.static_shared_bytes + shared_bytes > kSharedLimit) return 0;
  LaunchState state;
  state.program = &program;
  state.block = {threads, 1, 1};
  state.dynamic_shared_bytes = static_cast<std::uint32_t>(shared_bytes);
  return static_cast<int>(emulator::resident_ctas(state));
}

int resident_clusters(Function* function, std::uint32_t threads, std::size_t shared_bytes,
                      std::uint32_t ctas) {
  require(ctas != 0, Error::kInvalidClusterSize);
  return resident_ctas(function, threads, shared_bytes) * usual_multiprocessors(process().gpu.arch) /
         static_cast<int>(ctas);
}

int largest_cluster(Function* function) {
  return function->attribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) != 0 ? 16 : 8;
}

std::size_t available_shared_bytes(Function* function, std::uint32_t threads, int ctas) {
  require(ctas > 0 && ctas <= resident_ctas(function, threads, 0));
  const int share =
      std::min<int>(kSharedBytesOfMultiprocessor / ctas - static_cast<int>(kSharedBase), kSharedLimit);
  return static_cast<std::size_t>(
      std::max(0, share - static_cast<int>(function->program().static_shared_bytes)));
}

}  // namespace flashback::emulator::cuda
