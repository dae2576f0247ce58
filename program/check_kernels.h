// Our kernels under the checker: as they are, and with pieces of synchronisation left out.
#pragma once

#include <string>
#include <vector>

#include "emulator/check/checker.h"
#include "emulator/machine/machine.h"
#include "program/check_report.h"
#include "program/problem_options.h"

namespace flashback::program {

struct NamedSchedule {
  std::string name;
  emulator::Schedule schedule;
};

// A machine under the schedule that `checker` watches.
emulator::MachineOptions watched(Arch arch, const emulator::Schedule& schedule,
                                 emulator::checking::Checker& checker);

struct CheckedValues {  // of the tensors
  reference::Data data = reference::Data::kNormal;
  std::uint64_t seed = 0;
};

// The kernels that solve what `options` say, each under all schedules.
void check_kernels(const ProblemOptions& options, const CheckedValues& values,
                   const std::vector<NamedSchedule>& schedules, bool strict, CheckReport* report);

// Mutants of these kernels: on the problem of the options where they name lengths, else on ours.
void check_mutants(const ProblemOptions& options, const CheckedValues& values, const MutationSample& sample,
                   CheckReport* report);

// Mutants of every main kernel there is. Where all of them run, reasons that none has a use for are a
// finding.
void check_all_mutants(const CheckedValues& values, const MutationSample& sample, CheckReport* report);

}  // namespace flashback::program
