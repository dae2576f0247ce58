// PTX as loaded: the variables of its global and constant memory, and its entries, decoded at first use.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "device/status.h"
#include "emulator/machine/global_memory.h"
#include "emulator/program/module_memory.h"
#include "emulator/program/program.h"
#include "emulator/ptx/module.h"

namespace flashback::emulator {

class LoadedModule {
 public:
  // Copies the text. Its variables have their initial values.
  static Status load(std::string_view ptx, std::unique_ptr<LoadedModule>* module);

  std::string_view text() const { return syntax_->text; }
  std::string_view target() const { return syntax_->target; }  // "sm_100a"
  std::vector<std::string_view> entries() const;
  // The program stays with the module.
  Status program(std::string_view entry, const Program** program);

  // A variable of global or constant memory by its name in the PTX; empty when there is none.
  GlobalMemory::Range variable(std::string_view name) const { return range_of(memory_->find(name)); }
  // The variable that holds the byte at `address`; empty when none does.
  GlobalMemory::Range holder(Address address) const { return range_of(memory_->holder(address)); }

 private:
  LoadedModule() = default;
  static GlobalMemory::Range range_of(std::span<std::byte> bytes) {
    const auto begin = reinterpret_cast<Address>(bytes.data());
    return {begin, begin + bytes.size()};
  }

  std::unique_ptr<ptx::Module> syntax_;
  std::unique_ptr<ModuleMemory> memory_;
  std::mutex mutex_;  // of programs_
  std::map<std::string, std::unique_ptr<Program>, std::less<>> programs_;
};

}  // namespace flashback::emulator
