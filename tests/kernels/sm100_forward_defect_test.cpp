// The checker finds nothing in the Blackwell forward kernel; and each of its guards is needed: without it the
// comparison, the emulator or the checker notices.
#include <gtest/gtest.h>

#include <string>

#include "emulator/check/checker.h"
#include "tests/kernels/forward_run.h"

namespace flashback::testing {
namespace {

using emulator::Completion;
using emulator::checking::Checker;
using emulator::checking::Finding;

constexpr Completion kCompletions[] = {Completion::kEager, Completion::kLazy, Completion::kRandom};

class ForwardSm100Check : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Causal, ForwardSm100Check, ::testing::Bool());

// Several items a CTA, one of whose halves is empty.
TEST_P(ForwardSm100Check, FindsNothing) {
  const Shape s = {1, 2, 600, 600, GetParam()};
  const Inputs in = growing_inputs(s, 1);
  const Judge judge(s, in);
  for (const Completion completion : kCompletions) {
    Checker checker(true);
    EXPECT_TRUE(judge.right(run_forward(*bench_of(Arch::kSm100, completion, 3, &checker), s, in, 2, 1)));
    for (const Finding& finding : checker.findings())
      ADD_FAILURE() << finding.rule << " x" << finding.count << ": " << finding.sentence;
  }
}

// Takes what stands from `first` to `last` after each mark of the section, for the `which`-th time, out of
// the dense kernel's text.
auto without(const std::string& section, const std::string& first, const std::string& last, int which) {
  return [=](std::string& ptx) {
    const std::size_t begin = ptx.find(".entry " + forward_kernel(Arch::kSm100).entry(false) + "(");
    ASSERT_NE(begin, std::string::npos);
    const std::string mark = "//@ " + section + "\n";
    int taken = 0;
    for (std::size_t at = ptx.find(mark, begin); at < ptx.find(".entry ", begin + 1);
         at = ptx.find(mark, at + 1)) {
      std::size_t from = at;
      for (int i = 0; i <= which; ++i) from = ptx.find(first, from + 1);
      const std::size_t to = ptx.find(last, from);
      ASSERT_NE(to, std::string::npos);
      ptx.erase(from, to + last.size() - from);
      ++taken;
    }
    ASSERT_GT(taken, 0) << section << " is not marked";
  };
}
auto without_wait(const std::string& section, int which) {
  return without(section, "mbarrier.try_wait", "bra again;", which);
}

struct Question {
  explicit Question(const Shape& s) : shape(s), in(growing_inputs(s, 3)), judge(s, in) {}

  Shape shape;
  Inputs in;
  Judge judge;
};

class ForwardSm100Defect : public ::testing::Test {
 protected:
  bool noticed(ForwardDefect defect) const { return noticed(question_, defect); }
  static bool noticed(const Question& q, ForwardDefect defect) {
    for (const Completion completion : kCompletions) {
      Checker checker(false);
      const Outputs got =
          run_forward(*bench_of(Arch::kSm100, completion, 1, &checker), q.shape, q.in, 1, 1, &defect);
      if (!defect.status.ok() || !checker.findings().empty() || !q.judge.right(got)) return true;
    }
    return false;
  }
  bool noticed_without_wait(const std::string& section, int which) const {
    return noticed({without_wait(section, which), {}, {}});
  }

  const Question question_{{1, 2, 500, 900, false}};
};

TEST_F(ForwardSm100Defect, NoneIsNotNoticed) {
  EXPECT_FALSE(noticed({}));
}

TEST_F(ForwardSm100Defect, AWaitOfTheLoadWarpThatIsLeftOut) {
  // Where items have many tiles the rings of K and V hold the load warp back.
  EXPECT_TRUE(noticed(Question({1, 2, 1500, 100, false}), {without_wait("Q", 0), {}, {}})) << "q_empty";
  EXPECT_TRUE(noticed_without_wait("K, V", 0)) << "k_empty";
  EXPECT_TRUE(noticed_without_wait("K, V", 1)) << "v_empty";
}

TEST_F(ForwardSm100Defect, AWaitOfTheMultiplyWarpThatIsLeftOut) {
  EXPECT_TRUE(noticed_without_wait("P V", 0)) << "o_ready";
  EXPECT_TRUE(noticed_without_wait("P V", 1)) << "p_full";
  EXPECT_TRUE(noticed_without_wait("S", 0)) << "s_empty";
}

TEST_F(ForwardSm100Defect, AWaitOfTheSoftmaxWarpsThatIsLeftOut) {
  EXPECT_TRUE(noticed_without_wait("load S", 0)) << "s_full";
  EXPECT_TRUE(noticed_without_wait("softmax", 0)) << "stats_empty";
  const auto either_way = [](std::string& ptx) {  // the tile is masked, or not
    without_wait("softmax", 2)(ptx);
    without_wait("softmax", 1)(ptx);
  };
  EXPECT_TRUE(noticed({either_way, {}, {}})) << "o_full: P is read";
}

TEST_F(ForwardSm100Defect, AWaitOfTheCorrectWarpsThatIsLeftOut) {
  EXPECT_TRUE(noticed_without_wait("rescale O", 0)) << "stats_full";
  EXPECT_TRUE(noticed_without_wait("rescale O", 1)) << "o_full";
  EXPECT_TRUE(noticed_without_wait("store O", 0)) << "stats_full";
  EXPECT_TRUE(noticed_without_wait("store O", 1)) << "o_full";
}

TEST_F(ForwardSm100Defect, AnOThatIsNotRescaled) {
  EXPECT_TRUE(noticed({without("rescale O", "tcgen05.st.sync", ";", 0), {}, {}}));
}

TEST_F(ForwardSm100Defect, ASignalBeforeTheStoreIsDone) {
  EXPECT_TRUE(noticed({without("store P", "tcgen05.wait::st", ";", 0), {}, {}}));
}

TEST_F(ForwardSm100Defect, ATicketCounterThatDoesNotStartAtZero) {
  EXPECT_TRUE(noticed({{}, [](common::ForwardParameters& p) { *p.next_ticket = 1; }, {}}));
}

}  // namespace
}  // namespace flashback::testing
