// All memory that kernels may touch: what the program allocates, registers, and the variables of its modules.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <shared_mutex>

#include "emulator/machine/global_memory.h"
#include "emulator/machine/loaded_module.h"

namespace flashback::emulator::cuda {

enum class MemoryKind {
  kDevice,
  kManaged,
  kPinned,      // host memory that CUDA allocated
  kRegistered,  // host memory of the program's own
  kVariable,    // of a module
};

struct Block {
  GlobalMemory::Range range;
  MemoryKind kind;
  unsigned flags;  // of the call that made it
};

class Memory final : public GlobalMemory {
 public:
  explicit Memory(std::size_t device_bytes) : device_bytes_(device_bytes) {}

  // Kernels see all of it; it starts as 0xff bytes. Refuses kOutOfMemory beyond the GPU's memory, and beyond
  // the host's.
  void* allocate(std::size_t bytes, MemoryKind kind, unsigned flags = 0);
  // Refuses an address that is not the start of a block which `allocate` made as host (pinned) or device
  // memory.
  void release(void* address, bool host);
  void register_host(void* address, std::size_t bytes, unsigned flags);
  void unregister_host(void* address);
  void add_variables(const LoadedModule* module);
  void remove_variables(const LoadedModule* module);

  // The block that holds the byte at `address`.
  std::optional<Block> find(const void* address) const;
  Range range_of(Address address) const override;
  std::size_t allocated_bytes() const { return allocated_bytes_; }  // of device and managed memory
  std::size_t available_bytes() const { return device_bytes_ - allocated_bytes_; }

 private:
  std::optional<Block> find(Address address) const;

  const std::size_t device_bytes_;
  std::atomic<std::size_t> allocated_bytes_{0};
  mutable std::shared_mutex mutex_;  // kernels look while other threads of the program allocate
  std::map<Address, Block> blocks_;
  std::set<const LoadedModule*> modules_;
};

// Bytes from one row to the next where CUDA chooses: rows start on multiples of 512.
constexpr std::size_t row_pitch(std::size_t width) {
  return (width + 511) / 512 * 512;
}

}  // namespace flashback::emulator::cuda
