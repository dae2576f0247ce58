// The device, of which there is one.
#include <cstring>

#include "emulator/cuda/driver/face.h"

namespace flashback::emulator::cuda::driver {
namespace {

int attribute(int id) {
  int value = 0;
  require(gpu_attribute(process().gpu, id, &value));
  return value;
}

constexpr const char* kPciBusId = "0000:00:00.0";

}  // namespace
}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuDeviceGetCount(int* count) {
  return answer([&] { give(count, 1); });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return answer([&] {
    require_device(ordinal);
    give(device, 0);
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return answer([&] {
    require_device(device);
    require(name != nullptr && length > 0);
    std::strncpy(name, process().gpu.name, static_cast<std::size_t>(length));
    name[length - 1] = '\0';
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return answer([&] {
    require_device(device);
    require(uuid != nullptr);
    *uuid = {};
    std::strncpy(uuid->bytes, "emulated", sizeof uuid->bytes);
  });
}

CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  return answer([&] {
    require_device(device);
    give(bytes, process().gpu.memory_bytes);
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute id, CUdevice device) {
  return answer([&] {
    require_device(device);
    give(value, attribute(id));
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return answer([&] {
    require_device(device);
    give(major, process().gpu.capability_major);
    give(minor, process().gpu.capability_minor);
  });
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  return answer([&] {
    require_device(device);
    require(id != nullptr && length > static_cast<int>(std::strlen(kPciBusId)));
    std::strcpy(id, kPciBusId);
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return answer([&] {
    require_device(device);
    require_device(peer);
    give(can, 0);
  });
}

extern "C" {  // of cudaProfiler.h; nobody profiles

CUresult cuProfilerStart() {
  return answer([] {});
}

CUresult cuProfilerStop() {
  return answer([] {});
}

}  // extern "C"
