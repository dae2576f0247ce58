// The steps of a backward pass that all architectures share, around the main kernel of each: statistics of
// query rows, the sink, and gradients on their way to their tensors.
#pragma once

#include "attention/planner.h"

namespace flashback {

class BackwardPlanner : protected Planner {
 public:
  BackwardPlanner(const Problem& problem, const Kernel& kernel, Plan* plan);

 protected:
  // Those of the shared steps.
  void add_shared_parts();

  // Where the statistics go, what becomes zero of dQ, and a number that does, or null.
  void preprocess(float* lse_log2, float* delta, float* dq_accum, std::int32_t* zero);
  void sink();
  // A gradient; `accum` null: the main kernel has written what is in sight.
  void postprocess_queries(const float* accum, float scale);
  void postprocess_keys(std::string_view step, const Tensor& gradient, const float* accum, float scale);

  const bool gaps_;  // rows of k may be out of sight: no CTA writes their dK and dV

 private:
  void postprocess(std::string_view step, const Tensor& gradient, bool of_keys, const float* accum,
                   float scale);

  float* dsink_parts_ = nullptr;
};

}  // namespace flashback
