#include "program/judged_forward.h"

#include <cmath>

#include "attention/reference/rounding.h"

namespace flashback::program {

ForwardJudge::ForwardJudge(const Problem& problem, int threads,
                           const std::function<void(const std::string&)>& step, const RunInputs& inputs)
    : problem_(problem),
      question_(question_of(problem, inputs.lengths)),
      lse_limit_(
          lse_limit(inputs.tensors.q, inputs.tensors.k, problem.shape.head_dim, effective_scale(problem))),
      inputs_(forward_inputs(problem, inputs)) {
  step("reference in double precision");
  exact_ = reference::exact(question_, inputs.tensors, threads);
  step("reference in 16 bit");
  sixteen_bit_ = reference::sixteen_bit(question_, inputs.tensors,
                                        reference::stored(exact_.out, problem.dtype), problem.dtype, threads);
}

ForwardResult ForwardJudge::judge(DeviceOutputs outputs) const {
  const Shape& s = problem_.shape;
  ForwardResult result = {std::move(outputs), {}, {}};
  result.out =
      flashback::judge(reference::from_bits(problem_.dtype, result.outputs.out), exact_.out, sixteen_bit_.out,
                       {question_.q_packed ? 1 : s.batch, s.seqlen_q, s.heads, s.head_dim}, problem_.dtype);
  result.lse = judge_lse(result.outputs.lse);
  return result;
}

// Rows that take no part have an lse of minus infinity; the reference has 0 there.
LseVerdict ForwardJudge::judge_lse(const std::vector<float>& lse) const {
  const Shape& s = problem_.shape;
  const std::int64_t batches = question_.q_packed ? 1 : s.batch;
  std::vector<bool> takes_part(static_cast<std::size_t>(batches * s.seqlen_q), question_.q_rows.empty());
  for (const reference::Rows& rows : question_.q_rows) {
    for (std::int64_t i = 0; i < rows.count; ++i) takes_part[static_cast<std::size_t>(rows.first + i)] = true;
  }
  LseVerdict verdict = {0, lse_limit_};
  for (std::size_t i = 0; i < lse.size(); ++i) {
    const std::size_t row = i % s.seqlen_q, batch = i / s.seqlen_q / s.heads;
    const double right = takes_part[batch * s.seqlen_q + row] ? exact_.lse[i] : -INFINITY;
    const double error = lse[i] == right ? 0 : std::abs(lse[i] - right);
    if (!(error <= verdict.max_abs)) verdict.max_abs = error;  // a NaN stays
  }
  return verdict;
}

DeviceInputs forward_inputs(const Problem& problem, const RunInputs& inputs) {
  const auto bits = [&](const std::vector<float>& values) {
    return reference::to_bits(problem.dtype, values);
  };
  return {.q = bits(inputs.tensors.q),
          .k = bits(inputs.tensors.k),
          .v = bits(inputs.tensors.v),
          .out = {},
          .dout = {},
          .lse = {},
          .sink = inputs.tensors.sink,
          .lengths = inputs.lengths};
}

}  // namespace flashback::program
