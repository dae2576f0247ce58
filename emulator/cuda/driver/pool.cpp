// Memory pools of the driver.
#include "emulator/cuda/pool.h"

#include "emulator/cuda/driver/face.h"

namespace flashback::emulator::cuda::driver {
namespace {

CUmemoryPool handle(Pool* pool) {
  return reinterpret_cast<CUmemoryPool>(pool);
}

}  // namespace
}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return answer([&] {
    require_device(device);
    give(pool, handle(process().pools.default_pool()));
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return answer([&] {
    require_device(device);
    give(pool, handle(process().pools.current()));
  });
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return answer([&] {
    require_device(device);
    process().pools.make_current(pool);
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return answer([&] {
    require(properties != nullptr && properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
    require_device(properties->location.id);
    give(pool, handle(process().pools.create()));
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return answer([&] { process().pools.destroy(pool); });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return answer([&] { process().pools.of(pool).set(attribute, value); });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return answer([&] { process().pools.of(pool).get(attribute, value); });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  return answer([&] { process().pools.of(pool); });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return answer_in_context([&] {
    process().pools.of(pool);
    const CUresult result = cuMemAllocAsync(address, bytes, stream);
    require(result == CUDA_SUCCESS, Error(result));
  });
}
