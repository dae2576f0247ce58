// Which section of a recording must begin before which, however long everything takes: because one warp does
// both, or because a warp has waited for what the other did. All else is a matter of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/timing/recording.h"

namespace flashback::emulator::timing {

// Of each warp, how many of its sections have begun.
using Begun = std::vector<std::uint32_t>;

class Dependences {
 public:
  explicit Dependences(const Recording& recording);

  // Whether section i of warp w, counted in the order in which the warp begins them, must have begun when
  // section j of warp v does.
  bool before(std::uint16_t w, std::uint32_t i, std::uint16_t v, std::uint32_t j) const {
    return begun_[v][j][w] > i;
  }
  std::size_t sections(std::uint16_t w) const { return begun_[w].size(); }
  // Not empty where the recording cannot be played to its end.
  const std::string& error() const { return error_; }

 private:
  std::vector<std::vector<Begun>> begun_;  // what surely has where a warp's section begins, itself included
  std::string error_;
};

}  // namespace flashback::emulator::timing
