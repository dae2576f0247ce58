// Any SPEC of `flashback check --ptx KERNEL --launch SPEC`: refused in a sentence, or launched on the
// emulator.
#include <cstdlib>
#include <new>

#include "program/failure.h"
#include "program/launch_spec.h"
#include "tests/fuzz/input_file.h"

namespace {

using namespace flashback;

constexpr const char* kKernel = R"(
.version 8.8
.target sm_100a
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 factor) {
  .reg .b64 %x;
  .reg .f32 %f, %v;
  ld.param.u64 %x, [x];
  ld.param.f32 %f, [factor];
  ld.global.f32 %v, [%x];
  mul.f32 %v, %v, %f;
  st.global.f32 [%x], %v;
  ret;
}
)";
constexpr std::uint64_t kMostThreads = 4096;  // more of the same would only take longer

// At most `kMostThreads` + 1.
std::uint64_t threads(const program::LaunchSpec& spec) {
  std::uint64_t product = 1;
  for (const std::uint32_t n :
       {spec.grid.x, spec.grid.y, spec.grid.z, spec.block.x, spec.block.y, spec.block.z})
    product = std::min<std::uint64_t>(product * n, kMostThreads + 1);
  return product;
}

}  // namespace

// A buffer may be larger than the machine; that is bad_alloc, as without the sanitizer.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=64";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  try {
    const program::LaunchSpec spec = program::read_launch_spec(input.path());
    if (threads(spec) > kMostThreads) return 0;
    std::unique_ptr<Workbench> workbench;
    if (!open_emulator(Arch::kSm100, 1, &workbench).ok()) std::abort();
    const Status status = program::launch(*workbench, spec, kKernel);
    if (status.ok() != status.sentence().empty()) std::abort();
  } catch (const program::Failure& failure) {
    if (failure.what()[0] == '\0') std::abort();
  } catch (const std::bad_alloc&) {
  }
  return 0;
}
