// The forward pass on a device, out and lse judged against double precision.
#pragma once

#include <functional>
#include <string>

#include "attention/reference/reference.h"
#include "attention/tolerance.h"
#include "program/device_run.h"
#include "program/run_inputs.h"

namespace flashback::program {

// Of lse, where both are infinite they agree.
struct LseVerdict {
  double max_abs = 0, limit = 0;
  bool ok() const { return max_abs <= limit; }
};

struct ForwardResult {
  DeviceOutputs outputs;
  Verdict out;
  LseVerdict lse;
  bool ok() const { return out.ok && lse.ok(); }
};

class ForwardJudge {
 public:
  // `step` hears what begins: each of two references. `threads` 0: one for each core.
  ForwardJudge(const Problem& problem, int threads, const std::function<void(const std::string&)>& step,
               const RunInputs& inputs);

  const DeviceInputs& inputs() const { return inputs_; }
  ForwardResult judge(DeviceOutputs outputs) const;

 private:
  LseVerdict judge_lse(const std::vector<float>& lse) const;

  Problem problem_;
  reference::Question question_;
  reference::Answer<double> exact_;
  reference::Answer<float> sixteen_bit_;
  double lse_limit_ = 0;
  DeviceInputs inputs_;
};

// What kernels of the forward pass read.
DeviceInputs forward_inputs(const Problem& problem, const RunInputs& inputs);

}  // namespace flashback::program
