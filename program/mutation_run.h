// A kernel with one piece of synchronisation missing at a time: does the checker notice?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attention/problem.h"
#include "emulator/check/mutation.h"
#include "program/device_run.h"

namespace flashback::program {

struct Mutant {
  emulator::checking::Mutation mutation;
  std::string killed_by;              // rules, "fault", "bytes"; empty: it survived
  std::optional<std::string> reason;  // of a survivor, where one is known

  bool ok() const { return !killed_by.empty() || reason; }
};

struct MutationSample {
  std::size_t size = 0;  // 0: all
  std::uint64_t seed = 0;
};

// Each mutant of the problem's main kernel runs eagerly, then lazily, under the strict rules, until something
// is found that the kernel as it is does not show.
std::vector<Mutant> run_mutants(Arch arch, const Problem& problem, const DeviceInputs& inputs,
                                const MutationSample& sample);

}  // namespace flashback::program
