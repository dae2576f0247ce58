// Any bytes for the arguments of a pass on the emulator: refused in a sentence, or run. Where the lowest bit
// of `size` is set, lengths are made small and addresses moved into memory of the device, so that kernels
// run: there a fault is an answer too, for strides may lead anywhere.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "flashback/flashback.h"

namespace {

constexpr std::uintptr_t kMemoryBytes = 1 << 20, kNumbersBytes = 4096;

struct Device {
  explicit Device(const char* arch) {
    void* allocated = nullptr;
    if (flashback_device_emulator(arch, 1, &device, nullptr) != FLASHBACK_OK) std::abort();
    if (flashback_allocate(device, kMemoryBytes, &allocated, nullptr) != FLASHBACK_OK) std::abort();
    memory = static_cast<char*>(allocated);
    if (flashback_allocate(device, kNumbersBytes, &allocated, nullptr) != FLASHBACK_OK) std::abort();
    numbers = static_cast<char*>(allocated);
    std::memset(memory, 0, kMemoryBytes);
    std::memset(numbers, 0, kNumbersBytes);  // lengths: every sequence is empty
  }
  flashback_device* device = nullptr;
  char *memory, *numbers;
};

// The calls of a pass, and where its struct has addresses.
struct Forward {
  using Arguments = flashback_forward_arguments;
  static constexpr auto workspace = flashback_forward_workspace;
  static constexpr auto can_run = flashback_forward_can_run;
  static constexpr auto run = flashback_forward;
  template <class Place>
  static void addresses(Arguments& a, const Place& place) {
    for (flashback_tensor* t : {&a.q, &a.k, &a.v, &a.out}) place(t->data);
    place(a.lse.data);
    place(a.sink);
  }
};

struct Backward {
  using Arguments = flashback_backward_arguments;
  static constexpr auto workspace = flashback_backward_workspace;
  static constexpr auto can_run = flashback_backward_can_run;
  static constexpr auto run = flashback_backward;
  template <class Place>
  static void addresses(Arguments& a, const Place& place) {
    for (flashback_tensor* t : {&a.q, &a.k, &a.v, &a.out, &a.dout, &a.dq, &a.dk, &a.dv}) place(t->data);
    place(a.lse.data);
    place(a.dlse.data);
    place(a.sink);
    place(a.dsink);
  }
};

// A null address stays one; any other is moved to a multiple of 16 bytes (most of the time) in `memory`.
template <class Pointer>
void move(Pointer*& pointer, char* memory, std::uintptr_t bytes) {
  if (pointer)
    pointer = reinterpret_cast<Pointer*>(memory + reinterpret_cast<std::uintptr_t>(pointer) % bytes);
}

template <class Pass>
void shrink(typename Pass::Arguments& a, const Device& d) {
  const auto below = [](std::int64_t& value, std::int64_t limit) { value = (value % limit + limit) % limit; };
  below(a.batch, 3);
  below(a.heads, 5);
  below(a.kv_heads, 5);
  below(a.seqlen_q, 140);
  below(a.seqlen_k, 140);
  below(a.head_dim, 136);
  Pass::addresses(a, [&](auto*& pointer) { move(pointer, d.memory, kMemoryBytes / 2); });
  for (const std::int32_t** lengths : {&a.cu_seqlens_q, &a.cu_seqlens_k, &a.seqused_q, &a.seqused_k})
    move(*lengths, d.numbers, kNumbersBytes / 2);
  a.workspace = d.memory + kMemoryBytes / 2;
  a.workspace_bytes = kMemoryBytes / 2;
  a.stream = nullptr;
}

template <class Pass>
void judge(const Device& d, const std::uint8_t* data, std::size_t size) {
  typename Pass::Arguments a;
  std::memset(&a, 0, sizeof a);
  std::memcpy(&a, data, std::min(size, sizeof a));
  const bool small = a.size & 1;
  a.size = sizeof a;  // every other size is refused at once
  if (small) shrink<Pass>(a, d);
  const auto answered = [](flashback_status status, const flashback_message& message) {
    if (status == FLASHBACK_INTERNAL || (status == FLASHBACK_OK) != (message.text[0] == '\0')) std::abort();
    return status == FLASHBACK_OK;
  };
  flashback_message message;
  std::size_t bytes = 0;
  const bool has_workspace = answered(Pass::workspace(d.device, &a, &bytes, &message), message);
  const bool can_run = answered(Pass::can_run(d.device, &a, &message), message);
  if (can_run && !has_workspace) std::abort();
  if (small && can_run) answered(Pass::run(d.device, &a, &message), message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Device blackwell("sm100"), hopper("sm90");
  for (const Device* device : {&blackwell, &hopper}) {
    judge<Forward>(*device, data, size);
    judge<Backward>(*device, data, size);
  }
  return 0;
}
