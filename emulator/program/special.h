// Special registers by name.
#pragma once

#include <optional>
#include <string_view>

#include "emulator/program/program.h"

namespace flashback::emulator {

std::optional<Special> special_register(std::string_view name);
// Of its value in a register; 0 for a predicate.
int special_bytes(Special special);

}  // namespace flashback::emulator
