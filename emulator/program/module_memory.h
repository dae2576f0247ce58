// The variables of a module in global and constant memory, from its load to its end: each in host memory of
// its own, with its initial value, at an address that programs may hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/ptx/module.h"

namespace flashback::emulator {

class ModuleMemory {
 public:
  // Lays out the variables and gives them their initial values. An initialiser that names what is no variable
  // of this memory leaves a sentence in `error`.
  ModuleMemory(const ptx::Module& module, std::string* error);

  // The variable's memory; empty when the module has none of that name (or it is extern, shared or local).
  std::span<std::byte> find(std::string_view name) const;
  std::uint64_t address(std::string_view name) const {
    return reinterpret_cast<std::uint64_t>(find(name).data());
  }
  // The variable that holds the byte at `address`; empty when none does.
  std::span<std::byte> holder(std::uint64_t address) const;

 private:
  struct Release {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  static constexpr std::align_val_t kAlignment{4096};  // the strictest that the parser accepts

  std::string relocate(const ptx::Variable& variable);

  std::vector<std::unique_ptr<std::byte, Release>> blocks_;
  std::unordered_map<std::string_view, std::span<std::byte>> by_name_;  // names lie in the module's text
  std::map<std::uint64_t, std::span<std::byte>> by_address_;
};

}  // namespace flashback::emulator
