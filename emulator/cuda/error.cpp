#include "emulator/cuda/error.h"

#include <algorithm>
#include <iterator>

namespace flashback::emulator::cuda {
namespace {

constexpr ErrorText kTexts[] = {
#include "emulator/cuda/error_table.inc"
};

}  // namespace

const ErrorText* error_text(int code) {
  const auto* found = std::lower_bound(std::begin(kTexts), std::end(kTexts), code,
                                       [](const ErrorText& text, int wanted) { return text.code < wanted; });
  return found != std::end(kTexts) && found->code == code ? found : nullptr;
}

}  // namespace flashback::emulator::cuda
