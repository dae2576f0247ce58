// From a question to work on a stream.
#pragma once

#include "attention/plan.h"

namespace flashback {

// Checks the shape, finds the kernel and plans. The tensors are not looked at.
Status make_plan(Arch arch, const Problem& problem, Plan* plan);

// make_plan and check_tensors.
Status make_bound_plan(Arch arch, const Problem& problem, Plan* plan);

// Encodes the tensor maps and enqueues the launches of a bound plan.
Status run(Device& device, const Plan& plan, Stream stream);

}  // namespace flashback
