// Memory of the runtime: allocation and what is known of an address.
#include "emulator/cuda/memory.h"

#include "emulator/cuda/runtime/face.h"

namespace flashback::emulator::cuda::runtime {
namespace {

void allocate(void** pointer, size_t bytes, MemoryKind kind, unsigned flags = 0) {
  require(pointer != nullptr);
  *pointer = nullptr;
  if (bytes != 0) *pointer = process().memory.allocate(bytes, kind, flags);
}

void release(void* pointer, bool host) {
  if (pointer != nullptr) process().memory.release(pointer, host);
}

cudaMemoryType type_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kManaged:
      return cudaMemoryTypeManaged;
    case MemoryKind::kPinned:
    case MemoryKind::kRegistered:
      return cudaMemoryTypeHost;
    case MemoryKind::kDevice:
    case MemoryKind::kVariable:
      break;
  }
  return cudaMemoryTypeDevice;
}

}  // namespace
}  // namespace flashback::emulator::cuda::runtime

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return answer([&] { allocate(pointer, bytes, MemoryKind::kDevice); });
}

cudaError_t cudaFree(void* pointer) {
  return answer([&] { release(pointer, false); });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return answer([&] {
    process().streams.of(stream);
    allocate(pointer, bytes, MemoryKind::kDevice);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return answer([&] {
    process().streams.of(stream);
    release(pointer, false);
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return answer([&] {
    require(bytes != 0 && (flags == cudaMemAttachGlobal || flags == cudaMemAttachHost));
    allocate(pointer, bytes, MemoryKind::kManaged, flags);
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return answer([&] {
    give(pitch, row_pitch(width));
    allocate(pointer, *pitch * height, MemoryKind::kDevice);
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  return answer([&] {
    require(pitched != nullptr);
    *pitched = {nullptr, row_pitch(extent.width), extent.width, extent.height};
    allocate(&pitched->ptr, pitched->pitch * extent.height * extent.depth, MemoryKind::kDevice);
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return answer([&] { allocate(pointer, bytes, MemoryKind::kPinned); });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return answer([&] {
    constexpr unsigned kKnown = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    require((flags & ~kKnown) == 0);
    allocate(pointer, bytes, MemoryKind::kPinned, flags);
  });
}

cudaError_t cudaFreeHost(void* pointer) {
  return answer([&] { release(pointer, true); });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return answer([&] { process().memory.register_host(pointer, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return answer([&] { process().memory.unregister_host(pointer); });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return answer([&] {
    const auto block = process().memory.find(host);
    require(flags == 0 && block && type_of(block->kind) == cudaMemoryTypeHost);
    give(device, host);  // host and device see the same addresses
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return answer([&] {
    const auto block = process().memory.find(host);
    require(block && type_of(block->kind) == cudaMemoryTypeHost);
    give(flags, block->flags);
  });
}

cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  return answer([&] {
    give(total, process().gpu.memory_bytes);
    give(available, process().memory.available_bytes());
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return answer([&] {
    require(attributes != nullptr);
    *attributes = {};
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -2;  // as CUDA says of memory that it does not know
    attributes->hostPointer = const_cast<void*>(pointer);
    if (const auto block = process().memory.find(pointer)) {
      attributes->type = type_of(block->kind);
      attributes->device = 0;
      attributes->devicePointer = const_cast<void*>(pointer);
      if (attributes->type == cudaMemoryTypeDevice) attributes->hostPointer = nullptr;
    }
  });
}

// Where managed memory lies cannot change a result.
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation, unsigned,
                                 cudaStream_t stream) {
  return answer([&] {
    process().streams.of(stream);
    require(process().memory.contains(reinterpret_cast<flashback::Address>(pointer), bytes));
  });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t, unsigned) {
  return answer([&] {
    process().streams.of(stream);
    require(process().memory.find(pointer).has_value());
  });
}

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation) {
  return answer(
      [&] { require(process().memory.contains(reinterpret_cast<flashback::Address>(pointer), bytes)); });
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return answer([&] { give(pointer, reinterpret_cast<void*>(variable_of(symbol).begin)); });
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return answer([&] { give(bytes, variable_of(symbol).bytes()); });
}
