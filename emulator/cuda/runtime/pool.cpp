// Memory pools of the runtime.
#include "emulator/cuda/pool.h"

#include "emulator/cuda/runtime/face.h"

namespace flashback::emulator::cuda::runtime {
namespace {

cudaMemPool_t handle(Pool* pool) {
  return reinterpret_cast<cudaMemPool_t>(pool);
}

}  // namespace
}  // namespace flashback::emulator::cuda::runtime

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return answer([&] {
    require_device(device);
    give(pool, handle(process().pools.default_pool()));
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return answer([&] {
    require_device(device);
    give(pool, handle(process().pools.current()));
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return answer([&] {
    require_device(device);
    process().pools.make_current(pool);
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return answer([&] {
    require(properties != nullptr && properties->allocType == cudaMemAllocationTypePinned);
    require_device(properties->location.id);
    give(pool, handle(process().pools.create()));
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return answer([&] { process().pools.destroy(pool); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return answer([&] { process().pools.of(pool).set(attribute, value); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return answer([&] { process().pools.of(pool).get(attribute, value); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return answer([&] { process().pools.of(pool); });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return answer([&] {
    process().pools.of(pool);
    const cudaError_t error = cudaMallocAsync(pointer, bytes, stream);
    require(error == cudaSuccess, Error(error));
  });
}
