#include "attention/launch.h"

#include <fmt/format.h>

#include "attention/check.h"

namespace flashback {

Status make_plan(const Target& target, const Problem& problem, Plan* plan) {
  if (Status s = check_shape(problem, target.arch); !s.ok()) return s;
  const Kernel* kernel = find_kernel(target.arch, problem);
  if (!kernel) return internal_failure("the checks accept a problem that no kernel solves");
  plan_with(*kernel, problem, target, plan);
  return {};
}

Status make_bound_plan(const Target& target, const Problem& problem, Plan* plan) {
  if (Status s = make_plan(target, problem, plan); !s.ok()) return s;
  return check_tensors(problem, plan->workspace.bytes);
}

namespace {

// The tensor maps, encoded by the device into the parameters of the main launch.
Status encode_maps(Device& device, const Plan& plan, EntryParameters* parameters) {
  std::byte* const bytes = std::visit([](auto& p) { return reinterpret_cast<std::byte*>(&p); }, *parameters);
  for (const PlannedMap& map : plan.maps) {
    if (Status s = device.encode(map.request, bytes + map.offset); !s.ok()) {
      return {s.code(), fmt::format("the tensor map of {}: {}", map.tensor, s.sentence())};
    }
  }
  return {};
}

}  // namespace

Status enqueue(Device& device, const Plan& plan, Stream stream) {
  for (const WorkspacePart& part : plan.cleared) {
    if (Status s = device.fill(plan.problem.workspace + part.offset, 0, part.bytes / 4, stream); !s.ok())
      return {s.code(), fmt::format("clearing {}: {}", part.name, s.sentence())};
  }
  for (const PlannedLaunch& planned : plan.launches) {
    const KernelImage* image = find_image(planned.entry->image);
    if (!image)
      return internal_failure(fmt::format("the library has no kernel image {}", planned.entry->image));

    const EntryParameters* parameters = &planned.parameters;
    EntryParameters with_maps;
    if (planned.step == "main") {
      with_maps = planned.parameters;
      if (Status s = encode_maps(device, plan, &with_maps); !s.ok()) return s;
      parameters = &with_maps;
    }
    const Launch launch{
        .image = image,
        .entry = planned.entry->name.c_str(),
        .grid = planned.grid,
        .cluster = planned.cluster,
        .block = planned.block,
        .shared_bytes = planned.shared_bytes,
        .parameters = std::visit([](const auto& p) { return std::as_bytes(std::span(&p, 1)); }, *parameters),
        .together = planned.together};
    if (Status s = device.launch(launch, stream); !s.ok()) {
      return {s.code(), fmt::format("{}: {}", planned.step, s.sentence())};
    }
  }
  return {};
}

}  // namespace flashback
