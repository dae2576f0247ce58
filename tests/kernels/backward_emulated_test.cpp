// The compiled kernels, run by the emulator from their PTX: right against double precision, the same bits in
// all variants.
#include <gtest/gtest.h>

#include <memory>

#include "emulator/workbench.h"
#include "tests/kernels/backward_run.h"

namespace flashback::testing {

void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.batch << " x " << s.heads << ", " << s.q_rows << " x " << s.k_rows
       << (s.causal ? ", causal" : "");
}

namespace {

constexpr const char* kVariants[] = {"split_warp", "split_cta", "aliased_warp", "aliased_cta"};

class BackwardEmulated : public ::testing::TestWithParam<Shape> {
 protected:
  void expect_right(const Inputs& in) {
    const Shape& s = GetParam();
    const Exact exact = reference(s, in, false), narrowed = reference(s, in, true);
    const Gradients first = run(*bench_, s, in, kVariants[0]);
    EXPECT_TRUE(close(first.dq, exact.dq, narrowed.dq)) << "dq";
    EXPECT_TRUE(close(first.dk, exact.dk, narrowed.dk)) << "dk";
    EXPECT_TRUE(close(first.dv, exact.dv, narrowed.dv)) << "dv";
    for (const char* variant : kVariants) EXPECT_TRUE(run(*bench_, s, in, variant) == first) << variant;
  }

  std::unique_ptr<Workbench> bench_ = emulator::make_workbench({});
};

TEST_P(BackwardEmulated, IsRightInEveryVariant) {
  expect_right(make_inputs(GetParam(), 1));
}

// exp2 of a masked score less lse overflows: masked elements must be zeros by selection.
TEST_P(BackwardEmulated, IsRightWhenAllScoresAreLow) {
  expect_right(make_inputs(GetParam(), 2, -100));
}

TEST_P(BackwardEmulated, IsRightWhenAllScoresAreHigh) {
  expect_right(make_inputs(GetParam(), 3, 100));
}

INSTANTIATE_TEST_SUITE_P(Dense, BackwardEmulated,
                         ::testing::Values(Shape{1, 1, 128, 128, false}, Shape{1, 1, 256, 128, false},
                                           Shape{1, 1, 128, 256, false}, Shape{2, 3, 384, 256, false},
                                           Shape{1, 1, 1, 1, false}, Shape{1, 2, 65, 193, false},
                                           Shape{1, 2, 257, 127, false}, Shape{1, 1, 512, 1, false}));
INSTANTIATE_TEST_SUITE_P(Causal, BackwardEmulated,
                         ::testing::Values(Shape{1, 1, 128, 128, true}, Shape{1, 1, 512, 512, true},
                                           Shape{1, 2, 1, 1, true}, Shape{1, 2, 1, 300, true},
                                           Shape{1, 2, 300, 1, true}, Shape{2, 2, 193, 400, true},
                                           Shape{2, 2, 400, 193, true}, Shape{1, 1, 129, 127, true},
                                           Shape{1, 1, 1000, 1000, true}));

}  // namespace
}  // namespace flashback::testing
