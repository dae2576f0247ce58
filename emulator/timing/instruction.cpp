#include "emulator/timing/instruction.h"

namespace flashback::emulator::timing {
namespace {

using enum Action;
using enum Pipe;

// Counts are those of the cubins of this project's kernels (nvdisasm 13.5): docs/prediction.md compares them.
constexpr Form kForms[] = {
    // none
    {"mov.", kArithmetic, kNone, 0},
    {"cvta.", kArithmetic, kNone, 0},
    {"cvt.u64.u32", kArithmetic, kNone, 0},
    {"cvt.s64.s32", kArithmetic, kNone, 0},
    {"neg.f32", kArithmetic, kNone, 0},
    {"neg.ftz.f32", kArithmetic, kNone, 0},
    {"not.pred", kArithmetic, kNone, 0},
    {"ld.param", kArithmetic, kNone, 0},
    {"tcgen05.fence", kArithmetic, kNone, 0},
    {"wgmma.fence", kBranch, kNone, 1},
    {"fence.mbarrier_init", kArithmetic, kNone, 0},
    {"griddepcontrol", kArithmetic, kNone, 1},

    // fp32
    {"add.f32", kArithmetic, kFma, 1},
    {"add.rn.f32", kArithmetic, kFma, 1},
    {"sub.f32", kArithmetic, kFma, 1},
    {"mul.f32", kArithmetic, kFma, 1},
    {"mul.rn.f32", kArithmetic, kFma, 1},
    {"fma.rn.f32", kArithmetic, kFma, 1},
    {"add.rn.f32x2", kArithmetic, kFma2, 1},
    {"sub.rn.f32x2", kArithmetic, kFma2, 1},
    {"mul.rn.f32x2", kArithmetic, kFma2, 1},
    {"fma.rn.f32x2", kArithmetic, kFma2, 1},
    {"min.f32", kArithmetic, kAlu, 1},
    {"max.f32", kArithmetic, kAlu, 1},
    {"ex2.approx", kArithmetic, kSpecial, 1},
    {"lg2.approx", kArithmetic, kSpecial, 1},
    {"rcp.approx", kArithmetic, kSpecial, 1},
    {"rsqrt.approx", kArithmetic, kSpecial, 1},
    {"cvt.", kArithmetic, kConvert, 1},

    // integers
    {"add.s64", kArithmetic, kAlu, 2},
    {"add.u64", kArithmetic, kAlu, 2},
    {"sub.s64", kArithmetic, kAlu, 2},
    {"add.", kArithmetic, kAlu, 1},
    {"sub.", kArithmetic, kAlu, 1},
    {"neg.", kArithmetic, kAlu, 1},
    {"abs.", kArithmetic, kAlu, 1},
    {"min.", kArithmetic, kAlu, 1},
    {"max.", kArithmetic, kAlu, 1},
    {"and.", kArithmetic, kAlu, 1},
    {"or.", kArithmetic, kAlu, 1},
    {"xor.", kArithmetic, kAlu, 1},
    {"not.", kArithmetic, kAlu, 1},
    {"lop3.", kArithmetic, kAlu, 1},
    {"shl.", kArithmetic, kAlu, 1},
    {"shr.", kArithmetic, kAlu, 1},
    {"shf.", kArithmetic, kAlu, 1},
    {"bfe.", kArithmetic, kAlu, 2},
    {"bfi.", kArithmetic, kAlu, 2},
    {"prmt.", kArithmetic, kAlu, 1},
    {"selp.", kArithmetic, kAlu, 1},
    {"setp.", kArithmetic, kAlu, 1},
    {"mul.lo.s64", kArithmetic, kInteger, 3},
    {"mad.lo.s64", kArithmetic, kInteger, 3},
    {"mul.", kArithmetic, kInteger, 1},
    {"mad.", kArithmetic, kInteger, 1},
    {"div.", kArithmetic, kInteger, 16},
    {"rem.", kArithmetic, kInteger, 18},

    // a warp among itself
    {"shfl.", kArithmetic, kTransferred, 1},
    {"vote.", kArithmetic, kAlu, 1},
    {"elect.", kArithmetic, kAlu, 2},
    {"activemask.", kArithmetic, kAlu, 1},
    {"redux.", kArithmetic, kTransferred, 1},
    {"bar.warp.sync", kWarpSync, kNone, 1},
    {"bra", kBranch, kNone, 1},
    {"ret", kStop, kNone, 1},
    {"exit", kStop, kNone, 1},
    {"nanosleep.", kArithmetic, kNone, 1},

    // memory
    {"ld.shared", kSharedLoad, kTransferred, 1},
    {"ld.volatile.shared", kSharedLoad, kTransferred, 1},
    {"ldmatrix.", kSharedLoad, kTransferred, 1},
    {"st.shared", kSharedStore, kTransferred, 1},
    {"st.volatile.shared", kSharedStore, kTransferred, 1},
    {"stmatrix.", kSharedStore, kTransferred, 1},
    {"ld.", kGlobalLoad, kTransferred, 1},
    {"atom.", kGlobalLoad, kTransferred, 1},
    {"st.", kGlobalStore, kTransferred, 1},
    {"red.", kGlobalStore, kTransferred, 1},
    {"prefetch.", kArithmetic, kTransferred, 1},
    {"fence.", kFence, kNone, 1},
    {"membar.", kFence, kNone, 1},

    // between warps. A wait is the question and the branch on its answer, and the parity shifted into place.
    {"bar.sync", kBarrier, kNone, 1},
    {"barrier.sync", kBarrier, kNone, 1},
    {"bar.arrive", kBarrierArrive, kNone, 1},
    {"barrier.arrive", kBarrierArrive, kNone, 1},
    {"mbarrier.init", kPhaseInit, kNone, 1},
    {"mbarrier.arrive.expect_tx", kPhaseExpect, kNone, 1},
    {"mbarrier.arrive", kPhaseArrive, kNone, 1},
    {"mbarrier.try_wait", kPhaseWait, kNone, 2},
    {"setmaxnreg.", kBranch, kNone, 1},

    // tensor memory and tensor core. A product takes descriptors from uniform registers: two moves each.
    {"tcgen05.alloc", kBranch, kNone, 8},
    {"tcgen05.dealloc", kBranch, kNone, 8},
    {"tcgen05.relinquish", kBranch, kNone, 1},
    {"tcgen05.ld", kTensorLoad, kNone, 1},
    {"tcgen05.st", kTensorStore, kNone, 1},
    {"tcgen05.wait::ld", kTensorLoadWait, kNone, 0},
    {"tcgen05.wait::st", kTensorStoreWait, kNone, 1},
    {"tcgen05.mma", kProduct, kNone, 3},
    {"tcgen05.commit", kCommit, kNone, 1},
    {"wgmma.mma_async", kGroupProduct, kNone, 2},
    {"wgmma.commit_group", kGroupCommit, kNone, 0},
    {"wgmma.wait_group", kGroupWait, kNone, 1},

    // bulk copies: addresses and coordinates move to uniform registers
    {"cp.async.bulk.tensor.1d.global", kCopyOut, kNone, 6},
    {"cp.async.bulk.tensor.2d.global", kCopyOut, kNone, 7},
    {"cp.async.bulk.tensor.3d.global", kCopyOut, kNone, 8},
    {"cp.async.bulk.tensor.4d.global", kCopyOut, kNone, 9},
    {"cp.async.bulk.tensor", kCopyIn, kNone, 9},
    {"cp.async.bulk.global", kCopyOut, kNone, 5},
    {"cp.async.bulk.shared", kCopyIn, kNone, 6},
    {"cp.async.bulk.commit_group", kCopyCommit, kNone, 1},
    {"cp.async.bulk.wait_group.read", kCopyWaitRead, kNone, 1},
    {"cp.async.bulk.wait_group", kCopyWait, kNone, 1},
    {"cp.reduce.async.bulk", kReduceOut, kNone, 5},
};

}  // namespace

const Form* form_of(std::string_view opcode) {
  const Form* best = nullptr;
  for (const Form& form : kForms) {
    if (opcode.starts_with(form.prefix) && (!best || form.prefix.size() > best->prefix.size())) best = &form;
  }
  return best;
}

bool keeps_its_place(Action action) {
  return action != Action::kArithmetic && action != Action::kSharedLoad && action != Action::kSharedStore &&
         action != Action::kGlobalLoad && action != Action::kTensorStore && action != Action::kTensorLoad;
}

}  // namespace flashback::emulator::timing
