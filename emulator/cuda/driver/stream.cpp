// Streams and events of the driver.
#include "emulator/cuda/stream.h"

#include "emulator/cuda/driver/face.h"

namespace flashback::emulator::cuda::driver {
namespace {

CUresult answer_if_stream(CUstream stream) {
  return answer_in_context([&] { process().streams.of(stream); });
}

CUresult answer_if_event(CUevent event) {
  return answer([&] { process().streams.event(event); });
}

void create(CUstream* stream, unsigned flags, int priority) {
  give(stream, reinterpret_cast<CUstream>(process().streams.create(flags, priority)));
}

}  // namespace
}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return answer_in_context([&] { create(stream, flags, kLeastPriority); });
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return answer_in_context([&] { create(stream, flags, priority); });
}
CUresult cuStreamDestroy(CUstream stream) {
  return answer([&] { process().streams.destroy(stream); });
}
CUresult cuStreamSynchronize(CUstream stream) {
  return answer_if_stream(stream);
}
CUresult cuStreamQuery(CUstream stream) {
  return answer_if_stream(stream);
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return answer_in_context([&] {
    process().streams.of(stream);
    process().streams.event(event);
  });
}
CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return answer_in_context([&] { give(flags, process().streams.of(stream).flags); });
}
CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return answer_in_context([&] { give(priority, process().streams.of(stream).priority); });
}
CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return answer_in_context([&] { give(id, process().streams.of(stream).id); });
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return answer_in_context([&] {
    process().streams.of(stream);
    give(context, reinterpret_cast<CUcontext>(&current_context()));
  });
}
CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return answer_in_context([&] {
    process().streams.of(stream);
    give(device, 0);
  });
}
// Capture is not provided, so that no stream is ever capturing.
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return answer_in_context([&] {
    process().streams.of(stream);
    give(status, CU_STREAM_CAPTURE_STATUS_NONE);
  });
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return answer([&] {
    thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    require(mode != nullptr);
    std::swap(*mode, current);
  });
}
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
  return answer_in_context([&] {
    process().streams.of(stream);
    require(callback != nullptr && flags == 0);
    callback(stream, CUDA_SUCCESS, data);
  });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return answer_in_context([&] {
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    require((flags & ~kKnown) == 0);
    give(event, reinterpret_cast<CUevent>(process().streams.create_event(flags)));
  });
}
CUresult cuEventDestroy(CUevent event) {
  return answer([&] { process().streams.destroy_event(event); });
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return answer([&] { process().streams.record(event, stream); });
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  return cuEventRecord(event, stream);
}
CUresult cuEventQuery(CUevent event) {
  return answer_if_event(event);
}
CUresult cuEventSynchronize(CUevent event) {
  return answer_if_event(event);
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  return answer([&] { give(milliseconds, process().streams.milliseconds(from, to)); });
}
