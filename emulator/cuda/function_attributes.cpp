// What CUDA tells of a kernel and lets be set.
#include <cuda.h>

#include "emulator/cuda/process.h"
#include "emulator/machine/address_space.h"

namespace flashback::emulator::cuda {
namespace {

int capability(const Gpu& gpu) {
  return 10 * gpu.capability_major + gpu.capability_minor;
}

}  // namespace

int Function::attribute(int id) {
  if (const auto found = set_.find(id); found != set_.end()) return found->second;
  const Program& program = this->program();
  switch (id) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return program.max_threads != 0 ? static_cast<int>(program.max_threads) : 1024;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(program.static_shared_bytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return static_cast<int>(program.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:  // what the machine gives a thread: no assembler has counted what it
                                      // needs
      return static_cast<int>(program.registers_at_launch);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return capability(process().gpu);
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return std::max(
          0, static_cast<int>(kSharedBytesWithoutOptIn) - static_cast<int>(program.static_shared_bytes));
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return -1;  // no preference
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return static_cast<int>(program.required_cluster[id - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH]);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return 0;
    default:
      refuse(Error::kInvalidValue);
  }
}

void Function::set_attribute(int id, int value) {
  switch (id) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      require(value >= 0 && value <= static_cast<int>(kSharedLimit - program().static_shared_bytes));
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      require(value >= -1 && value <= 100);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      require(value >= 0);
      break;
    default:
      refuse(Error::kInvalidValue);
  }
  set_[id] = value;
}

}  // namespace flashback::emulator::cuda
