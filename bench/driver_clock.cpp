#include "bench/driver_clock.h"

#include <bit>
#include <vector>

#include "bench/median.h"

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
    Result result = 0;
    const double time = nanoseconds_of([&] { result = (inner->*kMember)(arguments...); });
    if constexpr (kSame<kMember, &Driver::launch> || kSame<kMember, &Driver::tensor_map_encode>) {
      spent.launch_and_encode_ns += time;
    } else {
      spent.other_ns += time;
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

// What current context, and what function: never looked into.
char something;

template <int kMajor>
Result attribute(int* value, cuda::DeviceAttribute which, cuda::DeviceNumber) {
  *value = which == cuda::kCapabilityMajor ? kMajor : which == cuda::kMultiprocessorCount ? 132 : 0;
  return 0;
}

}  // namespace

double empty_interval_ns() {
  static const double median_ns = [] {
    std::vector<double> times;
    for (int i = 0; i < 1001; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
      times.push_back(time.count());
    }
    return median(times);
  }();
  return median_ns;
}

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
  // The device's context is current, as where a framework is at work.
  table.context_current = [](cuda::Context* context) {
    *context = std::bit_cast<cuda::Context>(&something);
    return 0;
  };
  table.primary_context_retain = [](cuda::Context* context, cuda::DeviceNumber) {
    *context = std::bit_cast<cuda::Context>(&something);
    return 0;
  };
  table.kernel_function = [](cuda::Function* function, cuda::Kernel) {
    *function = std::bit_cast<cuda::Function>(&something);
    return 0;
  };
  table.device_attribute = major == 9 ? attribute<9> : attribute<10>;
  return table;
}

}  // namespace flashback::bench
