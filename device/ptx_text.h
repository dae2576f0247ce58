// The PTX of a kernel image as text.
#pragma once

#include <string>
#include <string_view>

#include "device/status.h"

namespace flashback {

// `ptx` of a KernelImage: text, which is given back as it is, or compressed by gzip, as images are embedded.
// Text with the lines of its sources says the same again and again: it is eight times as long as its
// compressed form, and was three quarters of the library.
Status ptx_text(std::string_view ptx, std::string* text);

}  // namespace flashback
