// Variants of a problem on a device, each gradient judged against double precision.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attention/reference/reference.h"
#include "attention/tolerance.h"
#include "program/device_run.h"
#include "program/problem_options.h"
#include "program/run_inputs.h"

namespace flashback::program {

struct VariantResult {
  Variant variant;
  DeviceGradients gradients;
  Verdict dq, dk, dv;
  std::optional<Verdict> dsink;  // by judge_sink
  bool ok() const { return dq.ok && dk.ok && dv.ok && (!dsink || dsink->ok); }
};

struct JudgedRun {
  DeviceInputs inputs;  // what the kernels read
  std::vector<VariantResult> results;
};

// Both references of a problem, for the gradients of any of its variants.
class BackwardJudge {
 public:
  using Step = std::function<void(const std::string&)>;  // hears what begins: each reference

  // Completes `inputs` with out and lse where it has none. `threads` 0: one for each core.
  BackwardJudge(const Problem& problem, int threads, const Step& step, RunInputs* inputs);

  const DeviceInputs& inputs() const { return inputs_; }
  VariantResult judge(const Variant& variant, DeviceGradients gradients) const;

 private:
  Problem problem_;
  reference::Answer<double> exact_;
  reference::Answer<float> sixteen_bit_;
  double unit_ = 1;
  RunInputs values_;  // with out and lse
  DeviceInputs inputs_;
};

// Runs `problem` in each of `variants`. Completes `inputs` with out and lse where it has none. `step` hears
// what begins: two references, then each variant. `threads` 0: one for each core. Throws a Failure.
JudgedRun run_and_judge(Workbench& workbench, bool device_checks_bounds, const Problem& problem,
                        const std::vector<Variant>& variants, int threads, const BackwardJudge::Step& step,
                        RunInputs* inputs);

// What kernels of the backward pass read, with out and lse as they should be.
DeviceInputs backward_inputs(const Problem& problem, RunInputs* inputs);

// `problem` in this variant.
Problem in_variant(Problem problem, const Variant& variant);

}  // namespace flashback::program
