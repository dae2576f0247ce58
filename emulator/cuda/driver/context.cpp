// Contexts: which one a thread works in.
#include <vector>

#include "emulator/cuda/driver/face.h"

namespace flashback::emulator::cuda::driver {
namespace {

Handles<Context>& contexts() {
  static auto* contexts = new Handles<Context>;
  return *contexts;
}

Context& primary() {
  static Context* context = contexts().make();
  return *context;
}

std::vector<Context*>& stack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

// Null when there is none.
Context* current() {
  if (!stack().empty()) return stack().back();
  return process().primary_active ? &primary() : nullptr;
}

CUcontext handle(Context* context) {
  return reinterpret_cast<CUcontext>(context);
}

void push(CUcontext context) {
  stack().push_back(context == nullptr ? nullptr : &contexts().of(context));
}

}  // namespace

Context& current_context() {
  Context* context = current();
  require(context != nullptr, Error::kInvalidContext);
  return *context;
}

}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuInit(unsigned flags) {
  return result_of(attempt([&] {
    require(flags == 0);
    process().initialized = true;
  }));
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return answer([&] {
    require_device(device);
    give(context, handle(&primary()));
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return answer([&] { require_device(device); });
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return answer([&] { require_device(device); });
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return answer([&] {
    require_device(device);
    primary().flags = flags;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return answer([&] {
    require_device(device);
    give(flags, primary().flags);
    give(active, process().primary_active ? 1 : 0);
  });
}

CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams* parameters, unsigned flags, CUdevice device) {
  return answer([&] {
    require_device(device);
    if (parameters != nullptr &&
        (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr)) {
      refuse(Error::kNotSupported, "cuCtxCreate with parameters is not provided");
    }
    Context* made = contexts().make(Context{flags});
    give(context, handle(made));
    stack().push_back(made);
  });
}

CUresult cuCtxDestroy(CUcontext context) {
  return answer([&] {
    Context* destroyed = &contexts().of(context);
    require(destroyed != &primary(), Error::kInvalidContext);
    std::erase(stack(), destroyed);
    contexts().remove(context);
  });
}

CUresult cuCtxPushCurrent(CUcontext context) {
  return answer([&] { push(context); });
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  return answer([&] {
    require(!stack().empty(), Error::kInvalidContext);
    if (context != nullptr) *context = handle(stack().back());
    stack().pop_back();
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return answer([&] {
    if (!stack().empty()) stack().pop_back();
    push(context);
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return answer([&] { give(context, handle(current())); });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return answer_in_context([&] { give(device, 0); });
}

CUresult cuCtxGetFlags(unsigned* flags) {
  return answer_in_context([&] { give(flags, current_context().flags); });
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return answer([&] {
    if (context != nullptr) contexts().of(context);
    give(version, 3020u);  // of contexts, not of CUDA
  });
}

// Everything is done when its call returns.
CUresult cuCtxSynchronize() {
  return answer_in_context([] {});
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return answer_in_context([&] {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
  });
}

CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  return answer_in_context([&] { give(value, process().limits.get(limit)); });
}

CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
  return answer_in_context([&] { process().limits.set(limit, value); });
}
