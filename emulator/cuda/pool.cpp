#include "emulator/cuda/pool.h"

#include <cuda.h>

#include <cstring>

#include "emulator/cuda/process.h"

namespace flashback::emulator::cuda {
namespace {

bool is_switch(int id) {
  return id == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
         id == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
         id == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

void Pool::set(int id, const void* value) {
  require(value != nullptr && (is_switch(id) || id == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
  std::uint64_t bits = 0;
  std::memcpy(&bits, value, is_switch(id) ? sizeof(int) : sizeof bits);
  const std::lock_guard lock(mutex_);
  set_[id] = bits;
}

void Pool::get(int id, void* value) {
  require(value != nullptr);
  std::uint64_t bits = is_switch(id) ? 1 : 0;
  if (id == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT || id == CU_MEMPOOL_ATTR_USED_MEM_CURRENT) {
    bits = process().memory.allocated_bytes();
  } else {
    require(is_switch(id) || id == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, Error::kNotSupported);
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = set_.find(id); found != set_.end()) bits = found->second;
  std::memcpy(value, &bits, is_switch(id) ? sizeof(int) : sizeof bits);
}

void Pools::destroy(const void* handle) {
  require(handle != default_);
  if (current_ == handle) current_ = default_;
  pools_.remove(handle);
}

}  // namespace flashback::emulator::cuda
