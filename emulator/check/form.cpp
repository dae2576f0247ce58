#include "emulator/check/form.h"

#include <utility>

namespace flashback::emulator::checking {
namespace {

constexpr std::pair<std::string_view, Form::Kind> kKinds[] = {
    {"bar.warp.sync", Form::Kind::kWarpSync},
    {"fence.proxy.async", Form::Kind::kProxyFence},
    {"fence.mbarrier_init", Form::Kind::kInitFence},
    {"tcgen05.fence::before_thread_sync", Form::Kind::kFenceBeforeSync},
    {"tcgen05.fence::after_thread_sync", Form::Kind::kFenceAfterSync},
    {"cp.async.bulk.commit_group", Form::Kind::kBulkCommit},
    {"cp.async.bulk.wait_group.read", Form::Kind::kBulkWaitRead},
    {"cp.async.bulk.wait_group", Form::Kind::kBulkWait},
    {"cp.async.commit_group", Form::Kind::kCopyCommit},
    {"cp.async.wait_group", Form::Kind::kCopyWait},
    {"cp.async.wait_all", Form::Kind::kCopyWaitAll},
    {"wgmma.fence", Form::Kind::kProductFence},
    {"wgmma.commit_group", Form::Kind::kProductCommit},
    {"wgmma.wait_group", Form::Kind::kProductWait},
    {"wgmma.mma_async", Form::Kind::kProduct},
};

}  // namespace

Form form_of(std::string_view opcode) {
  Form form;
  const auto has = [&](std::string_view piece) { return opcode.find(piece) != opcode.npos; };
  const bool is_atomic = opcode.starts_with("atom") || opcode.starts_with("red.");
  form.sums_floats = (is_atomic || opcode.starts_with("cp.reduce")) && has(".add") &&
                     (has(".f16") || has(".bf16") || has(".f32") || has(".f64"));
  for (const auto& [prefix, kind] : kKinds) {
    if (!opcode.starts_with(prefix)) continue;
    form.kind = kind;
    return form;
  }
  const bool is_mbarrier = opcode.starts_with("mbarrier");
  form.scope = has(".cluster") ? Scope::kCluster : has(".cta") || is_mbarrier ? Scope::kCta : Scope::kGpu;
  if ((opcode.starts_with("fence") && !has("fence.proxy")) || opcode.starts_with("membar")) {
    form.kind = Form::Kind::kMemoryFence;
    form.acquire = !has(".release");
    form.release = !has(".acquire");
    form.of_shared = has(".sync_restrict");
    return form;
  }
  if (is_mbarrier) {
    form.relaxed = has(".relaxed");
    return form;
  }
  form.relaxed = has(".relaxed") || has(".volatile");
  form.acquire = has(".acquire") || has(".acq_rel");
  form.release = has(".release") || has(".acq_rel");
  form.strong = is_atomic || form.relaxed || form.acquire || form.release;
  return form;
}

std::vector<Form> forms_of(const Program& program) {
  std::vector<Form> forms;
  for (const std::string& opcode : program.forms) forms.push_back(form_of(opcode));
  return forms;
}

}  // namespace flashback::emulator::checking
