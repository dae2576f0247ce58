// The answer: the list of launches that solves a problem, with nothing left to decide. A plan is a pure
// function of the problem and of what the device is; where the problem has no pointers yet the plan has none,
// and can be printed or asked for its workspace.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "attention/fixed_list.h"
#include "attention/kernel_table.h"
#include "kernels/common/forward.h"
#include "kernels/common/parameters.h"
#include "kernels/sm100/backward/config.h"
#include "kernels/sm90/backward/config.h"

namespace flashback {

// What a plan must know of the device.
struct Target {
  Arch arch;
  int multiprocessors;

  Target(Arch a) : arch(a), multiprocessors(usual_multiprocessors(a)) {}
  explicit Target(const Device& device) : arch(device.arch()), multiprocessors(device.multiprocessors()) {}
};

struct WorkspacePart {
  std::string_view name;
  std::size_t offset = 0, bytes = 0;
};

// Each part at a multiple of kWorkspaceAlignment.
inline constexpr std::size_t kWorkspaceAlignment = 256;
struct Workspace {
  FixedList<WorkspacePart, 12> parts;
  std::size_t bytes = 0;

  const WorkspacePart& add(std::string_view name, std::size_t part_bytes);
  const WorkspacePart& part(std::string_view name) const;  // one that there is
};

// A tensor map of the main launch.
struct PlannedMap {
  std::string_view tensor;
  std::size_t offset;  // of its 128 bytes in the parameters
  TensorMapRequest request;
};

// What an entry is told; tensor maps in it are blank until the plan meets a device.
using EntryParameters =
    std::variant<common::ScheduleParameters, common::PreprocessParameters, common::SinkParameters,
                 common::PostprocessParameters, common::UnseenParameters, common::ForwardParameters,
                 sm100::backward::Parameters, sm90::backward::Parameters>;

struct PlannedLaunch {
  std::string_view step;  // schedule | preprocess | sink | main | postprocess | dk | dv | unseen
  const Entry* entry = nullptr;
  Dim3 grid, cluster, block;
  std::uint32_t shared_bytes = 0;
  bool together = false;  // its CTAs wait for each other
  EntryParameters parameters;
};

struct Plan {
  Problem problem;
  const Kernel* kernel = nullptr;
  Workspace workspace;
  FixedList<WorkspacePart, 6> cleared;   // to zeros, before the launches
  FixedList<PlannedLaunch, 8> launches;  // in stream order
  FixedList<PlannedMap, 8> maps;         // of the main launch
};

// `problem` has passed check_shape, and `kernel` is its row. In place: a plan has some kilobytes.
void plan_with(const Kernel& kernel, const Problem& problem, const Target& target, Plan* plan);

// What `flashback plan` prints: launches, maps and workspace, a line each.
std::string to_text(const Plan& plan);

}  // namespace flashback
