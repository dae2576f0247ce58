#include "emulator/machine/registers.h"

#include <cstring>

#include "emulator/machine/address_space.h"
#include "emulator/machine/cta.h"
#include "emulator/machine/launch_state.h"

namespace flashback::emulator {
namespace {

template <class F>
void fill(std::byte* registers, const Preset& preset, F&& value_of_lane) {
  std::byte* to = registers + preset.slot;
  if (preset.bytes == 0) {
    LaneMask bits = 0;
    for (int l = 0; l < 32; ++l) bits |= LaneMask{value_of_lane(l) != 0} << l;
    std::memcpy(to, &bits, sizeof bits);
    return;
  }
  for (int l = 0; l < 32; ++l) {
    const std::uint64_t value = value_of_lane(l);
    std::memcpy(to + l * preset.bytes, &value, preset.bytes);  // little endian: the low bytes come first
  }
}

bool is_of_warp(const Preset& preset) {
  if (preset.kind == Preset::Kind::kLocal || preset.kind == Preset::Kind::kShared) return true;
  if (preset.kind != Preset::Kind::kSpecial) return false;
  switch (static_cast<Special>(preset.value)) {
    case Special::kTidX:
    case Special::kTidY:
    case Special::kTidZ:
    case Special::kCtaidX:
    case Special::kCtaidY:
    case Special::kCtaidZ:
    case Special::kWarpId:
    case Special::kSmId:
    case Special::kClusterIdX:
    case Special::kClusterIdY:
    case Special::kClusterIdZ:
    case Special::kClusterCtaidX:
    case Special::kClusterCtaidY:
    case Special::kClusterCtaidZ:
    case Special::kClusterCtaRank:
      return true;
    default:
      return false;
  }
}

std::uint64_t special_of_launch(const LaunchState& launch, Special special, int lane) {
  switch (special) {
    case Special::kNtidX:
      return launch.block.x;
    case Special::kNtidY:
      return launch.block.y;
    case Special::kNtidZ:
      return launch.block.z;
    case Special::kNctaidX:
      return launch.grid.x;
    case Special::kNctaidY:
      return launch.grid.y;
    case Special::kNctaidZ:
      return launch.grid.z;
    case Special::kLaneId:
      return static_cast<std::uint64_t>(lane);
    case Special::kNWarpId:
      return 64;  // warp slots of a multiprocessor, not of the CTA
    case Special::kLaneMaskEq:
      return 1u << lane;
    case Special::kLaneMaskLt:
      return (1u << lane) - 1;
    case Special::kLaneMaskLe:
      return (2u << lane) - 1;
    case Special::kLaneMaskGt:
      return ~((2u << lane) - 1);
    case Special::kLaneMaskGe:
      return ~((1u << lane) - 1);
    case Special::kNclusterIdX:
      return launch.clusters().x;
    case Special::kNclusterIdY:
      return launch.clusters().y;
    case Special::kNclusterIdZ:
      return launch.clusters().z;
    case Special::kClusterNctaidX:
      return launch.cluster.x;
    case Special::kClusterNctaidY:
      return launch.cluster.y;
    case Special::kClusterNctaidZ:
      return launch.cluster.z;
    case Special::kClusterNctaRank:
      return launch.cluster_size();
    case Special::kIsExplicitCluster:
      return launch.cluster_size() > 1 || launch.program->requires_cluster();
    case Special::kDynamicSharedSize:
      return launch.dynamic_shared_bytes;
    case Special::kTotalSharedSize:
      return launch.shared_bytes();
    default:
      return 0;
  }
}

std::uint64_t special_of_warp(const Cta& cta, int warp, Special special, int lane) {
  const Dim3 &block = cta.launch().block, &cluster = cta.launch().cluster;
  const std::uint32_t thread = static_cast<std::uint32_t>(32 * warp + lane);
  switch (special) {
    case Special::kTidX:
      return thread % block.x;
    case Special::kTidY:
      return thread / block.x % block.y;
    case Special::kTidZ:
      return thread / block.x / block.y;
    case Special::kCtaidX:
      return cta.index().x;
    case Special::kCtaidY:
      return cta.index().y;
    case Special::kCtaidZ:
      return cta.index().z;
    case Special::kWarpId:
      return static_cast<std::uint64_t>(warp);
    case Special::kSmId:
      return cta.number() % static_cast<std::uint64_t>(cta.launch().multiprocessors);
    case Special::kClusterIdX:
      return cta.index().x / cluster.x;
    case Special::kClusterIdY:
      return cta.index().y / cluster.y;
    case Special::kClusterIdZ:
      return cta.index().z / cluster.z;
    case Special::kClusterCtaidX:
      return cta.index().x % cluster.x;
    case Special::kClusterCtaidY:
      return cta.index().y % cluster.y;
    case Special::kClusterCtaidZ:
      return cta.index().z % cluster.z;
    case Special::kClusterCtaRank:
      return cta.rank();
    default:
      return 0;
  }
}

}  // namespace

StartRegisters::StartRegisters(const LaunchState& launch) {
  const Program& program = *launch.program;
  image_.assign(program.register_bytes, std::byte{0xff});
  for (const Preset& preset : program.presets) {
    if (is_of_warp(preset)) {
      of_warp_.push_back(preset);
      continue;
    }
    fill(image_.data(), preset, [&](int lane) -> std::uint64_t {
      switch (preset.kind) {
        case Preset::Kind::kBits:
        case Preset::Kind::kAddress:
          return preset.value;
        case Preset::Kind::kSpecial:
          return special_of_launch(launch, static_cast<Special>(preset.value), lane);
        case Preset::Kind::kParameter:
          return reinterpret_cast<std::uintptr_t>(launch.parameters) + preset.value;
        case Preset::Kind::kShared:
        case Preset::Kind::kLocal:
          break;
      }
      return 0;
    });
  }
}

void StartRegisters::copy_to(std::byte* registers, const Cta& cta, int warp, const std::byte* local) const {
  std::memcpy(registers, image_.data(), image_.size());
  for (const Preset& preset : of_warp_) {
    fill(registers, preset, [&](int lane) -> std::uint64_t {
      if (preset.kind == Preset::Kind::kLocal) {
        const std::uint64_t bytes = cta.launch().program->local_bytes;
        return reinterpret_cast<std::uintptr_t>(local) + static_cast<std::uint64_t>(lane) * bytes +
               preset.value;
      }
      if (preset.kind == Preset::Kind::kShared) return cta.shared_begin() + preset.value;
      return special_of_warp(cta, warp, static_cast<Special>(preset.value), lane);
    });
  }
}

}  // namespace flashback::emulator
