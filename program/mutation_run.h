// A kernel with one piece of synchronisation missing at a time: does the checker notice?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/problem.h"
#include "emulator/check/mutation.h"
#include "program/device_run.h"
#include "program/survivors.h"

namespace flashback::program {

struct Mutant {
  emulator::checking::Mutation mutation;
  bool reached = true;                // by a case
  std::string killed_by;              // a rule, "fault", "bytes"; empty: it survived
  std::optional<std::string> reason;  // of a survivor, where one is known

  bool ok() const { return !killed_by.empty() || reason; }
};

// A problem that takes its way through the kernel.
struct MutationCase {
  Problem problem;
  DeviceInputs inputs;
};

// Which of the kernels that solve a case.
enum class MutatedEntry {
  kPlanned,  // the main one that the planner takes
  kPair,     // that for CTAs in pairs, which the planner keeps for sequences that would take minutes here
};

struct MutationSample {
  std::size_t size = 0;  // 0: all
  std::uint64_t seed = 0;
};

struct MutatedKernel {
  std::string entry;
  std::vector<Mutant> mutants;
};

// Each mutant of the one main kernel of the cases runs each case that comes by the changed line,
// eagerly, then lazily, under the strict rules, up to the first finding that the kernel as it is does not
// show. The GPU has two multiprocessors, so that a CTA which takes one tile after the other takes several.
MutatedKernel run_mutants(Arch arch, MutatedEntry which, const std::vector<MutationCase>& cases,
                          const MutationSample& sample, SurvivorReasons* reasons);

}  // namespace flashback::program
