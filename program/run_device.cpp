#include "program/run_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include "program/arguments.h"
#include "program/failure.h"

namespace flashback::program {

std::optional<int> parse_device(const std::string& text) {
  if (text == "emulator") return {};
  if (text.starts_with("cuda:"))
    return int(parse_whole("the number in --device cuda:N", text.substr(5), 0, 1023));
  refuse_word("--device", text, {"emulator", "cuda:N with a device number N"});
}

// Inputs, references, 16-bit copies and device memory together take at most 64 bytes for each element of q
// and k.
void demand_memory(const Shape& shape) {
  const double q_rows = double(shape.seqlen_q) * double(shape.heads);
  const double k_rows = double(shape.seqlen_k) * double(shape.kv_heads);
  const double needed = 64 * double(shape.batch) * double(shape.head_dim) * (q_rows + k_rows);
  const double present = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  if (needed <= present) return;
  refuse(fmt::format(
      "{} x {} rows of {} heads in {} batches need about {:.3g} GiB with their references; this machine has "
      "{:.3g} GiB",
      shape.seqlen_q, shape.seqlen_k, shape.heads, shape.batch, needed / 0x1p30, present / 0x1p30));
}

std::unique_ptr<Workbench> open_device(std::optional<int> cuda, std::optional<Arch> arch, int threads) {
  std::unique_ptr<Workbench> workbench;
  const Status status = cuda ? open_cuda(*cuda, &workbench) : open_emulator(*arch, threads, &workbench);
  if (!status.ok())
    refuse(status.sentence());  // whatever the reason: what was asked for is not to be had here
  if (arch && *arch != workbench->arch()) {
    refuse(fmt::format("--arch is {}, but the device cuda:{} is {}; leave --arch out", name(*arch), *cuda,
                       name(workbench->arch())));
  }
  return workbench;
}

}  // namespace flashback::program
