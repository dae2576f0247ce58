// One forward pass through the C API.
#pragma once

#include "tests/attention/case.h"

namespace flashback::test {

// The values that came back, packed.
struct Outputs {
  std::vector<float> out, lse;
};

// Of the case, what the forward pass knows.
class ForwardCall : CallInputs {
 public:
  ForwardCall(flashback_device* device, const Case& c, const Question16& question)
      : CallInputs(device, c, question) {}

  // Without workspace.
  flashback_forward_arguments arguments() const { return common_arguments<flashback_forward_arguments>(); }

  Outputs get() {
    lse_.download();
    lse_.expect_margins_untouched("lse");
    const std::int64_t rows = case_.shape.seqlen_q;
    std::vector<float> lse(static_cast<std::size_t>(case_.batch_q() * case_.shape.heads * rows));
    for (std::size_t i = 0; i < lse.size(); ++i)
      std::memcpy(&lse[i], lse_.host() + 4 * (i / rows * lse_row_ + i % rows), 4);
    return {from_bits(case_.dtype, out_.get<std::uint16_t>("out")), lse};
  }
};

inline Outputs run_forward(flashback_device* device, const Case& c, const Question16& question,
                           bool with_lse = true) {
  ForwardCall call(device, c, question);
  flashback_forward_arguments arguments = call.arguments();
  if (!with_lse) arguments.lse.data = nullptr;
  run<flashback_forward_arguments>(
      device, {flashback_forward_workspace, flashback_forward_can_run, flashback_forward}, arguments);
  return call.get();
}

inline void expect_right(const Case& c, const Question16& question, const Outputs& got) {
  const Shape& s = c.shape;
  const std::vector<bool> takes_part = taking_part(c.batch_q() * s.seqlen_q, reference_question(c).q_rows);
  expect_unused_rows(c, "out", got.out, takes_part);
  std::vector<float> out = got.out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!takes_part[i / static_cast<std::size_t>(s.heads * s.head_dim)]) out[i] = 0;
  }
  const Verdict v = judge(out, question.exact.out, question.sixteen.out,
                          {c.batch_q(), s.seqlen_q, s.heads, s.head_dim}, c.dtype);
  EXPECT_TRUE(v.ok) << "out: " << v.sentence << " (max_abs " << v.max_abs << ", limit " << v.limit
                    << ", block_ratio " << v.block_ratio << ")";

  const double limit = lse_limit(question.inputs.q, question.inputs.k, s.head_dim, c.scale);
  for (std::size_t i = 0; i < got.lse.size(); ++i) {
    const std::size_t row = i % s.seqlen_q, batch = i / s.seqlen_q / s.heads;
    const double exact = question.exact.lse[i];
    const float value = got.lse[i];
    bool right = std::fabs(value - exact) <= limit;
    if (!takes_part[batch * s.seqlen_q + row])
      right = c.leave_unused_rows ? std::isnan(value) : value == -INFINITY;
    else if (std::isinf(exact))
      right = value == exact;
    ASSERT_TRUE(right) << "lse " << i << " is " << value << ", exact " << exact << ", limit " << limit;
  }
}

}  // namespace flashback::test
