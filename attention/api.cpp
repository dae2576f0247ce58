// The C functions: a thin coat over the internal ones. No exception and no text leaves through them but by
// `message`.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string_view>

#include "attention/device_handle.h"
#include "attention/launch.h"

namespace flashback {
namespace {

flashback_status code_of(Code code) {
  switch (code) {
    case Code::kOk:
      return FLASHBACK_OK;
    case Code::kInvalid:
      return FLASHBACK_INVALID;
    case Code::kUnsupported:
      return FLASHBACK_UNSUPPORTED;
    case Code::kDevice:
      return FLASHBACK_DEVICE;
    case Code::kInternal:
      break;
  }
  return FLASHBACK_INTERNAL;
}

void write(flashback_message* message, std::string_view sentence) {
  if (!message) return;
  const std::size_t size = std::min(sentence.size(), sizeof message->text - 1);
  std::memcpy(message->text, sentence.data(), size);
  message->text[size] = '\0';
}

// Runs `body`, a function that returns Status, and reports it.
template <typename Body>
flashback_status report(flashback_message* message, Body body) noexcept {
  try {
    const Status status = body();
    write(message, status.sentence());
    return code_of(status.code());
  } catch (const std::bad_alloc&) {
    write(message, "the host is out of memory");
  } catch (const std::exception& e) {
    write(message, e.what());
  }
  return FLASHBACK_INTERNAL;
}

Status given(const void* argument, const char* name) {
  if (argument) return {};
  return invalid(fmt::format("{} is null; it must not be", name));
}

Status open_device(flashback_device** device, auto open) {
  if (Status s = given(device, "device"); !s.ok()) return s;
  auto opened = std::make_unique<flashback_device>();
  if (Status s = open(&opened->workbench); !s.ok()) return s;
  *device = opened.release();
  return {};
}

std::optional<Arch> arch_named(std::string_view word) {
  for (Arch arch : {Arch::kSm90, Arch::kSm100}) {
    if (word == name(arch)) return arch;
  }
  return std::nullopt;
}

// Reads the struct and makes the plan that `make` makes of it.
template <typename Arguments, typename Make>
Status plan_of(flashback_device* device, const Arguments* arguments, Make make, Plan* plan) {
  if (Status s = given(device, "device"); !s.ok()) return s;
  if (Status s = given(arguments, "arguments"); !s.ok()) return s;
  Problem problem;
  if (Status s = problem_from(*arguments, &problem); !s.ok()) return s;
  return make(Target(*device->workbench), problem, plan);
}

// The three functions of a pass.
template <typename Arguments>
flashback_status workspace(flashback_device* device, const Arguments* arguments, size_t* bytes,
                           flashback_message* message) {
  return report(message, [&] {
    Status s = given(bytes, "bytes");
    Plan plan;
    if (s.ok()) s = plan_of(device, arguments, make_plan, &plan);
    if (s.ok()) *bytes = plan.workspace.bytes;
    return s;
  });
}

template <typename Arguments>
flashback_status can_run(flashback_device* device, const Arguments* arguments, flashback_message* message) {
  return report(message, [&] {
    Plan plan;
    return plan_of(device, arguments, make_bound_plan, &plan);
  });
}

template <typename Arguments>
flashback_status run(flashback_device* device, const Arguments* arguments, flashback_message* message) {
  return report(message, [&] {
    Plan plan;
    Status s = plan_of(device, arguments, make_bound_plan, &plan);
    if (s.ok()) s = enqueue(*device->workbench, &plan, arguments->stream);
    return s;
  });
}

}  // namespace
}  // namespace flashback

using namespace flashback;  // every function below is declared in flashback.h

flashback_status flashback_device_cuda(int ordinal, flashback_device** device, flashback_message* message) {
  return report(message, [&] {
    return open_device(device,
                       [&](std::unique_ptr<Workbench>* workbench) { return open_cuda(ordinal, workbench); });
  });
}

flashback_status flashback_device_emulator(const char* arch, int threads, flashback_device** device,
                                           flashback_message* message) {
  return report(message, [&]() -> Status {
    if (Status s = given(arch, "arch"); !s.ok()) return s;
    const std::optional<Arch> named = arch_named(arch);
    if (!named) return invalid(fmt::format("arch is \"{}\"; accepted: \"sm100\", \"sm90\"", arch));
    if (threads < 0) {
      return invalid(fmt::format(
          "threads is {}; it must not be negative; nearest accepted: 0, one for each core", threads));
    }
    return open_device(device, [&](std::unique_ptr<Workbench>* workbench) {
      return open_emulator(*named, threads, workbench);
    });
  });
}

void flashback_device_close(flashback_device* device) {
  delete device;
}

flashback_status flashback_allocate(flashback_device* device, size_t bytes, void** memory,
                                    flashback_message* message) {
  return report(message, [&] {
    Status s = given(device, "device");
    if (s.ok()) s = given(memory, "memory");
    Address address = 0;
    if (s.ok()) s = device->workbench->allocate(bytes, &address);
    if (s.ok()) *memory = std::bit_cast<void*>(address);
    return s;
  });
}

void flashback_release(flashback_device* device, void* memory) {
  if (device && memory) device->workbench->release(std::bit_cast<Address>(memory));
}

flashback_status flashback_upload(flashback_device* device, void* to, const void* from, size_t bytes,
                                  void* stream, flashback_message* message) {
  return report(message, [&] {
    Status s = given(device, "device");
    if (s.ok()) s = given(to, "to");
    if (s.ok()) s = given(from, "from");
    if (!s.ok()) return s;
    return device->workbench->upload(std::bit_cast<Address>(to), {static_cast<const std::byte*>(from), bytes},
                                     stream);
  });
}

flashback_status flashback_download(flashback_device* device, void* to, const void* from, size_t bytes,
                                    void* stream, flashback_message* message) {
  return report(message, [&] {
    Status s = given(device, "device");
    if (s.ok()) s = given(to, "to");
    if (s.ok()) s = given(from, "from");
    if (!s.ok()) return s;
    return device->workbench->download({static_cast<std::byte*>(to), bytes}, std::bit_cast<Address>(from),
                                       stream);
  });
}

flashback_status flashback_wait(flashback_device* device, void* stream, flashback_message* message) {
  return report(message, [&] {
    if (Status s = given(device, "device"); !s.ok()) return s;
    return device->workbench->wait(stream);
  });
}

flashback_status flashback_backward_workspace(flashback_device* device,
                                              const flashback_backward_arguments* arguments, size_t* bytes,
                                              flashback_message* message) {
  return workspace(device, arguments, bytes, message);
}

flashback_status flashback_backward_can_run(flashback_device* device,
                                            const flashback_backward_arguments* arguments,
                                            flashback_message* message) {
  return can_run(device, arguments, message);
}

flashback_status flashback_backward(flashback_device* device, const flashback_backward_arguments* arguments,
                                    flashback_message* message) {
  return run(device, arguments, message);
}

flashback_status flashback_forward_workspace(flashback_device* device,
                                             const flashback_forward_arguments* arguments, size_t* bytes,
                                             flashback_message* message) {
  return workspace(device, arguments, bytes, message);
}

flashback_status flashback_forward_can_run(flashback_device* device,
                                           const flashback_forward_arguments* arguments,
                                           flashback_message* message) {
  return can_run(device, arguments, message);
}

flashback_status flashback_forward(flashback_device* device, const flashback_forward_arguments* arguments,
                                   flashback_message* message) {
  return run(device, arguments, message);
}
