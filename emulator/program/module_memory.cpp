#include "emulator/program/module_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace flashback::emulator {
namespace {

std::uint64_t address_of(std::span<const std::byte> memory) {
  return reinterpret_cast<std::uint64_t>(memory.data());
}

}  // namespace

ModuleMemory::ModuleMemory(const ptx::Module& module, std::string* error) {
  for (const ptx::Variable& variable : module.variables) {
    if (!is_of_module(variable.space) || variable.is_extern || variable.bytes == 0) continue;
    blocks_.emplace_back(static_cast<std::byte*>(::operator new(variable.bytes, kAlignment)));
    const std::span<std::byte> memory(blocks_.back().get(), variable.bytes);
    // What has no initial value is zero, as CUDA C++ has it.
    const auto rest = std::copy(variable.initial.begin(), variable.initial.end(), memory.begin());
    std::fill(rest, memory.end(), std::byte{0});
    by_name_.emplace(variable.name, memory);
    by_address_.emplace(address_of(memory), memory);
  }
  for (const ptx::Variable& variable : module.variables) {
    if (*error = relocate(variable); !error->empty()) return;
  }
}

// Addresses in initialisers, now that every variable has its own.
std::string ModuleMemory::relocate(const ptx::Variable& variable) {
  const std::span<std::byte> memory = find(variable.name);
  for (const ptx::Relocation& relocation : variable.relocations) {
    const std::span<std::byte> target = find(relocation.name);
    if (target.empty()) {
      return fmt::format(
          "PTX line {}: the initial value of `{}` is the address of `{}`, which is no variable of this "
          "module in "
          "global or constant memory",
          variable.at.line, variable.name, relocation.name);
    }
    const std::uint64_t address = address_of(target) + std::uint64_t(relocation.addend);
    std::memcpy(memory.data() + relocation.offset, &address, sizeof address);
  }
  return {};
}

std::span<std::byte> ModuleMemory::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::span<std::byte>() : found->second;
}

std::span<std::byte> ModuleMemory::holder(std::uint64_t address) const {
  auto after = by_address_.upper_bound(address);
  if (after == by_address_.begin()) return {};
  const std::span<std::byte> memory = std::prev(after)->second;
  return address - address_of(memory) < memory.size() ? memory : std::span<std::byte>();
}

}  // namespace flashback::emulator
