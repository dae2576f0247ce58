// Where a warp is and what it waits for, in words.
#include "emulator/machine/describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/machine/cluster.h"
#include "emulator/machine/cta.h"
#include "emulator/machine/mbarrier.h"

namespace flashback::emulator {
namespace {

std::string name_of(const Program& program, const Program::SourceLine& line) {
  const std::string file = line.file < program.files.size() ? program.files[line.file] : "";
  return fmt::format("{}:{}", file.substr(file.find_last_of('/') + 1), line.line);
}

}  // namespace

std::string place_of(const Program& program, const Step& step) {
  std::string text = fmt::format("PTX line {} `{}`", step.line, program.forms[step.form]);
  const auto at = static_cast<std::size_t>(&step - program.code.data());
  if (at >= program.source.size() || program.source[at].line == 0) return text;
  text += ", " + name_of(program, program.source[at]);
  for (std::uint32_t caller = program.source[at].caller; caller != 0;
       caller = program.callers[caller - 1].caller) {
    text += " in " + name_of(program, program.callers[caller - 1]);
  }
  return text;
}

std::string Cta::where(int warp, const Step& step) const {
  const Program& program = *launch_->program;
  return fmt::format(" (entry {}, CTA ({}, {}, {}), warp {}, {})", program.name, index_.x, index_.y, index_.z,
                     warp, place_of(program, step));
}

std::string Cta::describe(const Wait& wait) const {
  switch (wait.kind) {
    case Wait::Kind::kNothing:
      return "spins";
    case Wait::Kind::kLanes:
      return fmt::format("waits for lanes {:#010x} of its warp", wait.what);
    case Wait::Kind::kBarrier:
      return fmt::format("waits at barrier {}, where {}", wait.what, barriers.describe(wait.what));
    case Wait::Kind::kCluster:
      return fmt::format("waits at the cluster barrier, where {}", cluster_.barrier.describe());
    case Wait::Kind::kMbarrier: {
      auto* word = const_cast<std::byte*>(shared(wait.what));
      return fmt::format(
          "waits for phase parity {} of the mbarrier at shared address {:#x} (offset {}), which is in {}",
          wait.when, wait.what, wait.what - shared_begin_, Mbarrier(word).describe());
    }
    case Wait::Kind::kBulkGroups:
      return fmt::format("waits until at most {} of its bulk groups are pending", wait.what);
    case Wait::Kind::kCopyGroups:
      return fmt::format("waits until at most {} of its cp.async groups are pending", wait.what);
    case Wait::Kind::kRegisters:
      return fmt::format("waits for {} registers a thread", wait.what);
    case Wait::Kind::kWarpgroup:
      return fmt::format("waits for the other warps of warpgroup {} at its fence", wait.what);
    case Wait::Kind::kProducts:
      return fmt::format("waits until the warps of warpgroup {} have committed {} wgmma-groups", wait.what,
                         wait.when);
    case Wait::Kind::kColumns:
      return fmt::format("waits for {} columns of tensor memory", wait.what);
    case Wait::Kind::kPair:
      return fmt::format("waits until a warp of the pair's other CTA, rank {}, does the same", rank_ ^ 1);
  }
  return "";
}

std::string Cta::describe_waits(const std::string& prefix) const {
  const Program& program = *launch_->program;
  if (exited()) return fmt::format("\n  {}has exited.", prefix);
  std::string text;
  for (const Warp& warp : warps_) {
    for (const Warp::Group& group : warp.groups()) {
      const std::string lanes = group.mask == warp.live() ? "" : fmt::format(", lanes {:#010x},", group.mask);
      text += fmt::format("\n  {}warp {}{} at {} {}.", prefix, warp.index(), lanes,
                          place_of(program, program.code[group.pc]), describe(group.wait));
    }
  }
  return text;
}

}  // namespace flashback::emulator
