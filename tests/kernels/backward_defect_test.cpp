// That the tests can fail: single defects, put into the compiled text or the arguments, which the comparison
// with double precision or the emulator itself must notice.
#include <gtest/gtest.h>

#include "emulator/workbench.h"
#include "kernels/tile/descriptor.h"
#include "tests/kernels/backward_run.h"

namespace flashback::testing {
namespace {

using tile::Major;

// Replaces `from` in the text of the entry, everywhere or where it occurs for the `which`-th time.
auto replace(const std::string& entry, const std::string& from, const std::string& to, int which = -1) {
  return [=](std::string& ptx) {
    std::size_t begin = ptx.find(".entry " + entry + "(");
    ASSERT_NE(begin, std::string::npos) << entry;
    const std::size_t end = std::min(ptx.find(".entry ", begin + 1), ptx.size());
    std::string body = ptx.substr(begin, end - begin);
    int found = 0, replaced = 0;
    for (std::size_t at = body.find(from); at != std::string::npos; at = body.find(from, at + 1)) {
      if (which >= 0 && found++ != which) continue;
      body.replace(at, from.size(), to);
      ++replaced;
    }
    ASSERT_GT(replaced, 0) << '"' << from << "\" does not occur in " << entry;
    ptx.replace(begin, end - begin, body);
  };
}

class BackwardDefect : public ::testing::Test {
 protected:
  // True when the defect stops the kernel or makes one of the gradients wrong under one of the schedules.
  bool noticed(const Shape& s, const Inputs& in, const std::string& variant, Defect defect) {
    const Exact exact = reference(s, in, false), narrowed = reference(s, in, true);
    for (const auto completion :
         {emulator::Completion::kEager, emulator::Completion::kLazy, emulator::Completion::kRandom}) {
      emulator::MachineOptions options;
      options.schedule.completion = completion;
      options.schedule.slice = completion == emulator::Completion::kRandom ? 7 : 0;
      const Gradients got = run(*emulator::make_workbench(options), s, in, variant, &defect);
      if (!defect.status.ok() || !close(got.dq, exact.dq, narrowed.dq) ||
          !close(got.dk, exact.dk, narrowed.dk) || !close(got.dv, exact.dv, narrowed.dv)) {
        return true;
      }
    }
    return false;
  }

  const Shape shape_ = {1, 1, 384, 128, false};
  const Inputs in_ = make_inputs(shape_, 1);
};

constexpr char kSplitWarp[] = "backward_sm100_d64_bf16_dense_split_warp";
constexpr char kAliasedWarp[] = "backward_sm100_d64_bf16_dense_aliased_warp";

TEST_F(BackwardDefect, NoneIsNotNoticed) {
  EXPECT_FALSE(noticed(shape_, in_, "split_warp", {}));
}

TEST_F(BackwardDefect, OneBitOfAnInstructionDescriptor) {
  const std::uint32_t right =
      tile::instruction_descriptor(shared::Dtype::kBf16, 128, 64, Major::kOwn, Major::kOwn);
  for (std::uint32_t bit : {7, 10, 15, 16}) {
    const auto ptx = replace(kSplitWarp, std::to_string(right), std::to_string(right ^ 1u << bit));
    EXPECT_TRUE(noticed(shape_, in_, "split_warp", {ptx, {}, {}})) << bit;
  }
}

TEST_F(BackwardDefect, OneBitOfASharedDescriptor) {
  const std::uint64_t right = tile::shared_descriptor(Major::kOwn, 128, 16384);
  for (int bit : {26, 38, 61, 62}) {  // leading and stride offsets, swizzle
    const auto ptx =
        replace(kSplitWarp, std::to_string(right), std::to_string(right ^ std::uint64_t{1} << bit));
    EXPECT_TRUE(noticed(shape_, in_, "split_warp", {ptx, {}, {}})) << bit;
  }
}

TEST_F(BackwardDefect, AStoreOfPToOtherColumnsThanItIsReadFrom) {
  constexpr backward::TensorColumns kColumns = backward::kSplitColumns;
  const auto offset = [](tile::Columns columns) { return ", " + std::to_string(columns.first) + ";"; };
  const auto ptx = replace(kSplitWarp, offset(kColumns.p), offset(kColumns.ds), 0);
  EXPECT_TRUE(noticed(shape_, in_, "split_warp", {ptx, {}, {}}));
}

TEST_F(BackwardDefect, AStoreOfPBeforeSIsReadByAll) {
  EXPECT_TRUE(
      noticed(shape_, in_, "aliased_warp", {replace(kAliasedWarp, "bar.sync 3, 256;", "", 0), {}, {}}));
}

TEST_F(BackwardDefect, ASignalBeforeTheStoreIsDone) {
  EXPECT_TRUE(noticed(shape_, in_, "split_warp",
                      {replace(kSplitWarp, "tcgen05.wait::st.sync.aligned;", ""), {}, {}}));
}

TEST_F(BackwardDefect, ACausalLaunchWithoutMask) {
  const Shape causal = {1, 1, 128, 128, true};
  const Inputs in = make_inputs(causal, 1);
  Shape dense = causal;
  dense.causal = false;
  const Exact exact = reference(causal, in, false), narrowed = reference(causal, in, true);
  EXPECT_FALSE(close(run(*emulator::make_workbench({}), dense, in, "split_warp").dv, exact.dv, narrowed.dv));
}

}  // namespace
}  // namespace flashback::testing
