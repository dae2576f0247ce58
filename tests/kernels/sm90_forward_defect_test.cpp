// That the tests of the Hopper forward kernel can fail: single defects, which the comparison or the emulator
// must notice.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/kernels/forward_run.h"

namespace flashback::testing {
namespace {

// Replaces `from` in the text wherever it stands.
auto replace(const std::string& from, const std::string& to) {
  return [=](std::string& ptx) {
    int replaced = 0;
    for (std::size_t at = ptx.find(from); at != std::string::npos; at = ptx.find(from, at + to.size())) {
      ptx.replace(at, from.size(), to);
      ++replaced;
    }
    ASSERT_GT(replaced, 0) << '"' << from << "\" does not occur";
  };
}

class ForwardSm90Defect : public ::testing::Test {
 protected:
  bool noticed(ForwardDefect defect) {
    for (const auto completion :
         {emulator::Completion::kEager, emulator::Completion::kLazy, emulator::Completion::kRandom}) {
      const Outputs got = run_forward(*bench_of(Arch::kSm90, completion, 1), shape_, in_, 2, 1, &defect);
      if (!defect.status.ok() || !judge_.right(got)) return true;
    }
    return false;
  }
  bool noticed_in(const std::function<void(std::string&)>& ptx) { return noticed({ptx, {}, {}}); }

  const Shape shape_ = {1, 1, 500, 1300, false};
  const Inputs in_ = make_inputs(shape_, 3);
  const Judge judge_{shape_, in_};
};

TEST_F(ForwardSm90Defect, NoneIsNotNoticed) {
  EXPECT_FALSE(noticed({}));
}

TEST_F(ForwardSm90Defect, AnOperandThatIsNotTransposed) {
  EXPECT_TRUE(noticed_in(replace("accumulate, 1, 1, 1;", "accumulate, 1, 1, 0;")));
}

TEST_F(ForwardSm90Defect, AProductThatIsNotWaitedFor) {
  EXPECT_TRUE(noticed_in(replace("wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;")));
  EXPECT_TRUE(noticed_in(replace("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 2;")));
}

TEST_F(ForwardSm90Defect, ARowMaximumOfOneThreadOnly) {
  EXPECT_TRUE(noticed_in(replace("shfl.sync.bfly.b32", "shfl.sync.idx.b32")));
}

TEST_F(ForwardSm90Defect, ATicketCounterThatDoesNotStartAtZero) {
  EXPECT_TRUE(noticed({{}, [](common::ForwardParameters& p) { *p.next_ticket = 1; }, {}}));
}

}  // namespace
}  // namespace flashback::testing
