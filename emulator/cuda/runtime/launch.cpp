// Launches: the <<<>>> of nvcc, and the calls.
#include "emulator/cuda/launch.h"

#include "emulator/cuda/runtime/face.h"

namespace flashback::emulator::cuda::runtime {
namespace {

flashback::Dim3 extents(dim3 d) {
  return {d.x, d.y, d.z};
}

// The kernel to be launched. When the emulator cannot load it, the context is lost.
Function& launched(const void* kernel) {
  try {
    return function_of(kernel);
  } catch (const Refusal& refusal) {
    if (refusal.sentence().empty()) throw;
    lose_context(refusal.error(), refusal.sentence());
  }
}

LaunchRequest request(const void* kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  require(shared_bytes <= UINT32_MAX);
  LaunchRequest request{&launched(kernel), extents(grid), extents(block)};
  request.shared_bytes = static_cast<std::uint32_t>(shared_bytes);
  request.stream = stream;
  return request;
}

// <<<>>> leaves its arguments here before the kernel's host function takes them.
struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  void* stream;
};
thread_local Configuration pushed;

}  // namespace
}  // namespace flashback::emulator::cuda::runtime

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
  pushed = {grid, block, shared_bytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared_bytes = pushed.shared_bytes;
  *static_cast<void**>(stream) = pushed.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  return answer([&] { give(kernel, reinterpret_cast<cudaKernel_t>(&launched(host))); });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** parameters,
                               size_t shared_bytes, cudaStream_t stream) {
  return answer([&] { launch(request(kernel, grid, block, shared_bytes, stream), parameters); });
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** parameters,
                                    size_t shared_bytes, cudaStream_t stream) {
  return __cudaLaunchKernel(kernel, grid, block, parameters, shared_bytes, stream);
}

}  // extern "C"

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** parameters,
                             size_t shared_bytes, cudaStream_t stream) {
  return answer([&] { launch(request(kernel, grid, block, shared_bytes, stream), parameters); });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** parameters) {
  return answer([&] {
    require(config != nullptr);
    LaunchRequest launch_request =
        request(kernel, config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      apply_attribute(&launch_request, config->attrs[i].id, &config->attrs[i].val);
    }
    launch(launch_request, parameters);
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** parameters,
                                        size_t shared_bytes, cudaStream_t stream) {
  return answer([&] {
    LaunchRequest launch_request = request(kernel, grid, block, shared_bytes, stream);
    launch_request.cooperative = true;
    launch(launch_request, parameters);
  });
}
