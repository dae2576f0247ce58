#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace flashback::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

Status load(Driver* driver) {
  // Never closed: the driver keeps threads of its own.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) return device_failure(fmt::format("no CUDA driver on this machine: {}", dlerror()));
#define FLASHBACK_LOAD(member, symbol, parameters)                                                     \
  driver->member = reinterpret_cast<decltype(driver->member)>(dlsym(library, #symbol));                \
  if (!driver->member) {                                                                               \
    return device_failure(                                                                             \
        fmt::format("the CUDA driver ({}) has no {}; it is older than CUDA 12.1", kLibrary, #symbol)); \
  }
  FLASHBACK_CUDA_FUNCTIONS(FLASHBACK_LOAD)
#undef FLASHBACK_LOAD
  return driver->status(driver->init(0), "cuInit");
}

}  // namespace

Status Driver::status(Result result, const char* call) const {
  if (result == 0) return {};
  const char *name = nullptr, *text = nullptr;
  error_name(result, &name);
  error_string(result, &text);
  return device_failure(fmt::format("{}: {} ({})", call,
                                    name ? name : fmt::format("error {}", result).c_str(),
                                    text ? text : "the driver has no text for it"));
}

Status open_driver(const Driver** driver) {
  struct Opened {
    Driver driver;
    Status status;
    Opened() : status(load(&driver)) {}
  };
  static const Opened opened;
  *driver = &opened.driver;
  return opened.status;
}

}  // namespace flashback::cuda
