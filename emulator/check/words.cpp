#include "emulator/check/words.h"

#include <algorithm>
#include <bit>

#include "emulator/machine/describe.h"

namespace flashback::emulator::checking {
namespace {

// "3", "0 to 31", or bits where they have gaps.
std::string range_words(LaneMask lanes) {
  const int first = std::countr_zero(lanes), last = 31 - std::countl_zero(lanes);
  if (std::popcount(lanes) != last - first + 1) return fmt::format("{:#010x}", lanes);
  return first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
}

std::string bytes_words(std::uint64_t first, std::uint64_t last) {
  return first == last ? fmt::format("byte {:#x}", first) : fmt::format("bytes {:#x} to {:#x}", first, last);
}

}  // namespace

std::string cta_words(const Cta& cta) {
  constexpr std::size_t kMostCharacters = 100;  // of a name; templates of thousands are about
  const Dim3 at = cta.index();
  std::string name = cta.launch().program->name;
  if (name.size() > kMostCharacters) name = name.substr(0, kMostCharacters) + "...";
  return fmt::format("{}, CTA ({}, {}, {})", name, at.x, at.y, at.z);
}

std::string lanes_words(Agent first, LaneMask lanes) {
  if (lanes == kAllLanes) return fmt::format("warp {}", first / 32);
  return fmt::format("warp {} (lane{} {})", first / 32, std::has_single_bit(lanes) ? "" : "s",
                     range_words(lanes));
}

std::string operation_words(const OperationState& operation) {
  const char* names[] = {"a bulk load",
                         "a bulk store",
                         "a bulk reduction",
                         "a cp.async",
                         "an arrival",
                         "a tcgen05.mma",
                         "a tcgen05.commit",
                         "a wgmma.mma_async",
                         "a tcgen05.ld",
                         "a tcgen05.st",
                         "a copy to a peer CTA",
                         "a store to a peer CTA",
                         "a clusterlaunchcontrol.try_cancel"};
  return fmt::format("{} of warp {}", names[static_cast<int>(operation.kind)], operation.first / 32);
}

std::string step_words(const Program& program, const Step& step) {
  return place_of(program, step);
}

std::string shared_place(std::uint64_t first, std::uint64_t last) {
  return bytes_words(first, last) + " of shared memory";
}

std::string global_place(std::uint64_t first, std::uint64_t last) {
  return bytes_words(first, last) + " of global memory";
}

std::string tensor_place(std::uint64_t first, std::uint64_t last, const LaneMask (&lanes)[4]) {
  std::string text =
      first == last ? fmt::format("column {}", first) : fmt::format("columns {} to {}", first, last);
  int lowest = 128, highest = -1;
  for (int q = 0; q < 4; ++q) {
    if (lanes[q] == 0) continue;
    lowest = std::min(lowest, 32 * q + std::countr_zero(lanes[q]));
    highest = std::max(highest, 32 * q + 31 - std::countl_zero(lanes[q]));
  }
  return text + fmt::format(", lanes {} to {} of tensor memory", lowest, highest);
}

std::string mbarrier_words(std::uint32_t address) {
  return fmt::format("the mbarrier at shared address {:#x}", address);
}

std::string source_key(const Program& program, const Step* step) {
  if (step == nullptr) return "";
  const auto at = static_cast<std::size_t>(step - program.code.data());
  if (at >= program.source.size() || program.source[at].line == 0) return fmt::format("{}", step->line);
  std::string key;
  Program::SourceLine line = program.source[at];
  while (true) {
    key += fmt::format("{}:{},", line.file, line.line);
    if (line.caller == 0) return key;
    line = program.callers[line.caller - 1];
  }
}

std::string end_words(Operation::Kind kind, bool writes, bool same_warp) {
  switch (kind) {
    case Operation::Kind::kBulkLoad:
      return "A wait for the mbarrier phase that the load completes would.";
    case Operation::Kind::kPeerCopy:
    case Operation::Kind::kPeerStore:
    case Operation::Kind::kLaunchRequest:
      return "A wait for the mbarrier phase that it completes would.";
    case Operation::Kind::kBulkStore:
    case Operation::Kind::kBulkReduce:
      return writes ? "A cp.async.bulk.wait_group by the thread that issued it would."
                    : "A cp.async.bulk.wait_group.read by the thread that issued it, and a barrier, would.";
    case Operation::Kind::kCopy:
    case Operation::Kind::kCopyArrival:
      return "A cp.async.wait_group by the threads that issued it, or their cp.async.mbarrier.arrive, would.";
    case Operation::Kind::kProduct:
    case Operation::Kind::kCommit:
      return "A tcgen05.commit behind it and a wait for its mbarrier would.";
    case Operation::Kind::kWarpProduct:
      return "A wgmma.wait_group that covers it would.";
    case Operation::Kind::kTensorLoad:
      return same_warp ? "tcgen05.wait::ld would."
                       : "tcgen05.wait::ld, then a barrier that both warps pass, would.";
    case Operation::Kind::kTensorStore:
      return same_warp ? "tcgen05.wait::st would."
                       : "tcgen05.wait::st, then an arrival that the second waits for, would.";
  }
  return "";
}

}  // namespace flashback::emulator::checking
