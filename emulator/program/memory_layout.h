// Where an entry's variables lie: shared ones in the CTA's static shared memory, local ones and the
// parameters of calls in each lane's own.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "emulator/ptx/module.h"

namespace flashback::emulator {

class MemoryLayout {
 public:
  // The offset of a shared or local variable, or of the parameter of a call, in its memory; places it at
  // first use.
  std::uint64_t offset(const ptx::Variable& variable) {
    auto [place, fresh] = offsets_.try_emplace(&variable, 0);
    if (fresh) {
      std::uint64_t& end = variable.space == ptx::Space::kShared ? shared_bytes_ : local_bytes_;
      place->second = (end + variable.alignment - 1) / variable.alignment * variable.alignment;
      end = place->second + variable.bytes;
    }
    return place->second;
  }
  std::uint64_t shared_bytes() const { return shared_bytes_; }
  std::uint64_t local_bytes() const { return local_bytes_; }

 private:
  std::unordered_map<const ptx::Variable*, std::uint64_t> offsets_;
  std::uint64_t shared_bytes_ = 0, local_bytes_ = 0;
};

}  // namespace flashback::emulator
