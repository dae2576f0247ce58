// Copies and fills of the driver.
#include "emulator/cuda/copy.h"

#include "emulator/cuda/driver/face.h"

namespace flashback::emulator::cuda::driver {
namespace {

void copy_bytes(Side to_side, const void* to, Side from_side, const void* from, std::size_t bytes) {
  copy({to, bytes, 0, to_side}, {from, bytes, 0, from_side}, {bytes});
}

void fill_values(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t value_bytes,
                 std::size_t width, std::size_t height) {
  fill({pointer(to), pitch, 0, Side::kDevice}, {width * value_bytes, height}, value, value_bytes);
}

// One side of a copy of rows.
Box box(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array, std::size_t x, std::size_t y,
        std::size_t z, std::size_t pitch, std::size_t height) {
  if (array != nullptr || type == CU_MEMORYTYPE_ARRAY) {
    refuse(Error::kNotSupported, "a copy of a CUDA array is not provided");
  }
  const bool of_host = type == CU_MEMORYTYPE_HOST;
  const auto* begin = static_cast<const std::byte*>(of_host ? host : pointer(device));
  const Side side = of_host ? Side::kHost : (type == CU_MEMORYTYPE_DEVICE ? Side::kDevice : Side::kEither);
  return {begin + z * pitch * height + y * pitch + x, pitch, pitch * height, side};
}

void copy_rows(const CUDA_MEMCPY2D* c) {
  require(c != nullptr);
  copy(box(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, 0, c->dstPitch,
           0),
       box(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, 0, c->srcPitch,
           0),
       {c->WidthInBytes, c->Height});
}

void copy_box(const CUDA_MEMCPY3D* c) {
  require(c != nullptr);
  copy(box(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, c->dstZ,
           c->dstPitch, c->dstHeight),
       box(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, c->srcZ,
           c->srcPitch, c->srcHeight),
       {c->WidthInBytes, c->Height, c->Depth});
}

// For the calls that take a stream: they are done when they return.
template <class Call>
CUresult answer_in(CUstream stream, Call&& call) {
  return answer_in_context([&] {
    process().streams.of(stream);
    call();
  });
}

}  // namespace
}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return answer_in_context(
      [&] { copy_bytes(Side::kEither, pointer(to), Side::kEither, pointer(from), bytes); });
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return answer_in(stream,
                   [&] { copy_bytes(Side::kEither, pointer(to), Side::kEither, pointer(from), bytes); });
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
  return answer_in_context([&] { copy_bytes(Side::kDevice, pointer(to), Side::kHost, from, bytes); });
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return answer_in(stream, [&] { copy_bytes(Side::kDevice, pointer(to), Side::kHost, from, bytes); });
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  return answer_in_context([&] { copy_bytes(Side::kHost, to, Side::kDevice, pointer(from), bytes); });
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return answer_in(stream, [&] { copy_bytes(Side::kHost, to, Side::kDevice, pointer(from), bytes); });
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return answer_in_context(
      [&] { copy_bytes(Side::kDevice, pointer(to), Side::kDevice, pointer(from), bytes); });
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return answer_in(stream,
                   [&] { copy_bytes(Side::kDevice, pointer(to), Side::kDevice, pointer(from), bytes); });
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D* c) {
  return answer_in_context([&] { copy_rows(c); });
}
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* c) {
  return answer_in_context([&] { copy_rows(c); });
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* c, CUstream stream) {
  return answer_in(stream, [&] { copy_rows(c); });
}
CUresult cuMemcpy3D(const CUDA_MEMCPY3D* c) {
  return answer_in_context([&] { copy_box(c); });
}
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D* c, CUstream stream) {
  return answer_in(stream, [&] { copy_box(c); });
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, std::size_t count) {
  return answer_in_context([&] { fill_values(to, 0, value, 1, count, 1); });
}
CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, std::size_t count) {
  return answer_in_context([&] { fill_values(to, 0, value, 2, count, 1); });
}
CUresult cuMemsetD32(CUdeviceptr to, unsigned value, std::size_t count) {
  return answer_in_context([&] { fill_values(to, 0, value, 4, count, 1); });
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return answer_in(stream, [&] { fill_values(to, 0, value, 1, count, 1); });
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return answer_in(stream, [&] { fill_values(to, 0, value, 2, count, 1); });
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return answer_in(stream, [&] { fill_values(to, 0, value, 4, count, 1); });
}
CUresult cuMemsetD2D8(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                      std::size_t height) {
  return answer_in_context([&] { fill_values(to, pitch, value, 1, width, height); });
}
CUresult cuMemsetD2D16(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                       std::size_t height) {
  return answer_in_context([&] { fill_values(to, pitch, value, 2, width, height); });
}
CUresult cuMemsetD2D32(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                       std::size_t height) {
  return answer_in_context([&] { fill_values(to, pitch, value, 4, width, height); });
}
