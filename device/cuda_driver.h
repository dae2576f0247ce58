// The part of the CUDA driver's interface that this library calls, declared here so that neither toolkit nor
// driver is needed to build it. Values and layouts are those of the driver's ABI;
// tests/device/cuda_driver_test.cpp compares them with <cuda.h> where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/status.h"

namespace flashback::cuda {

using Result = int;  // 0 is success
using DeviceNumber = int;
using DevicePointer = unsigned long long;
using Context = struct OpaqueContext*;
using Library = struct OpaqueLibrary*;
using Kernel = struct OpaqueKernel*;
using Function = struct OpaqueFunction*;
using StreamHandle = struct OpaqueStream*;
using Event = struct OpaqueEvent*;

enum DeviceAttribute : int { kMultiprocessorCount = 16, kCapabilityMajor = 75, kCapabilityMinor = 76 };
enum FunctionAttribute : int { kMaxDynamicSharedBytes = 8 };
enum CaptureMode : int { kCaptureRelaxed = 2 };

enum MapDataType : int {
  kMapFloat16 = 6,
  kMapFloat32 = 7,
  kMapBfloat16 = 9,
  kMapFloat32Ftz = 10,
  kMapTfloat32 = 11,
  kMapTfloat32Ftz = 12
};
enum MapInterleave : int { kMapNoInterleave = 0 };
enum MapSwizzle : int { kMapNoSwizzle = 0, kMapSwizzle32 = 1, kMapSwizzle64 = 2, kMapSwizzle128 = 3 };
enum MapPromotion : int { kMapPromote128 = 2 };
enum MapFill : int { kMapFillZero = 0 };

struct LaunchAttribute {
  enum Id : int { kCooperative = 2, kClusterDimension = 4 };
  Id id;
  char padding[8 - sizeof(int)];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int cooperative;
  };
};

struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

// One member a function: its type, its name here, and the symbol that the driver exports.
#define FLASHBACK_CUDA_FUNCTIONS(F)                                                                       \
  F(init, cuInit, (unsigned flags))                                                                       \
  F(error_name, cuGetErrorName, (Result result, const char** name))                                       \
  F(error_string, cuGetErrorString, (Result result, const char** text))                                   \
  F(device_count, cuDeviceGetCount, (int* count))                                                         \
  F(device_get, cuDeviceGet, (DeviceNumber * device, int ordinal))                                        \
  F(device_name, cuDeviceGetName, (char* name, int size, DeviceNumber device))                            \
  F(device_attribute, cuDeviceGetAttribute, (int* value, DeviceAttribute attribute, DeviceNumber device)) \
  F(device_bus, cuDeviceGetPCIBusId, (char* bus, int size, DeviceNumber device))                          \
  F(primary_context_retain, cuDevicePrimaryCtxRetain, (Context * context, DeviceNumber device))           \
  F(primary_context_release, cuDevicePrimaryCtxRelease_v2, (DeviceNumber device))                         \
  F(context_current, cuCtxGetCurrent, (Context * context))                                                \
  F(context_push, cuCtxPushCurrent_v2, (Context context))                                                 \
  F(context_pop, cuCtxPopCurrent_v2, (Context * context))                                                 \
  F(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (CaptureMode * mode))                       \
  F(library_load, cuLibraryLoadData,                                                                      \
    (Library * library, const void* code, void* jit_options, void** jit_values, unsigned jit_count,       \
     void* options, void** values, unsigned count))                                                       \
  F(library_unload, cuLibraryUnload, (Library library))                                                   \
  F(library_kernel, cuLibraryGetKernel, (Kernel * kernel, Library library, const char* name))             \
  F(kernel_function, cuKernelGetFunction, (Function * function, Kernel kernel))                           \
  F(kernel_set_attribute, cuKernelSetAttribute,                                                           \
    (FunctionAttribute attribute, int value, Kernel kernel, DeviceNumber device))                         \
  F(launch, cuLaunchKernelEx,                                                                             \
    (const LaunchConfig* config, Function function, void** parameters, void** extra))                     \
  F(tensor_map_encode, cuTensorMapEncodeTiled,                                                            \
    (void* map, MapDataType type, std::uint32_t rank, void* address, const std::uint64_t* dims,           \
     const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* element_strides,        \
     MapInterleave interleave, MapSwizzle swizzle, MapPromotion promotion, MapFill fill))                 \
  F(fill_words, cuMemsetD32Async,                                                                         \
    (DevicePointer to, unsigned value, std::size_t words, StreamHandle stream))                           \
  F(allocate, cuMemAlloc_v2, (DevicePointer * pointer, std::size_t bytes))                                \
  F(release, cuMemFree_v2, (DevicePointer pointer))                                                       \
  F(copy_to_device, cuMemcpyHtoDAsync_v2,                                                                 \
    (DevicePointer to, const void* from, std::size_t bytes, StreamHandle stream))                         \
  F(copy_to_host, cuMemcpyDtoHAsync_v2,                                                                   \
    (void* to, DevicePointer from, std::size_t bytes, StreamHandle stream))                               \
  F(stream_create, cuStreamCreate, (StreamHandle * stream, unsigned flags))                               \
  F(stream_destroy, cuStreamDestroy_v2, (StreamHandle stream))                                            \
  F(stream_wait, cuStreamSynchronize, (StreamHandle stream))                                              \
  F(event_create, cuEventCreate, (Event * event, unsigned flags))                                         \
  F(event_destroy, cuEventDestroy_v2, (Event event))                                                      \
  F(event_record, cuEventRecord, (Event event, StreamHandle stream))                                      \
  F(event_wait, cuEventSynchronize, (Event event))                                                        \
  F(event_elapsed, cuEventElapsedTime, (float* milliseconds, Event from, Event to))

struct Driver {
#define FLASHBACK_DECLARE(member, symbol, parameters) Result(*member) parameters = nullptr;
  FLASHBACK_CUDA_FUNCTIONS(FLASHBACK_DECLARE)
#undef FLASHBACK_DECLARE

  // "cuLibraryLoadData: CUDA_ERROR_INVALID_IMAGE (device kernel image is invalid)", or ok.
  Status status(Result result, const char* call) const;
};

// The driver of this machine, opened and initialised once in a process.
Status open_driver(const Driver** driver);

}  // namespace flashback::cuda
