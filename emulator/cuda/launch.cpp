#include "emulator/cuda/launch.h"

#include <cuda.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/cuda/occupancy.h"
#include "emulator/cuda/process.h"

namespace flashback::emulator::cuda {
namespace {

std::uint64_t volume(Dim3 d) {
  return std::uint64_t{d.x} * d.y * d.z;
}

Dim3 cluster_of(const LaunchRequest& request) {
  if (request.cluster.x != 0) return request.cluster;
  const auto required = [&](int id) {
    return static_cast<std::uint32_t>(std::max(1, request.function->attribute(id)));
  };
  return {required(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
          required(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
          required(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
}

void check(const LaunchRequest& request, Dim3 cluster) {
  Function& function = *request.function;
  const Dim3 grid = request.grid, block = request.block;
  require(volume(grid) != 0 && grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535,
          Error::kInvalidConfiguration);
  require(volume(block) != 0 && volume(block) <= 1024 && block.z <= 64, Error::kInvalidConfiguration);
  const Program& program = function.program();
  if (program.max_threads != 0 && volume(block) > program.max_threads) {
    refuse(Error::kLaunchOutOfResources,
           fmt::format("the block of {} has {} threads; the kernel is compiled for at most {}",
                       function.name(), volume(block), program.max_threads));
  }
  const auto shared_limit =
      static_cast<std::uint32_t>(function.attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  if (request.shared_bytes > shared_limit) {
    refuse(
        Error::kInvalidValue,
        fmt::format("{} is launched with {} bytes of dynamic shared memory; its limit is {} (the attribute "
                    "MaxDynamicSharedMemorySize raises it)",
                    function.name(), request.shared_bytes, shared_limit));
  }
  if (program.explicit_cluster && !program.requires_cluster() && request.cluster.x == 0) {
    refuse(
        Error::kInvalidClusterSize,
        fmt::format(
            "the launch of {} names no cluster; the kernel is compiled with .explicitcluster, for launches "
            "that do",
            function.name()));
  }
  const std::uint64_t ctas = volume(cluster);
  require(ctas != 0 && ctas <= static_cast<std::uint64_t>(largest_cluster(&function)) &&
              grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0,
          Error::kInvalidClusterSize);
  if (request.cooperative) {
    const auto resident = static_cast<std::uint64_t>(
        resident_ctas(&function, static_cast<std::uint32_t>(volume(block)), request.shared_bytes));
    require(volume(grid) <= resident * static_cast<std::uint64_t>(usual_multiprocessors(process().gpu.arch)),
            Error::kCooperativeLaunchTooLarge);
  }
}

const Program& runnable(Function* function) {
  try {
    return function->program();
  } catch (const Refusal& refusal) {
    lose_context(refusal.error(), refusal.sentence());
  }
}

Error error_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kIllegalAddress:
      return Error::kIllegalAddress;
    case FaultKind::kMisalignedAddress:
      return Error::kMisalignedAddress;
    case FaultKind::kAssertion:
      return Error::kAssertion;
    case FaultKind::kOther:
      return Error::kLaunchFailure;
  }
  return Error::kLaunchFailure;
}

Error error_of(Code code) {
  switch (code) {
    case Code::kUnsupported:
      return Error::kNotSupported;
    case Code::kDevice:
      return error_of(process().machine.fault_kind());
    default:
      return Error::kLaunchFailure;
  }
}

}  // namespace

void apply_attribute(LaunchRequest* request, int id, const void* value) {
  CUlaunchAttributeValue attribute;
  std::memcpy(&attribute, value, sizeof attribute);
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      request->cluster = {attribute.clusterDim.x, attribute.clusterDim.y, attribute.clusterDim.z};
      break;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      request->cooperative = attribute.cooperative != 0;
      break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      request->completion_event = attribute.programmaticEvent.event;
      break;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      request->completion_event = attribute.launchCompletionEvent.event;
      break;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:  // a preference over CLUSTER_DIMENSION
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      break;
    default:
      refuse(Error::kNotSupported, fmt::format("launch attribute {} is not provided", id));
  }
}

void launch(const LaunchRequest& request, void** parameters) {
  const Program& program = runnable(request.function);
  std::vector<std::byte> bytes(program.parameter_bytes);
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    require(parameters != nullptr && parameters[i] != nullptr);
    std::memcpy(bytes.data() + program.parameters[i].offset, parameters[i], program.parameters[i].bytes);
  }
  launch(request, bytes);
}

void launch(const LaunchRequest& request, std::span<const std::byte> parameters) {
  Process& process = cuda::process();
  process.streams.of(request.stream);
  runnable(request.function);
  const Dim3 cluster = cluster_of(request);
  check(request, cluster);
  Launch launch;
  launch.entry = request.function->name().c_str();
  launch.grid = request.grid;
  launch.cluster = cluster;
  launch.block = request.block;
  launch.shared_bytes = request.shared_bytes;
  launch.parameters = parameters;
  const Status status = process.machine.launch(request.function->module().loaded(), launch, process.memory);
  if (status.code() == Code::kInvalid) refuse(Error::kInvalidValue, status.sentence());
  if (!status.ok()) lose_context(error_of(status.code()), status.sentence());
  if (request.completion_event != nullptr) process.streams.record(request.completion_event, request.stream);
}

}  // namespace flashback::emulator::cuda
