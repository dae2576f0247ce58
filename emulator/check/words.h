// The words of findings: who, where, and what would help.
#pragma once

#include <fmt/format.h>

#include <string>

#include "emulator/check/cta_state.h"

namespace flashback::emulator::checking {

std::string cta_words(const Cta& cta);  // "backward_..., CTA (0, 1, 0)"
std::string lanes_words(Agent first, LaneMask lanes);
std::string operation_words(const OperationState& operation);
std::string step_words(const Program& program, const Step& step);
std::string shared_place(std::uint64_t first, std::uint64_t last);
std::string global_place(std::uint64_t first, std::uint64_t last);
std::string tensor_place(std::uint64_t first, std::uint64_t last, const LaneMask (&lanes)[4]);
std::string mbarrier_words(std::uint32_t address);
// Tells steps apart by the CUDA lines they come from, or by their PTX line where those are unknown.
std::string source_key(const Program& program, const Step* step);
// How the end of an operation becomes known, in its own warp or in another.
std::string end_words(Operation::Kind kind, bool writes, bool same_warp);

}  // namespace flashback::emulator::checking
