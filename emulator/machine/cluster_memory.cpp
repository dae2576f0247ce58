#include "emulator/machine/cluster_memory.h"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "emulator/machine/address_space.h"

namespace flashback::emulator {
namespace {

constexpr std::size_t kStride = std::size_t{1} << kRankShift;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kSlot = (kSharedBase + kSharedLimit + kPage - 1) / kPage * kPage;

}  // namespace

void ClusterMemory::reserve(std::uint32_t ranks) {
  if (ranks <= ranks_) return;
  release();
  const std::size_t bytes = (ranks - 1) * kStride + kSlot;
  void* mapping = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  window_ = static_cast<std::byte*>(mapping);
  bytes_ = bytes;
  ranks_ = ranks;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (mprotect(window_ + rank * kStride, kSlot, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
}

void ClusterMemory::release() {
  if (window_ != nullptr) munmap(std::exchange(window_, nullptr), bytes_);
  ranks_ = 0;
}

}  // namespace flashback::emulator
