// What judge_sink lets through, and what it does not.
#include "attention/sink_tolerance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/reference/rounding.h"

namespace flashback {
namespace {

using namespace reference;

// Two packed sequences of two heads, with rows between them that take no part.
struct Given {
  Question question = {.shape = {2, 2, 2, 130, 100, 64},
                       .mask = Mask{20, 0},
                       .scale = 0.125,
                       .q_rows = {{0, 50}, {60, 70}},
                       .k_rows = {{0, 40}, {40, 60}},
                       .q_packed = true,
                       .k_packed = true};
  Inputs inputs;
  std::vector<float> lse, out;
  Answer<double> exact;

  Given() {
    Shape rows = question.shape;
    rows.batch = 1;
    inputs = make_inputs(Data::kNormal, rows, Dtype::kBf16, question.scale, 1);
    inputs.dlse = make_dlse(2 * 130, 1);
    inputs.sink = make_sink(2, 1);
    exact = reference::exact(question, inputs, 1);
    out = stored(exact.out, Dtype::kBf16);
    lse.assign(exact.lse.begin(), exact.lse.end());
  }

  // As a kernel sums: fp32 throughout.
  float term(std::int64_t row, std::int64_t head) const {
    float delta = 0;
    for (std::int64_t c = 0; c < 64; ++c) {
      const auto at = static_cast<std::size_t>((row * 2 + head) * 64 + c);
      delta += inputs.dout[at] * out[at];
    }
    const auto number = static_cast<std::size_t>(head * 130 + row);
    return -std::exp2((inputs.sink[static_cast<std::size_t>(head)] - lse[number]) * 1.4426950408889634f) *
           (delta - inputs.dlse[number]);
  }
  std::vector<float> sums() const {
    std::vector<float> sums(2);
    for (std::int64_t head = 0; head < 2; ++head) {
      for (const Rows& rows : question.q_rows) {
        for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row)
          sums[static_cast<std::size_t>(head)] += term(row, head);
      }
    }
    return sums;
  }
  Verdict judge(const std::vector<float>& dsink) const {
    return judge_sink(dsink, question, inputs, lse, out);
  }
};

TEST(SinkTolerance, SumsInFp32AreRight) {
  const Given given;
  const Verdict verdict = given.judge(given.sums());
  EXPECT_TRUE(verdict.ok) << verdict.sentence;
  EXPECT_GT(verdict.max_abs, 0);
  EXPECT_LT(verdict.rel, 1e-6);
}

// The limit is a small part of any row's own term but the smallest.
TEST(SinkTolerance, AMissingRowIsFound) {
  const Given given;
  int found = 0, rows = 0;
  for (const std::int64_t row : {0, 7, 30, 49, 60, 99, 129}) {
    std::vector<float> dsink = given.sums();
    dsink[1] -= given.term(row, 1);
    const Verdict verdict = given.judge(dsink);
    found += !verdict.ok;
    ++rows;
    EXPECT_EQ(verdict.worst[2], 1) << verdict.sentence;
  }
  EXPECT_EQ(found, rows);
}

// As where what a row adds goes through 16 bit.
TEST(SinkTolerance, RoundedTermsAreFound) {
  const Given given;
  for (std::int64_t head : {0, 1}) {
    std::vector<float> dsink = given.sums();
    for (const Rows& rows : given.question.q_rows) {
      for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row) {
        const float term = given.term(row, head);
        dsink[static_cast<std::size_t>(head)] += round_to(Dtype::kBf16, term) - term;
      }
    }
    const Verdict verdict = given.judge(dsink);
    EXPECT_FALSE(verdict.ok) << verdict.max_abs << " is below " << verdict.limit;
  }
}

TEST(SinkTolerance, ANumberThatIsNoneIsWrong) {
  const Given given;
  for (std::size_t head : {0, 1}) {
    std::vector<float> dsink = given.sums();
    dsink[head] = NAN;
    const Verdict verdict = given.judge(dsink);
    EXPECT_FALSE(verdict.ok);
    EXPECT_EQ(verdict.worst[2], static_cast<std::int64_t>(head));
  }
}

TEST(SinkTolerance, RowsWithoutKeysHaveTheirDlse) {
  Given given;
  const std::size_t number = 130 + 5;  // of head 1
  std::vector<float> dsink = given.sums();
  dsink[1] -= given.term(5, 1);
  dsink[1] += given.inputs.dlse[number];
  given.lse[number] = -INFINITY;
  EXPECT_TRUE(given.judge(dsink).ok) << given.judge(dsink).sentence;
}

}  // namespace
}  // namespace flashback
