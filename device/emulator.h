// The one symbol that libflashback_emulator.so exports, and what it does: open_emulator of device.h.
#pragma once

#include <memory>

#include "device/device.h"

extern "C" void flashback_emulator_open_v1(flashback::Arch arch, int threads, flashback::Status* status,
                                           std::unique_ptr<flashback::Workbench>* workbench);

namespace flashback {

inline constexpr const char* kEmulatorLibrary = "libflashback_emulator.so";
inline constexpr const char* kEmulatorSymbol = "flashback_emulator_open_v1";
using OpenEmulator = decltype(&flashback_emulator_open_v1);

}  // namespace flashback
