#include "program/judged_run.h"

#include "attention/sink_tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/reference/reference.h"
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

VariantResult judge_gradients(const Variant& variant, DeviceGradients gradients, const Answer<double>& exact,
                              const Answer<float>& sixteen_bit, double unit, const Problem& problem,
                              const RunInputs& inputs) {
  const Shape& shape = problem.shape;
  const auto extent = [&](const Sequences& sequences, std::int64_t seqlen, std::int64_t heads) {
    return Extent{sequences.packed() ? 1 : shape.batch, seqlen, heads, shape.head_dim};
  };
  const Extent of_q = extent(problem.q_sequences, shape.seqlen_q, shape.heads);
  const Extent of_k = extent(problem.k_sequences, shape.seqlen_k, shape.kv_heads);
  const auto verdict = [&](const auto& bits, const auto& ref, const auto& ref16, const Extent& extent) {
    return judge(reference::from_bits(problem.dtype, bits), ref, ref16, extent, problem.dtype, unit);
  };
  VariantResult result{variant, std::move(gradients), {}, {}, {}, {}};
  result.dq = verdict(result.gradients.dq, exact.dq, sixteen_bit.dq, of_q);
  result.dk = verdict(result.gradients.dk, exact.dk, sixteen_bit.dk, of_k);
  result.dv = verdict(result.gradients.dv, exact.dv, sixteen_bit.dv, of_k);
  if (!exact.dsink.empty()) {
    result.dsink = judge_sink(result.gradients.dsink, question_of(problem, inputs.lengths), inputs.tensors,
                              inputs.lse, inputs.out);
  }
  return result;
}

}  // namespace

Problem in_variant(Problem problem, const Variant& variant) {
  problem.tensor_memory = variant.tensor_memory;
  problem.signal = variant.signal;
  return problem;
}

JudgedRun run_and_judge(Workbench& workbench, bool device_checks_bounds, const Problem& problem,
                        const std::vector<Variant>& variants, int threads,
                        const std::function<void(const std::string&)>& step, RunInputs* inputs) {
  const reference::Question question = question_of(problem, inputs->lengths);
  step("reference in double precision");
  const Answer<double> exact = reference::exact(question, inputs->tensors, threads);
  complete_forward(exact, problem.dtype, inputs);
  step("reference in 16 bit");
  const Answer<float> sixteen_bit =
      reference::sixteen_bit(question, inputs->tensors, inputs->out, problem.dtype, threads);

  const double unit = unit_of(inputs->tensors.dout);
  JudgedRun run{bits_of(*inputs, problem.dtype), {}};
  for (const Variant& variant : variants) {
    step(workbench.arch() == Arch::kSm100 ? name(variant) : "kernels");
    const Problem chosen = in_variant(problem, variant);
    DeviceGradients gradients = run_on(workbench, device_checks_bounds, chosen, run.inputs);
    run.results.push_back(
        judge_gradients(variant, std::move(gradients), exact, sixteen_bit, unit, chosen, *inputs));
  }
  return run;
}

}  // namespace flashback::program
