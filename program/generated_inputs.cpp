#include "program/generated_inputs.h"

#include "program/arguments.h"

namespace flashback::program {

reference::Data parse_data(const std::string& word) {
  using reference::Data;
  return parse_choice("--data", word,
                      {Data::kNormal, Data::kLow, Data::kHigh, Data::kEqual, Data::kZero, Data::kHeavy});
}

RunInputs generate_inputs(const ProblemOptions& options, const Problem& problem, reference::Data data,
                          std::uint64_t seed) {
  RunInputs inputs;
  inputs.shape = problem.shape;
  inputs.lengths = options.lengths();
  Shape q = problem.shape, k = problem.shape;
  if (problem.q_sequences.packed()) q.batch = 1;
  if (problem.k_sequences.packed()) k.batch = 1;
  const auto values = [&](const Shape& shape) {
    return reference::make_inputs(data, shape, problem.dtype, effective_scale(problem), seed);
  };
  reference::Inputs& tensors = inputs.tensors;
  tensors = values(q);
  if (k.batch != q.batch) {
    reference::Inputs of_k = values(k);
    tensors.k = std::move(of_k.k);
    tensors.v = std::move(of_k.v);
  }
  if (options.dlse()) tensors.dlse = reference::make_dlse(q.batch * q.seqlen_q * q.heads, seed);
  if (options.sink()) tensors.sink = reference::make_sink(q.heads, seed);
  return inputs;
}

}  // namespace flashback::program
