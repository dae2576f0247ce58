// The basic blocks of a draft and who follows whom.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/program/draft.h"

namespace flashback::emulator {

struct Flow {
  struct Block {
    std::uint32_t begin = 0, end = 0;  // steps
    std::vector<std::uint32_t> next;   // blocks
  };
  explicit Flow(const Draft& draft);

  std::vector<Block> blocks;
};

}  // namespace flashback::emulator
