// Variants of a problem on a device, each gradient judged against double precision.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

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

// Runs `problem` in each of `variants`. Completes `inputs` with out and lse where it has none. `step` hears
// what begins: two references, then each variant. `threads` 0: one for each core. Throws a Failure.
JudgedRun run_and_judge(Workbench& workbench, bool device_checks_bounds, const Problem& problem,
                        const std::vector<Variant>& variants, int threads,
                        const std::function<void(const std::string&)>& step, RunInputs* inputs);

// `problem` in this variant.
Problem in_variant(Problem problem, const Variant& variant);

}  // namespace flashback::program
