#include "emulator/program/flow.h"

namespace flashback::emulator {

Flow::Flow(const Draft& draft) {
  const std::uint32_t count = std::uint32_t(draft.steps.size());
  std::vector<bool> starts(count + 1, false);
  starts[0] = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const DraftStep& step = draft.steps[i];
    if (step.branches) starts[step.step.target] = true;
    if (step.branches || step.ends) starts[i + 1] = true;
  }
  std::vector<std::uint32_t> block_of(count + 1, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (starts[i]) blocks.push_back({i, i, {}});
    block_of[i] = std::uint32_t(blocks.size()) - 1;
    blocks.back().end = i + 1;
  }
  for (Block& block : blocks) {
    const DraftStep& last = draft.steps[block.end - 1];
    if (last.branches) block.next.push_back(block_of[last.step.target]);
    const bool always_leaves = (last.branches || last.ends) && last.step.guard == kNone;
    if (!always_leaves && block.end < count) block.next.push_back(block_of[block.end]);
  }
}

}  // namespace flashback::emulator
