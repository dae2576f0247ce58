// From a question to work on a stream.
#pragma once

#include "attention/plan.h"

namespace flashback {

// Checks the shape, finds the kernel and plans. Tensors and workspace are not looked at.
Status make_plan(const Target& target, const Problem& problem, Plan* plan);

// make_plan, and everything wrong with tensors and workspace.
Status make_bound_plan(const Target& target, const Problem& problem, Plan* plan);

// Encodes the tensor maps and enqueues the launches of a bound plan.
Status enqueue(Device& device, const Plan& plan, Stream stream);

}  // namespace flashback
