// What mutants of our kernels run: the smallest problems that come by each piece of synchronisation.
#pragma once

#include <vector>

#include "attention/problem.h"
#include "program/mutation_run.h"

namespace flashback::program {

// Of the kernel that solves `chosen`, which says all but shape, scale and mode. Every ring of the kernel
// comes round.
std::vector<Problem> mutation_problems(Arch arch, const Problem& chosen);

// One for each main kernel that there is, in the order of the table.
struct ShippedKernel {
  Arch arch;
  MutatedEntry which;
  std::vector<Problem> problems;
};
std::vector<ShippedKernel> shipped_kernels();

}  // namespace flashback::program
