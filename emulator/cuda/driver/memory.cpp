// Memory of the driver: allocation and what is known of an address.
#include "emulator/cuda/memory.h"

#include <algorithm>

#include "emulator/cuda/driver/face.h"

namespace flashback::emulator::cuda::driver {
namespace {

void allocate(CUdeviceptr* address, std::size_t bytes, MemoryKind kind, unsigned flags = 0) {
  require(address != nullptr && bytes != 0);
  *address = reinterpret_cast<CUdeviceptr>(process().memory.allocate(bytes, kind, flags));
}

void allocate_host(void** address, std::size_t bytes, unsigned flags) {
  require(address != nullptr && bytes != 0);
  *address = process().memory.allocate(bytes, MemoryKind::kPinned, flags);
}

void release(CUdeviceptr address) {
  if (address != 0) process().memory.release(pointer(address), false);
}

bool is_of_host(const Block& block) {
  return block.kind == MemoryKind::kPinned || block.kind == MemoryKind::kRegistered;
}

Block block_of(const void* address) {
  const std::optional<Block> block = process().memory.find(address);
  require(block.has_value());
  return *block;
}

// What cuPointerGetAttribute writes to `data`.
void give_attribute(void* data, CUpointer_attribute id, CUdeviceptr address) {
  require(data != nullptr);
  const Block block = block_of(pointer(address));
  switch (id) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(data) = reinterpret_cast<CUcontext>(&current_context());
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<CUmemorytype*>(data) = is_of_host(block) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(id == CU_POINTER_ATTRIBUTE_DEVICE_POINTER || is_of_host(block) ||
              block.kind == MemoryKind::kManaged);
      *static_cast<CUdeviceptr*>(data) = address;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<int*>(data) = block.kind == MemoryKind::kManaged;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = 0;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = block.range.begin;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(data) = block.range.bytes();
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<int*>(data) = 1;
      break;
    default:
      refuse(Error::kNotSupported);
  }
}

}  // namespace
}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  return answer_in_context([&] { allocate(address, bytes, MemoryKind::kDevice); });
}

CUresult cuMemFree(CUdeviceptr address) {
  return answer_in_context([&] { release(address); });
}

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  return answer_in_context([&] {
    process().streams.of(stream);
    allocate(address, bytes, MemoryKind::kDevice);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return answer_in_context([&] {
    process().streams.of(stream);
    release(address);
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags) {
  return answer_in_context([&] { allocate(address, bytes, MemoryKind::kManaged, flags); });
}

CUresult cuMemAllocPitch(CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
                         unsigned element_bytes) {
  return answer_in_context([&] {
    require(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
    give(pitch, row_pitch(width));
    allocate(address, *pitch * height, MemoryKind::kDevice);
  });
}

CUresult cuMemAllocHost(void** address, std::size_t bytes) {
  return answer_in_context([&] { allocate_host(address, bytes, 0); });
}

CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  return answer_in_context([&] { allocate_host(address, bytes, flags); });
}

CUresult cuMemFreeHost(void* address) {
  return answer_in_context([&] { process().memory.release(address, true); });
}

CUresult cuMemHostRegister(void* address, std::size_t bytes, unsigned flags) {
  return answer_in_context([&] { process().memory.register_host(address, bytes, flags); });
}

CUresult cuMemHostUnregister(void* address) {
  return answer_in_context([&] { process().memory.unregister_host(address); });
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned flags) {
  return answer_in_context([&] {
    require(flags == 0 && is_of_host(block_of(host)));
    give(device, reinterpret_cast<CUdeviceptr>(host));
  });
}

CUresult cuMemHostGetFlags(unsigned* flags, void* host) {
  return answer_in_context([&] {
    const Block block = block_of(host);
    require(is_of_host(block));
    give(flags, block.flags);
  });
}

CUresult cuMemGetInfo(std::size_t* available, std::size_t* total) {
  return answer_in_context([&] {
    give(total, process().gpu.memory_bytes);
    give(available, process().memory.available_bytes());
  });
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  return answer_in_context([&] {
    const std::optional<Block> block = process().memory.find(pointer(address));
    require(block.has_value(), Error::kNotFound);
    if (base != nullptr) *base = block->range.begin;
    if (bytes != nullptr) *bytes = block->range.bytes();
  });
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute id, CUdeviceptr address) {
  return answer_in_context([&] { give_attribute(data, id, address); });
}

// Of an address that is not known all attributes are zero.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* ids, void** data, CUdeviceptr address) {
  return answer_in_context([&] {
    require(ids != nullptr && data != nullptr);
    const bool known = process().memory.find(pointer(address)).has_value();
    for (unsigned i = 0; i < count; ++i) {
      if (known) {
        give_attribute(data[i], ids[i], address);
      } else {
        *static_cast<int*>(data[i]) = 0;
      }
    }
  });
}

// Where managed memory lies cannot change a result.
CUresult cuMemPrefetchAsync(CUdeviceptr address, std::size_t bytes, CUmemLocation, unsigned,
                            CUstream stream) {
  return answer_in_context([&] {
    process().streams.of(stream);
    require(process().memory.contains(address, bytes));
  });
}

CUresult cuMemAdvise(CUdeviceptr address, std::size_t bytes, CUmem_advise, CUmemLocation) {
  return answer_in_context([&] { require(process().memory.contains(address, bytes)); });
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, std::size_t, unsigned) {
  return answer_in_context([&] {
    process().streams.of(stream);
    block_of(pointer(address));
  });
}
