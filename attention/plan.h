// The answer: the list of launches that solves a problem, with nothing left to decide. A plan is a pure
// function of the problem; where the problem has no pointers yet the plan has none, and is printed or asked
// for its workspace.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "attention/kernel_table.h"
#include "kernels/common/parameters.h"
#include "kernels/sm100/backward/config.h"

namespace flashback {

struct WorkspacePart {
  std::string_view name;
  std::size_t offset, bytes;
};

// fp32 arrays, each at a multiple of 256 bytes; rows are q_rows_padded, seqlen_q rounded up to the tile.
struct WorkspaceLayout {
  WorkspacePart lse_log2;  // [batch][heads][rows]
  WorkspacePart delta;     // [batch][heads][rows]
  WorkspacePart dq_accum;  // [batch][heads][rows * head_dim]
  std::size_t bytes;
};

// A tensor map that the main kernel takes, and where in its parameters the 128 bytes go.
struct PlannedMap {
  std::string_view tensor;
  TensorMapRequest request;
  sm100::backward::TensorMapBytes sm100::backward::Parameters::*place;
};

struct PlannedLaunch {
  std::string_view step;  // preprocess | main | postprocess
  const Entry* entry;
  Dim3 grid, cluster, block;
  std::uint32_t shared_bytes;
  std::variant<common::PreprocessParameters, sm100::backward::Parameters, common::PostprocessParameters>
      parameters;
};

struct Plan {
  Problem problem;
  const Kernel* kernel;
  WorkspaceLayout workspace;
  std::array<PlannedLaunch, 3> launches;  // in stream order
  std::array<PlannedMap, 6> maps;         // of the main launch
};

// `problem` has passed check_shape for the kernel's architecture.
Plan plan_backward(const Problem& problem, const Kernel& kernel);

// What `flashback plan` prints: launches, maps and workspace, a line each.
std::string to_text(const Plan& plan);

}  // namespace flashback
