// Special registers by name.
#pragma once

#include <optional>
#include <string_view>

#include "emulator/program/program.h"

namespace flashback::emulator {

std::optional<Special> special_register(std::string_view name);

}  // namespace flashback::emulator
