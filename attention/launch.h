// From a question to work on a stream.
#pragma once

#include "attention/plan.h"

namespace flashback {

// Checks the shape, finds the kernel and plans. Tensors and workspace are not looked at.
Status make_plan(const Target& target, const Problem& problem, Plan* plan);

// make_plan, and everything wrong with tensors and workspace.
Status make_bound_plan(const Target& target, const Problem& problem, Plan* plan);

// Enqueues the launches of a bound plan, into which it encodes the tensor maps.
Status enqueue(Device& device, Plan* plan, Stream stream);

}  // namespace flashback
