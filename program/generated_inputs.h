// Values for a problem, made from a seed.
#pragma once

#include <string>

#include "program/problem_options.h"
#include "program/run_inputs.h"

namespace flashback::program {

// The value of --data.
reference::Data parse_data(const std::string& word);

// For `problem`, which `options` say; packed sequences have the values of one batch.
RunInputs generate_inputs(const ProblemOptions& options, const Problem& problem, reference::Data data,
                          std::uint64_t seed);

}  // namespace flashback::program
