#include "bench/driver_clock.h"

#include <chrono>

namespace flashback::bench {
namespace {

using cuda::Driver;
using cuda::Result;

// A table of functions has no place for state.
const Driver* inner = nullptr;
DriverTime spent;

template <auto kOne, auto kOther>
constexpr bool kSame = false;
template <auto kMember>
constexpr bool kSame<kMember, kMember> = true;

template <auto kMember, typename Function>
struct Timed;
template <auto kMember, typename... Arguments>
struct Timed<kMember, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    const auto start = std::chrono::steady_clock::now();
    const Result result = (inner->*kMember)(arguments...);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    if constexpr (kSame<kMember, &Driver::launch> || kSame<kMember, &Driver::tensor_map_encode>) {
      spent.launch_and_encode_ns += time.count();
    } else {
      spent.other_ns += time.count();
    }
    ++spent.calls;
    return result;
  }
};

template <typename Function>
struct Nothing;
template <typename... Arguments>
struct Nothing<Result (*)(Arguments...)> {
  static Result call(Arguments...) { return 0; }
};

template <int kMajor>
Result attribute(int* value, cuda::DeviceAttribute which, cuda::DeviceNumber) {
  *value = which == cuda::kCapabilityMajor ? kMajor : which == cuda::kMultiprocessorCount ? 132 : 0;
  return 0;
}

}  // namespace

Driver timed(const Driver& driver) {
  inner = &driver;
  Driver table = driver;
#define FLASHBACK_TIME(member, symbol, parameters) \
  table.member = &Timed<&Driver::member, decltype(Driver::member)>::call;
  FLASHBACK_CUDA_FUNCTIONS(FLASHBACK_TIME)
#undef FLASHBACK_TIME
  return table;
}

void reset_driver_time() {
  spent = {};
}

DriverTime driver_time() {
  return spent;
}

Driver null_driver(int major) {
  Driver table;
#define FLASHBACK_NOTHING(member, symbol, parameters) table.member = &Nothing<decltype(Driver::member)>::call;
  FLASHBACK_CUDA_FUNCTIONS(FLASHBACK_NOTHING)
#undef FLASHBACK_NOTHING
  table.device_count = [](int* count) {
    *count = 1;
    return 0;
  };
  table.allocate = [](cuda::DevicePointer* pointer, std::size_t bytes) {
    static cuda::DevicePointer next = 1 << 20;  // no one reads or writes there
    *pointer = next;
    next += (bytes + 255) / 256 * 256;
    return 0;
  };
  table.device_attribute = major == 9 ? attribute<9> : attribute<10>;
  return table;
}

}  // namespace flashback::bench
