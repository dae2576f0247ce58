#include "emulator/program/special.h"

#include <unordered_map>

namespace flashback::emulator {

std::optional<Special> special_register(std::string_view name) {
  static const std::unordered_map<std::string_view, Special> kByName = {
      {"%tid.x", Special::kTidX},
      {"%tid.y", Special::kTidY},
      {"%tid.z", Special::kTidZ},
      {"%ntid.x", Special::kNtidX},
      {"%ntid.y", Special::kNtidY},
      {"%ntid.z", Special::kNtidZ},
      {"%ctaid.x", Special::kCtaidX},
      {"%ctaid.y", Special::kCtaidY},
      {"%ctaid.z", Special::kCtaidZ},
      {"%nctaid.x", Special::kNctaidX},
      {"%nctaid.y", Special::kNctaidY},
      {"%nctaid.z", Special::kNctaidZ},
      {"%laneid", Special::kLaneId},
      {"%warpid", Special::kWarpId},
      {"%nwarpid", Special::kNWarpId},
      {"%smid", Special::kSmId},
      {"%lanemask_eq", Special::kLaneMaskEq},
      {"%lanemask_lt", Special::kLaneMaskLt},
      {"%lanemask_le", Special::kLaneMaskLe},
      {"%lanemask_gt", Special::kLaneMaskGt},
      {"%lanemask_ge", Special::kLaneMaskGe},
      {"%cluster_ctarank", Special::kClusterCtaRank},
      {"%cluster_nctarank", Special::kClusterNctaRank},
      {"%cluster_ctaid.x", Special::kClusterCtaidX},
      {"%cluster_ctaid.y", Special::kClusterCtaidY},
      {"%cluster_ctaid.z", Special::kClusterCtaidZ},
      {"%cluster_nctaid.x", Special::kClusterNctaidX},
      {"%cluster_nctaid.y", Special::kClusterNctaidY},
      {"%cluster_nctaid.z", Special::kClusterNctaidZ},
      {"%clusterid.x", Special::kClusterIdX},
      {"%clusterid.y", Special::kClusterIdY},
      {"%clusterid.z", Special::kClusterIdZ},
      {"%nclusterid.x", Special::kNclusterIdX},
      {"%nclusterid.y", Special::kNclusterIdY},
      {"%nclusterid.z", Special::kNclusterIdZ},
      {"%is_explicit_cluster", Special::kIsExplicitCluster},
      {"%dynamic_smem_size", Special::kDynamicSharedSize},
      {"%total_smem_size", Special::kTotalSharedSize},
  };
  auto found = kByName.find(name);
  if (found == kByName.end()) return std::nullopt;
  return found->second;
}

int special_bytes(Special special) {
  return special == Special::kIsExplicitCluster ? 0 : 4;
}

}  // namespace flashback::emulator
