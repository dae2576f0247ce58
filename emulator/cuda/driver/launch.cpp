// Launches.
#include "emulator/cuda/launch.h"

#include "emulator/cuda/driver/face.h"
#include "emulator/cuda/driver/function.h"

namespace flashback::emulator::cuda::driver {
namespace {

// The parameters as addresses, or as the bytes that `extra` describes.
void launch(const LaunchRequest& request, void** parameters, void** extra) {
  if (extra == nullptr) return cuda::launch(request, parameters);
  require(parameters == nullptr);
  const void* bytes = nullptr;
  std::size_t count = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      bytes = extra[1];
    } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      count = *static_cast<std::size_t*>(extra[1]);
    } else {
      refuse(Error::kInvalidValue);
    }
  }
  require(bytes != nullptr || count == 0);
  cuda::launch(request, std::span(static_cast<const std::byte*>(bytes), count));
}

}  // namespace
}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** parameters, void** extra) {
  return answer_in_context([&] {
    LaunchRequest request{&function_of(function), {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}};
    request.shared_bytes = shared_bytes;
    request.stream = stream;
    driver::launch(request, parameters, extra);
  });
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, CUstream stream, void** parameters) {
  return answer_in_context([&] {
    LaunchRequest request{&function_of(function), {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}};
    request.shared_bytes = shared_bytes;
    request.stream = stream;
    request.cooperative = true;
    driver::launch(request, parameters, nullptr);
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  return answer_in_context([&] {
    require(config != nullptr);
    LaunchRequest request{&function_of(function),
                          {config->gridDimX, config->gridDimY, config->gridDimZ},
                          {config->blockDimX, config->blockDimY, config->blockDimZ}};
    request.shared_bytes = config->sharedMemBytes;
    request.stream = config->hStream;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      apply_attribute(&request, config->attrs[i].id, &config->attrs[i].value);
    }
    driver::launch(request, parameters, extra);
  });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return answer_in_context([&] {
    process().streams.of(stream);
    require(function != nullptr);
    function(data);
  });
}
