// The answer: the list of launches that solves a problem, with nothing left to decide. A plan is a pure
// function of the problem; where the problem has no pointers yet the plan has none, and can be printed or
// asked for its workspace.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "attention/kernel_table.h"
#include "kernels/common/parameters.h"
#include "kernels/sm100/backward/config.h"

namespace flashback {

struct WorkspacePart {
  std::string_view name;
  std::size_t offset = 0, bytes = 0;
};

// fp32 arrays, each at a multiple of kWorkspaceAlignment; `rows` is seqlen_q rounded up to the tile.
struct WorkspaceLayout {
  WorkspacePart lse_log2;  // [batch][heads][rows]
  WorkspacePart delta;     // [batch][heads][rows]
  WorkspacePart dq_accum;  // [batch][heads][rows * head_dim]
  std::size_t bytes = 0;
};
inline constexpr std::size_t kWorkspaceAlignment = 256;

// A tensor map of the main launch.
struct PlannedMap {
  std::string_view tensor;
  std::size_t offset;  // of its 128 bytes in the parameters
  TensorMapRequest request;
};

struct PlannedLaunch {
  std::string_view step;  // preprocess | main | postprocess
  const Entry* entry = nullptr;
  Dim3 grid, cluster, block;
  std::uint32_t shared_bytes = 0;
  // What the entry is told; the tensor maps in it are blank until the plan meets a device.
  std::variant<common::PreprocessParameters, sm100::backward::Parameters, common::PostprocessParameters>
      parameters;
};

struct Plan {
  Problem problem;
  const Kernel* kernel = nullptr;
  WorkspaceLayout workspace;
  std::array<PlannedLaunch, 3> launches;  // in stream order
  std::array<PlannedMap, 6> maps;
};

// `problem` has passed check_shape, and `kernel` is its row.
Plan plan_backward(const Problem& problem, const Kernel& kernel);

// What `flashback plan` prints: launches, maps and workspace, a line each.
std::string to_text(const Plan& plan);

}  // namespace flashback
