// Errors of the runtime.
#include "emulator/cuda/runtime/face.h"

namespace flashback::emulator::cuda::runtime {

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

}  // namespace flashback::emulator::cuda::runtime

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

cudaError_t cudaGetLastError() {
  const auto lost = static_cast<cudaError_t>(attempt([] {}));
  return std::exchange(last_error(), lost);
}

cudaError_t cudaPeekAtLastError() {
  return last_error();
}

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* text = error_text(error);
  return text != nullptr && text->runtime_name != nullptr ? text->runtime_name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* text = error_text(error);
  return text != nullptr && text->runtime_name != nullptr ? text->text : "unrecognized error code";
}
