#include "attention/launch.h"

#include <fmt/format.h>

#include "attention/check.h"

namespace flashback {

Status make_plan(const Target& target, const Problem& problem, Plan* plan) {
  const Kernel* kernel = nullptr;
  if (Status s = check_shape(problem, target.arch, &kernel); !s.ok()) return s;
  plan_with(*kernel, problem, target, plan);
  return {};
}

Status make_bound_plan(const Target& target, const Problem& problem, Plan* plan) {
  if (Status s = make_plan(target, problem, plan); !s.ok()) return s;
  return check_tensors(problem, plan->workspace.bytes);
}

namespace {

// The tensor maps, encoded by the device into the parameters of the main launch.
Status encode_maps(Device& device, const Plan& plan, std::span<std::byte> parameters) {
  for (const PlannedMap& map : plan.maps) {
    if (Status s = device.encode(map.request, &parameters[map.offset]); !s.ok()) {
      return {s.code(), fmt::format("the tensor map of {}: {}", map.tensor, s.sentence())};
    }
  }
  return {};
}

}  // namespace

Status enqueue(Device& device, Plan* plan, Stream stream) {
  for (const WorkspacePart& part : plan->cleared) {
    if (Status s = device.fill(plan->problem.workspace + part.offset, 0, part.bytes / 4, stream); !s.ok())
      return {s.code(), fmt::format("clearing {}: {}", part.name, s.sentence())};
  }
  for (PlannedLaunch& planned : plan->launches) {
    const Entry& entry = *planned.entry;
    if (!entry.image)
      return internal_failure(fmt::format("the library has no kernel image of {}", entry.name));
    const std::span<std::byte> parameters =
        std::visit([](auto& p) { return std::as_writable_bytes(std::span(&p, 1)); }, planned.parameters);
    if (planned.step == "main") {
      if (Status s = encode_maps(device, *plan, parameters); !s.ok()) return s;
    }
    const Launch launch{.image = entry.image,
                        .entry = entry.name.c_str(),
                        .grid = planned.grid,
                        .cluster = planned.cluster,
                        .block = planned.block,
                        .shared_bytes = planned.shared_bytes,
                        .parameters = parameters,
                        .together = planned.together};
    if (Status s = device.launch(launch, stream); !s.ok()) {
      return {s.code(), fmt::format("{}: {}", planned.step, s.sentence())};
    }
  }
  return {};
}

}  // namespace flashback
