// Copies and fills of the runtime.
#include "emulator/cuda/copy.h"

#include "emulator/cuda/runtime/face.h"

namespace flashback::emulator::cuda::runtime {
namespace {

struct Sides {
  Side to, from;
};

Sides sides(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return {Side::kHost, Side::kHost};
    case cudaMemcpyHostToDevice:
      return {Side::kDevice, Side::kHost};
    case cudaMemcpyDeviceToHost:
      return {Side::kHost, Side::kDevice};
    case cudaMemcpyDeviceToDevice:
      return {Side::kDevice, Side::kDevice};
    case cudaMemcpyDefault:
      return {Side::kEither, Side::kEither};
  }
  refuse(Error::kInvalidMemcpyDirection);
}

void copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
               cudaMemcpyKind kind) {
  const Sides of = sides(kind);
  copy({to, to_pitch, 0, of.to}, {from, from_pitch, 0, of.from}, {width, height, 1});
}

void copy_bytes(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  copy_rows(to, bytes, from, bytes, bytes, 1, kind);
}

Box box(const cudaPitchedPtr& pointer, const cudaPos& position, Side side) {
  const size_t plane = pointer.pitch * pointer.ysize;
  auto* begin =
      static_cast<std::byte*>(pointer.ptr) + position.z * plane + position.y * pointer.pitch + position.x;
  return {begin, pointer.pitch, plane, side};
}

void copy_box(const cudaMemcpy3DParms* parameters) {
  require(parameters != nullptr);
  if (parameters->srcArray != nullptr || parameters->dstArray != nullptr) {
    refuse(Error::kNotSupported, "cudaMemcpy3D of a CUDA array is not provided");
  }
  const Sides of = sides(parameters->kind);
  const cudaExtent& extent = parameters->extent;
  copy(box(parameters->dstPtr, parameters->dstPos, of.to),
       box(parameters->srcPtr, parameters->srcPos, of.from), {extent.width, extent.height, extent.depth});
}

void fill_bytes(void* to, int value, size_t bytes) {
  fill({to, bytes, 0, Side::kDevice}, {bytes}, static_cast<std::uint32_t>(value), 1);
}

void fill_rows(void* to, size_t pitch, int value, size_t width, size_t height) {
  fill({to, pitch, 0, Side::kDevice}, {width, height}, static_cast<std::uint32_t>(value), 1);
}

void fill_box(const cudaPitchedPtr& to, int value, const cudaExtent& extent) {
  fill({to.ptr, to.pitch, to.pitch * to.ysize, Side::kDevice}, {extent.width, extent.height, extent.depth},
       static_cast<std::uint32_t>(value), 1);
}

// Part of a variable.
void* within(const void* symbol, size_t offset, size_t bytes) {
  const GlobalMemory::Range range = variable_of(symbol);
  require(offset <= range.bytes() && bytes <= range.bytes() - offset);
  return reinterpret_cast<void*>(range.begin + offset);
}

// For the calls that take a stream: they are done when they return.
template <class Call>
cudaError_t answer_in(cudaStream_t stream, Call&& call) {
  return answer([&] {
    process().streams.of(stream);
    call();
  });
}

}  // namespace
}  // namespace flashback::emulator::cuda::runtime

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return answer([&] { copy_bytes(to, from, bytes, kind); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return answer_in(stream, [&] { copy_bytes(to, from, bytes, kind); });
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return answer([&] {
    require_device(to_device);
    require_device(from_device);
    copy_bytes(to, from, bytes, cudaMemcpyDeviceToDevice);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  return answer_in(stream, [&] {
    require_device(to_device);
    require_device(from_device);
    copy_bytes(to, from, bytes, cudaMemcpyDeviceToDevice);
  });
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  return answer([&] { copy_rows(to, to_pitch, from, from_pitch, width, height, kind); });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return answer_in(stream, [&] { copy_rows(to, to_pitch, from, from_pitch, width, height, kind); });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
  return answer([&] { copy_box(parameters); });
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return answer_in(stream, [&] { copy_box(parameters); });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return answer([&] { fill_bytes(to, value, bytes); });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return answer_in(stream, [&] { fill_bytes(to, value, bytes); });
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return answer([&] { fill_rows(to, pitch, value, width, height); });
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return answer_in(stream, [&] { fill_rows(to, pitch, value, width, height); });
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return answer([&] { fill_box(to, value, extent); });
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return answer_in(stream, [&] { fill_box(to, value, extent); });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return answer([&] { copy_bytes(within(symbol, offset, bytes), from, bytes, kind); });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return answer_in(stream, [&] { copy_bytes(within(symbol, offset, bytes), from, bytes, kind); });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return answer([&] { copy_bytes(to, within(symbol, offset, bytes), bytes, kind); });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return answer_in(stream, [&] { copy_bytes(to, within(symbol, offset, bytes), bytes, kind); });
}
