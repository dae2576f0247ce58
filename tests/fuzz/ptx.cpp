// Any text: a module, or a sentence that says what is wrong with it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "emulator/ptx/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto result = flashback::emulator::ptx::parse({reinterpret_cast<const char*>(data), size});
  if ((result.module == nullptr) == result.error.empty()) std::abort();
  return 0;
}
