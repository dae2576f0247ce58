// Errors of the driver.
#include "emulator/cuda/driver/face.h"

namespace flashback::emulator::cuda::driver {

CUresult result_of(Error error) {
  switch (error) {
    case Error::kInvalidConfiguration:
    case Error::kInvalidPitch:
    case Error::kInvalidMemcpyDirection:
      return CUDA_ERROR_INVALID_VALUE;
    case Error::kInvalidSymbol:
    case Error::kInvalidDeviceFunction:
      return CUDA_ERROR_NOT_FOUND;
    default:
      return static_cast<CUresult>(error);
  }
}

namespace {

CUresult give_text(CUresult error, const char** to, const char* ErrorText::*member) {
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* text = error_text(error);
  const bool known = text != nullptr && text->driver_name != nullptr;
  *to = known ? text->*member : nullptr;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuGetErrorName(CUresult error, const char** name) {
  return give_text(error, name, &ErrorText::driver_name);
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  return give_text(error, text, &ErrorText::text);
}
