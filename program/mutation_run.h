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
  bool reached = true;                // by a case
  std::string killed_by;              // rules, "fault", "bytes"; empty: it survived
  std::optional<std::string> reason;  // of a survivor, where one is known

  bool ok() const { return !killed_by.empty() || reason; }
};

// A problem that takes its way through the kernel.
struct MutationCase {
  Problem problem;
  DeviceInputs inputs;
};

struct MutationSample {
  std::size_t size = 0;  // 0: all
  std::uint64_t seed = 0;
};

// Each mutant of the one main kernel that solves the cases runs each case that comes by the changed line,
// eagerly, then lazily, under the strict rules, until something is found that the kernel as it is does not
// show. The GPU has two multiprocessors, so that a CTA which takes one tile after the other takes several.
std::vector<Mutant> run_mutants(Arch arch, const std::vector<MutationCase>& cases,
                                const MutationSample& sample);

}  // namespace flashback::program
