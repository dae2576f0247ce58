#include "emulator/cuda/limits.h"

#include <cuda.h>

#include "emulator/cuda/error.h"

namespace flashback::emulator::cuda {
namespace {

std::size_t initial(int id) {
  switch (id) {
    case CU_LIMIT_STACK_SIZE:
      return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return 8 << 20;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      return 2048;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return 64;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
      return 0;
    default:
      refuse(Error::kUnsupportedLimit);
  }
}

}  // namespace

std::size_t Limits::get(int id) const {
  const std::size_t value = initial(id);
  const std::lock_guard lock(mutex_);
  const auto found = set_.find(id);
  return found != set_.end() ? found->second : value;
}

void Limits::set(int id, std::size_t value) {
  initial(id);
  const std::lock_guard lock(mutex_);
  set_[id] = value;
}

}  // namespace flashback::emulator::cuda
