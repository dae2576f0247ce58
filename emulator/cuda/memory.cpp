#include "emulator/cuda/memory.h"

#include <fmt/format.h>

#include <iterator>
#include <mutex>

#include "emulator/cuda/error.h"
#include "emulator/machine/guarded_pages.h"

namespace flashback::emulator::cuda {
namespace {

Address address_of(const void* pointer) {
  return reinterpret_cast<Address>(pointer);
}

bool is_on_device(MemoryKind kind) {
  return kind == MemoryKind::kDevice || kind == MemoryKind::kManaged;
}

}  // namespace

void* Memory::allocate(std::size_t bytes, MemoryKind kind, unsigned flags) {
  const std::unique_lock lock(mutex_);
  if (is_on_device(kind)) require(bytes <= available_bytes(), Error::kOutOfMemory);
  std::byte* memory = map_guarded_pages(bytes);
  if (memory == nullptr) {
    refuse(Error::kOutOfMemory,
           fmt::format("this machine has no {} bytes for an allocation of the program", bytes));
  }
  const Address begin = address_of(memory);
  blocks_.emplace(begin, Block{{begin, begin + bytes}, kind, flags});
  if (is_on_device(kind)) allocated_bytes_ += bytes;
  return memory;
}

void Memory::release(void* address, bool host) {
  const std::unique_lock lock(mutex_);
  const auto found = blocks_.find(address_of(address));
  require(found != blocks_.end());
  const Block block = found->second;
  require(host ? block.kind == MemoryKind::kPinned : is_on_device(block.kind));
  blocks_.erase(found);
  if (!host) allocated_bytes_ -= block.range.bytes();
  unmap_guarded_pages(static_cast<std::byte*>(address), block.range.bytes());
}

void Memory::register_host(void* address, std::size_t bytes, unsigned flags) {
  require(address != nullptr && bytes != 0);
  const Address begin = address_of(address);
  require(!find(begin) && !find(begin + bytes - 1), Error::kHostMemoryAlreadyRegistered);
  const std::unique_lock lock(mutex_);
  blocks_.emplace(begin, Block{{begin, begin + bytes}, MemoryKind::kRegistered, flags});
}

void Memory::unregister_host(void* address) {
  const std::unique_lock lock(mutex_);
  const auto found = blocks_.find(address_of(address));
  require(found != blocks_.end() && found->second.kind == MemoryKind::kRegistered,
          Error::kHostMemoryNotRegistered);
  blocks_.erase(found);
}

void Memory::add_variables(const LoadedModule* module) {
  const std::unique_lock lock(mutex_);
  modules_.insert(module);
}

void Memory::remove_variables(const LoadedModule* module) {
  const std::unique_lock lock(mutex_);
  modules_.erase(module);
}

std::optional<Block> Memory::find(const void* address) const {
  return find(address_of(address));
}

std::optional<Block> Memory::find(Address address) const {
  const std::shared_lock lock(mutex_);
  if (const auto after = blocks_.upper_bound(address); after != blocks_.begin()) {
    const Block& block = std::prev(after)->second;
    if (address < block.range.end) return block;
  }
  for (const LoadedModule* module : modules_) {
    if (const Range variable = module->holder(address); variable.bytes() != 0) {
      return Block{variable, MemoryKind::kVariable, 0};
    }
  }
  return std::nullopt;
}

GlobalMemory::Range Memory::range_of(Address address) const {
  const std::optional<Block> block = find(address);
  return block ? block->range : Range{};
}

}  // namespace flashback::emulator::cuda
