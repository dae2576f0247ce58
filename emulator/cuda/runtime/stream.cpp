// Streams and events of the runtime.
#include "emulator/cuda/stream.h"

#include "emulator/cuda/runtime/face.h"

namespace flashback::emulator::cuda::runtime {
namespace {

cudaError_t answer_if_stream(cudaStream_t stream) {
  return answer([&] { process().streams.of(stream); });
}

void create(cudaStream_t* stream, unsigned flags, int priority) {
  give(stream, reinterpret_cast<cudaStream_t>(process().streams.create(flags, priority)));
}

void create_event(cudaEvent_t* event, unsigned flags) {
  constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  require((flags & ~kKnown) == 0);
  give(event, reinterpret_cast<cudaEvent_t>(process().streams.create_event(flags)));
}

}  // namespace
}  // namespace flashback::emulator::cuda::runtime

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return answer([&] { create(stream, cudaStreamDefault, kLeastPriority); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return answer([&] { create(stream, flags, kLeastPriority); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return answer([&] { create(stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return answer([&] { process().streams.destroy(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer_if_stream(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return answer_if_stream(stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return answer([&] {
    process().streams.of(stream);
    process().streams.event(event);
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return answer([&] { give(flags, process().streams.of(stream).flags); });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return answer([&] { give(priority, process().streams.of(stream).priority); });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return answer([&] { give(id, process().streams.of(stream).id); });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return answer([&] {
    process().streams.of(stream);
    give(device, 0);
  });
}

// Capture is not provided, so that no stream is ever capturing.
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return answer([&] {
    process().streams.of(stream);
    give(status, cudaStreamCaptureStatusNone);
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return answer([&] {
    thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
    require(mode != nullptr);
    std::swap(*mode, current);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return answer([&] {
    process().streams.of(stream);
    require(function != nullptr);
    function(data);
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned flags) {
  return answer([&] {
    process().streams.of(stream);
    require(callback != nullptr && flags == 0);
    callback(stream, cudaSuccess, data);
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return answer([&] { create_event(event, cudaEventDefault); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return answer([&] { create_event(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return answer([&] { process().streams.destroy_event(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer([&] { process().streams.record(event, stream); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return answer([&] { process().streams.event(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return cudaEventQuery(event);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return answer([&] { give(milliseconds, process().streams.milliseconds(from, to)); });
}
