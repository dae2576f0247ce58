// The 16-bit formats of the inputs and the gradients.
#pragma once

namespace flashback::shared {

enum class Dtype { kBf16, kF16 };

}  // namespace flashback::shared
