// Everything that can be wrong with a problem, in words. A sentence names the argument as the C struct does,
// its value, the rule and the nearest accepted value.
#pragma once

#include "attention/kernel_table.h"

namespace flashback {

// Shapes and choices: what a workspace query may ask. Reads no pointer and no stride. `kernel` becomes the
// row of the kernel table that answers.
Status check_shape(const Problem& problem, Arch arch, const Kernel** kernel);

// Pointers, strides and the workspace of a problem whose shape is accepted.
Status check_tensors(const Problem& problem, std::size_t workspace_needed);

}  // namespace flashback
