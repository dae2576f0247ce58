// Functions of one f32, swept over all 2^32 words: a digest for each block of results, kept as
// golden/full_<name>.txt.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/device.h"

namespace flashback::emulator::testing {

inline constexpr std::uint32_t kSweepBlocks = 512;
inline constexpr std::uint32_t kSweepBlockWords = (std::uint64_t{1} << 32) / kSweepBlocks;

// "ex2.approx.ftz.f32", ...
const std::vector<std::string>& swept_functions();

std::string full_sweep_path(const std::string& source, const std::string& function);

// The digests of the given blocks. Several threads ask, each its own workbench.
std::vector<std::uint64_t> sweep_digests(const std::vector<Workbench*>& workbenches,
                                         const std::string& function,
                                         const std::vector<std::uint32_t>& blocks, Status* status);

std::string full_sweep_text(const std::string& machine, const std::vector<std::uint64_t>& digests);
std::vector<std::uint64_t> read_full_sweep(const std::string& path);  // empty where there is no such file

}  // namespace flashback::emulator::testing
