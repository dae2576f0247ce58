#include "program/judged_run.h"

#include "attention/sink_tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/reference/rounding.h"

namespace flashback::program {
namespace {

using reference::Answer;

std::string forward_note(const char* tensor, const std::vector<float>& given,
                         const std::vector<double>& exact) {
  double largest = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] != exact[i]) largest = std::max(largest, std::fabs(given[i] - exact[i]));
  }
  return fmt::format("{} comes from the file and differs from double precision by at most {:.3g}", tensor,
                     largest);
}

// out and lse as the file has them, or as they should be.
void complete_forward(const Answer<double>& exact, Dtype dtype, RunInputs* inputs) {
  if (inputs->out.empty()) {
    inputs->out = reference::stored(exact.out, dtype);
  } else {
    inputs->notes.push_back(forward_note("out", inputs->out, exact.out));
  }
  if (inputs->lse.empty()) {
    inputs->lse.assign(exact.lse.begin(), exact.lse.end());
  } else {
    inputs->notes.push_back(forward_note("lse", inputs->lse, exact.lse));
  }
}

DeviceInputs bits_of(const RunInputs& inputs, Dtype dtype) {
  const auto bits = [&](const std::vector<float>& values) { return reference::to_bits(dtype, values); };
  return {.q = bits(inputs.tensors.q),
          .k = bits(inputs.tensors.k),
          .v = bits(inputs.tensors.v),
          .out = bits(inputs.out),
          .dout = bits(inputs.tensors.dout),
          .lse = inputs.lse,
          .dlse = inputs.tensors.dlse,
          .sink = inputs.tensors.sink,
          .lengths = inputs.lengths};
}

}  // namespace

BackwardJudge::BackwardJudge(const Problem& problem, int threads, const Step& step, RunInputs* inputs)
    : problem_(problem) {
  const reference::Question question = question_of(problem, inputs->lengths);
  step("reference in double precision");
  exact_ = reference::exact(question, inputs->tensors, threads);
  complete_forward(exact_, problem.dtype, inputs);
  step("reference in 16 bit");
  sixteen_bit_ = reference::sixteen_bit(question, inputs->tensors, inputs->out, problem.dtype, threads);
  unit_ = unit_of(inputs->tensors.dout);
  inputs_ = bits_of(*inputs, problem.dtype);
  values_ = *inputs;
}

VariantResult BackwardJudge::judge(const Variant& variant, DeviceGradients gradients) const {
  const Shape& shape = problem_.shape;
  const Dtype dtype = problem_.dtype;
  const auto extent = [&](const Sequences& sequences, std::int64_t seqlen, std::int64_t heads) {
    return Extent{sequences.packed() ? 1 : shape.batch, seqlen, heads, shape.head_dim};
  };
  const Extent of_q = extent(problem_.q_sequences, shape.seqlen_q, shape.heads);
  const Extent of_k = extent(problem_.k_sequences, shape.seqlen_k, shape.kv_heads);
  const auto verdict = [&](const auto& bits, const auto& ref, const auto& ref16, const Extent& extent) {
    return flashback::judge(reference::from_bits(dtype, bits), ref, ref16, extent, dtype, unit_);
  };
  VariantResult result{variant, std::move(gradients), {}, {}, {}, {}};
  result.dq = verdict(result.gradients.dq, exact_.dq, sixteen_bit_.dq, of_q);
  result.dk = verdict(result.gradients.dk, exact_.dk, sixteen_bit_.dk, of_k);
  result.dv = verdict(result.gradients.dv, exact_.dv, sixteen_bit_.dv, of_k);
  if (!exact_.dsink.empty()) {
    result.dsink = judge_sink(result.gradients.dsink, question_of(problem_, values_.lengths), values_.tensors,
                              values_.lse, values_.out);
  }
  return result;
}

Problem in_variant(Problem problem, const Variant& variant) {
  problem.tensor_memory = variant.tensor_memory;
  problem.signal = variant.signal;
  return problem;
}

DeviceInputs backward_inputs(const Problem& problem, RunInputs* inputs) {
  complete_forward(reference::exact(question_of(problem, inputs->lengths), inputs->tensors), problem.dtype,
                   inputs);
  return bits_of(*inputs, problem.dtype);
}

JudgedRun run_and_judge(Workbench& workbench, bool device_checks_bounds, const Problem& problem,
                        const std::vector<Variant>& variants, int threads, const BackwardJudge::Step& step,
                        RunInputs* inputs) {
  const BackwardJudge judge(problem, threads, step, inputs);
  JudgedRun run{judge.inputs(), {}};
  for (const Variant& variant : variants) {
    step(workbench.arch() == Arch::kSm100 ? name(variant) : "kernels");
    run.results.push_back(judge.judge(
        variant, run_on(workbench, device_checks_bounds, in_variant(problem, variant), run.inputs)));
  }
  return run;
}

}  // namespace flashback::program
