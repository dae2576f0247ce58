// Text -> syntax. A fault of the text is a value: one sentence with its line and column.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "emulator/ptx/module.h"

namespace flashback::emulator::ptx {

struct ParseResult {
  std::unique_ptr<Module> module;  // null when `error` says something
  std::string error;
};

ParseResult parse(std::string_view text);

}  // namespace flashback::emulator::ptx
