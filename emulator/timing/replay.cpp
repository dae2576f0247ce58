#include "emulator/timing/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <queue>

#include "emulator/timing/product_groups.h"
#include "emulator/timing/units.h"

namespace flashback::emulator::timing {
namespace {

constexpr int kPartitions = 4;
constexpr double kPieceBytes = 2048;  // of a bulk copy, and of an operand: 16 cycles of a port
constexpr double kSmallCopy = 4096;   // bulk copies up to here have the latency of small ones
constexpr double kPortCycle = 128;    // bytes

class Replay {
 public:
  Replay(const Recording& recording, const Costs& costs, Timeline* timeline)
      : recording_(recording), kernel_(*recording.kernel), costs_(costs), timeline_(timeline) {
    phases_.resize(recording.mbarriers);
    warps_.resize(recording.warps.size());
    tensor_core_.queues.resize(1 + (warps_.size() + 3) / 4);  // the thread's, and each warpgroup's
    groups_.resize(warps_.size());
    for (std::size_t w = 0; w < warps_.size(); ++w) {
      warps_[w].done.resize(recording.warps[w].events.size());
      push(0, Item::kWarp, static_cast<std::uint32_t>(w));
    }
    live_warps_ = static_cast<std::uint32_t>(warps_.size());
    intervals_ = {0,         costs.fma,     costs.fma2,    costs.integer,
                  costs.alu, costs.special, costs.convert, costs.transferred};
  }

  Outcome run() {
    while (!agenda_.empty()) {
      const Item item = agenda_.top();
      agenda_.pop();
      switch (item.kind) {
        case Item::kWarp:
          run_warp(item.index, item.time);
          break;
        case Item::kArrival:
          arrive(item.time, item.index, item.amount, item.bytes, item.actor);
          break;
        case Item::kTensorCore:
          run_tensor_core(item.time);
          break;
        case Item::kTransfer:
          run_transfer(item.index, item.time);
          break;
        case Item::kGroupDone:
          group_product_done(item.index, item.time, item.actor);
          break;
      }
    }
    finish();
    return std::move(outcome_);
  }

 private:
  struct Item {
    enum Kind : std::uint8_t { kWarp, kArrival, kTensorCore, kTransfer, kGroupDone };
    double time;
    std::uint64_t order;
    Kind kind;
    std::uint32_t index;
    std::uint32_t amount;
    std::int32_t bytes;
    Actor actor;
    bool operator<(const Item& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Warp {
    std::size_t next = 0;
    double ready = 0;
    std::vector<double> done;  // of each event: when its result may be used
    double stored = 0, tensor_loaded = 0, tensor_stored = 0;
    OutgoingGroups outgoing;
    ProductGroups groups;
    std::uint16_t section = 0, marks = 0;
    double section_began = 0, wait_began = -1;
    bool finished = false;
    // Parked: at a phase, a named barrier, groups of copies or of products.
    enum class Parked : std::uint8_t { kNo, kPhase, kBarrier, kCopies, kProducts };
    Parked parked = Parked::kNo;
    std::uint32_t what = 0;
    bool reads_only = false;
  };
  struct Warpgroup {
    std::vector<std::uint32_t> issued;  // of product n, by how many warps
    std::uint32_t done = 0;
    Actor last;  // that was done
  };

  void push(double time, Item::Kind kind, std::uint32_t index, std::uint32_t amount = 0,
            std::int32_t bytes = 0, Actor actor = {}) {
    agenda_.push({time, order_++, kind, index, amount, bytes, actor});
  }
  Server& shared_port() { return shared_; }
  Server& operand_port() { return costs_.shared_ports > 1.5 ? operands_ : shared_; }

  // ---- warps

  void run_warp(std::uint32_t w, double now) {
    Warp& warp = warps_[w];
    const Stream& stream = recording_.warps[w];
    const std::size_t partition = w % kPartitions;
    while (warp.next < stream.events.size()) {
      const Event& event = stream.events[warp.next];
      const Kernel::Step& step = kernel_.steps[event.step];
      double start = std::max({now, warp.ready, issue_[partition].free()});
      for (std::uint32_t i = 0; i < event.waits_count; ++i) {
        start = std::max(start, warp.done[stream.waits[event.waits_begin + i]]);
      }
      const int pipe = static_cast<int>(step.pipe);
      if (step.pipe != Pipe::kNone) start = std::max(start, pipes_[partition][pipe].free());
      if (start > now) {
        if (!agenda_.empty() && agenda_.top().time <= start) {
          push(start, Item::kWarp, w);
          return;
        }
        now = start;
      }
      if (event.marks != warp.marks) begin_section(w, event.section, now);
      warp.marks = event.marks;
      issue_[partition].reserve(now, step.instructions);
      warp.ready = now + step.instructions;
      double latency = costs_.arithmetic_latency;
      if (step.pipe != Pipe::kNone) {
        pipes_[partition][pipe].reserve(now, step.instructions * intervals_[pipe]);
        if (step.pipe == Pipe::kSpecial) latency = costs_.special_latency;
        if (step.pipe == Pipe::kTransferred) latency = costs_.shared_latency;
        latency += (step.instructions - 1) * intervals_[pipe];
      }
      warp.done[warp.next] = now + latency;
      ++warp.next;
      if (!act(w, event, step.action, now)) return;
    }
    if (!warp.finished) {
      warp.finished = true;
      --live_warps_;
      begin_section(w, 0, std::max(now, warp.ready));
      outcome_.cycles = std::max(outcome_.cycles, std::max(now, warp.ready));
    }
  }

  // What an instruction does beyond taking its slot. False: the warp is parked, or done.
  bool act(std::uint32_t w, const Event& event, Action action, double now) {
    Warp& warp = warps_[w];
    const std::size_t partition = w % kPartitions;
    const Actor actor{Agent::kWarp, static_cast<std::uint16_t>(w), event.section};
    double& done = warp.done[warp.next - 1];
    switch (action) {
      case Action::kArithmetic:
      case Action::kBranch:
      case Action::kGlobalStore:
        return true;
      case Action::kSharedLoad:
      case Action::kSharedStore: {
        const double cycles =
            std::max<double>(event.a * (kPortCycle / costs_.shared_bytes), event.b / costs_.register_bytes);
        const double end = shared_port().reserve(now + 1, cycles) + cycles;
        done = end + costs_.shared_latency;
        if (action == Action::kSharedStore) warp.stored = end;
        return true;
      }
      case Action::kGlobalLoad:
        done = now + costs_.global_latency;
        return true;
      case Action::kWarpSync:
        warp.ready = now + costs_.warp_sync;
        return true;
      case Action::kFence:
        warp.ready = std::max(now, warp.stored) + costs_.fence;
        return true;
      case Action::kBarrier:
        return meet(w, event, now, true);
      case Action::kBarrierArrive:
        return meet(w, event, now, false);
      case Action::kPhaseInit:
        phases_[event.a] = {};
        phases_[event.a].expected = phases_[event.a].pending = event.b;
        return true;
      case Action::kPhaseArrive:
        push(now + costs_.arrive, Item::kArrival, event.a, event.b, 0, actor);
        return true;
      case Action::kPhaseExpect:
        phases_[event.a].bytes += event.b;
        push(now + costs_.arrive, Item::kArrival, event.a, 1, 0, actor);
        return true;
      case Action::kPhaseWait:
        if (phases_[event.a].done(event.b)) {
          warp.ready = now + costs_.ask;
          waited(w, phases_[event.a].ended_by);
          return true;
        }
        phases_[event.a].waiters.push_back({static_cast<std::uint16_t>(w), event.b});
        return park(w, Warp::Parked::kPhase, event.a, now);
      case Action::kTensorLoad: {
        const double cycles = event.b * kPortCycle / costs_.tensor_read_bytes;
        done = tensor_read_[partition].reserve(now + 1, cycles) + cycles + costs_.tensor_load_latency;
        warp.tensor_loaded = std::max(warp.tensor_loaded, done);
        return true;
      }
      case Action::kTensorStore: {
        const double cycles = event.b * kPortCycle / costs_.tensor_write_bytes;
        warp.tensor_stored = std::max(warp.tensor_stored, tensor_write_[partition].reserve(now + 1, cycles) +
                                                              cycles + costs_.tensor_store_latency);
        return true;
      }
      case Action::kTensorLoadWait:
        warp.ready = std::max(now, warp.tensor_loaded);
        return true;
      case Action::kTensorStoreWait:
        warp.ready = std::max(now, warp.tensor_stored);
        return true;
      case Action::kProduct:
        queue_tensor(
            0, {now + costs_.product_issue, Product::unpacked(event.a), false, 0, on_tensor_core(actor)});
        return true;
      case Action::kCommit:
        queue_tensor(0, {now + costs_.product_issue, {}, true, event.a, on_tensor_core(actor)});
        return true;
      case Action::kGroupProduct: {
        Warpgroup& group = groups_[w / 4];
        const std::uint32_t n = warp.groups.products++;
        if (group.issued.size() <= n) group.issued.resize(n + 1);
        if (++group.issued[n] == 4) {
          queue_tensor(1 + w / 4, {now + costs_.product_issue, Product::unpacked(event.a), false, 0,
                                   on_tensor_core(actor)});
        }
        return true;
      }
      case Action::kGroupCommit:
        warp.groups.commit();
        return true;
      case Action::kGroupWait: {
        const std::uint32_t wanted = warp.groups.over(event.a);
        if (groups_[w / 4].done >= wanted) {
          waited(w, groups_[w / 4].last);
          return true;
        }
        return park(w, Warp::Parked::kProducts, wanted, now);
      }
      case Action::kCopyIn:
        start_transfer(w, Transfer::Kind::kIn, event, now);
        return true;
      case Action::kCopyOut:
        start_transfer(w, Transfer::Kind::kOut, event, now);
        return true;
      case Action::kReduceOut:
        start_transfer(w, Transfer::Kind::kReduce, event, now);
        return true;
      case Action::kCopyCommit:
        warp.outgoing.groups.emplace_back();
        return true;
      case Action::kCopyWait:
      case Action::kCopyWaitRead:
        warp.reads_only = action == Action::kCopyWaitRead;
        if (warp.outgoing.met(event.a, warp.reads_only)) return true;
        return park(w, Warp::Parked::kCopies, event.a, now);
      case Action::kStop:
        return true;
    }
    return true;
  }

  bool park(std::uint32_t w, Warp::Parked where, std::uint32_t what, double now) {
    Warp& warp = warps_[w];
    warp.parked = where;
    warp.what = what;
    warp.wait_began = now;
    return false;
  }
  // What `by` did at `caused` has reached the warp at `at`.
  void wake(std::uint32_t w, double at, const Actor& by, double caused) {
    Warp& warp = warps_[w];
    warp.parked = Warp::Parked::kNo;
    if (timeline_ && at > warp.wait_began) {
      timeline_->spans.push_back({{Agent::kWarp, static_cast<std::uint16_t>(w), warp.section},
                                  warp.wait_began,
                                  at,
                                  true,
                                  by,
                                  caused});
    }
    waited(w, by);
    warp.ready = std::max(warp.ready, at);
    push(warp.ready, Item::kWarp, w);
  }

  void waited(std::uint32_t w, const Actor& until) {
    if (!timeline_) return;
    const std::uint32_t step = recording_.warps[w].events[warps_[w].next - 1].step;
    timeline_->waits.push_back({kernel_.lines[step], until});
  }

  void begin_section(std::uint32_t w, std::uint16_t section, double now) {
    Warp& warp = warps_[w];
    if (timeline_ && warp.section != 0 && now > warp.section_began) {
      timeline_->spans.push_back(
          {{Agent::kWarp, static_cast<std::uint16_t>(w), warp.section}, warp.section_began, now, false, {}});
    }
    warp.section = section;
    warp.section_began = now;
    if (section != 0) outcome_.begins.push_back({now, static_cast<std::uint16_t>(w), section});
  }

  // ---- barriers

  // True when the warp need not wait.
  bool meet(std::uint32_t w, const Event& event, double now, bool waits) {
    if (event.a >= barriers_.size()) barriers_.resize(event.a + 1);
    NamedBarrier& barrier = barriers_[event.a];
    barrier.threads += 32;
    if (waits) {
      barrier.waiting.push_back(static_cast<std::uint16_t>(w));
      park(w, Warp::Parked::kBarrier, event.a, now);
    }
    const std::uint32_t threads = event.b != 0 ? event.b : 32 * live_warps_;
    if (barrier.threads < threads) return !waits;
    const double at = now + costs_.barrier + costs_.barrier_warp * (threads / 32);
    const std::vector<std::uint16_t> waiting = std::move(barrier.waiting);
    if (timeline_ && !waiting.empty()) {
      const auto [first, last] = std::minmax_element(waiting.begin(), waiting.end());
      timeline_->meetings.push_back(
          {now, event.a, static_cast<std::uint32_t>(waiting.size()), *first, *last});
    }
    barrier = {};
    for (std::uint16_t other : waiting) {
      wake(other, at, {Agent::kWarp, static_cast<std::uint16_t>(w), event.section}, now);
    }
    return !waits;
  }

  void arrive(double now, std::uint32_t mbarrier, std::uint32_t count, std::int32_t bytes, const Actor& by) {
    Phases& phases = phases_[mbarrier];
    if (!phases.arrive(count, bytes)) return;
    phases.ended_by = by;
    const double on_the_way = by.agent == Agent::kWarp         ? costs_.arrive
                              : by.agent == Agent::kTensorCore ? costs_.commit
                                                               : 0;
    std::vector<Phases::Waiter> still;
    for (const Phases::Waiter& waiter : phases.waiters) {
      if (phases.done(waiter.parity)) {
        wake(waiter.warp, now + costs_.wake, by, now - on_the_way);
      } else {
        still.push_back(waiter);
      }
    }
    phases.waiters = std::move(still);
  }

  // ---- tensor core

  static Actor on_tensor_core(Actor actor) {
    actor.agent = Agent::kTensorCore;
    return actor;
  }
  void queue_tensor(std::size_t queue, const TensorOperation& operation) {
    tensor_core_.queues[queue].push_back(operation);
    if (!tensor_core_.asleep) return;
    tensor_core_.asleep = false;
    push(operation.ready, Item::kTensorCore, 0);
  }

  // Reads a piece of an operand; true when there was none left.
  bool read_operand(double now) {
    TensorCore& core = tensor_core_;
    if (core.bytes_left <= 0) return true;
    const double piece = std::min(core.bytes_left, kPieceBytes), cycles = piece / costs_.shared_bytes;
    core.bytes_left -= piece;
    core.operands_end = operand_port().reserve(now, cycles) + cycles;
    push(core.operands_end, Item::kTensorCore, 0);
    return false;
  }

  void run_tensor_core(double now) {
    TensorCore& core = tensor_core_;
    while (true) {
      switch (core.state) {
        case TensorCore::State::kIdle: {
          core.queue = core.next();
          if (core.queue == core.queues.size()) {
            core.asleep = true;
            return;
          }
          const TensorOperation operation = core.queues[core.queue].front();
          if (operation.ready > now) {
            push(operation.ready, Item::kTensorCore, 0);
            return;
          }
          if (operation.is_commit) {
            core.queues[core.queue].pop_front();
            push(std::max(now, core.end) + costs_.commit, Item::kArrival, operation.mbarrier, 1, 0,
                 operation.actor);
            continue;
          }
          core.bytes_left = operation.product.a_in_shared ? operation.product.m * 32.0 : 0;
          core.state = TensorCore::State::kReadingA;
          break;
        }
        case TensorCore::State::kReadingA:
          if (!read_operand(now)) return;
          core.state = TensorCore::State::kStarting;
          if (core.end > now) {
            push(core.end, Item::kTensorCore, 0);
            return;
          }
          break;
        case TensorCore::State::kStarting:
          core.began = core.operands_end = now;
          core.bytes_left = core.queues[core.queue].front().product.n * 32.0;
          core.state = TensorCore::State::kReadingB;
          break;
        case TensorCore::State::kReadingB: {
          if (!read_operand(now)) return;
          const TensorOperation operation = core.queues[core.queue].front();
          core.queues[core.queue].pop_front();
          const double cycles = std::max(operation.product.n / 2.0, costs_.product_floor);
          core.end = std::max(core.began + cycles, core.operands_end);
          core.busy += core.end - core.began;
          draw_product(operation.actor, core.began, core.end, operation.ready);
          if (core.queue != 0) {
            push(core.end + costs_.group_end, Item::kGroupDone, static_cast<std::uint32_t>(core.queue - 1), 0,
                 0, operation.actor);
          }
          core.state = TensorCore::State::kIdle;
          break;
        }
      }
    }
  }

  // Products of one section that follow each other are one span.
  void draw_product(const Actor& actor, double begin, double end, double ready) {
    if (!timeline_) return;
    if (last_product_ < timeline_->spans.size()) {
      Span& last = timeline_->spans[last_product_];
      if (last.actor.section == actor.section && last.actor.warp == actor.warp && begin - last.end < 64) {
        last.end = end;
        return;
      }
    }
    last_product_ = timeline_->spans.size();
    timeline_->spans.push_back({actor, begin, end, false, {}, ready});
  }

  void group_product_done(std::uint32_t g, double now, const Actor& by) {
    ++groups_[g].done;
    groups_[g].last = by;
    for (std::uint32_t w = 4 * g; w < 4 * g + 4 && w < warps_.size(); ++w) {
      if (warps_[w].parked == Warp::Parked::kProducts && groups_[g].done >= warps_[w].what) {
        wake(w, now, by, now - costs_.group_end);
      }
    }
  }

  // ---- bulk copies

  void start_transfer(std::uint32_t w, Transfer::Kind kind, const Event& event, double now) {
    Transfer transfer;
    transfer.kind = kind;
    transfer.bytes = transfer.bytes_left = event.b;
    transfer.asked = now;
    transfer.mbarrier = event.a;
    transfer.actor = {kind == Transfer::Kind::kReduce ? Agent::kReduce : Agent::kCopy,
                      static_cast<std::uint16_t>(w), event.section};
    double latency = event.b <= kSmallCopy ? costs_.small_copy_latency : costs_.copy_latency;
    if (kind != Transfer::Kind::kIn) {
      transfer.group = static_cast<std::uint32_t>(warps_[w].outgoing.groups.size() - 1);
      ++warps_[w].outgoing.groups.back().reading;
      ++warps_[w].outgoing.groups.back().unfinished;
      latency = costs_.reduce_latency / 2;
    }
    transfers_.push_back(transfer);
    push(now + latency, Item::kTransfer, static_cast<std::uint32_t>(transfers_.size() - 1));
  }

  void run_transfer(std::uint32_t t, double now) {
    Transfer& transfer = transfers_[t];
    const bool in = transfer.kind == Transfer::Kind::kIn;
    if (transfer.kind == Transfer::Kind::kReduce && !transfer.began) {
      // An SM's reductions begin no faster than its share of the chip's atomics allows; each then leaves as
      // if it were alone, for the SMs do not add in step.
      transfer.began = true;
      if (costs_.reduce_alone_bytes > costs_.reduce_bytes) {
        const double begin = atomics_.reserve(now, transfer.bytes / costs_.reduce_bytes);
        if (begin > now) {
          push(begin, Item::kTransfer, t);
          return;
        }
      }
    }
    if (transfer.bytes_left > 0) {
      const double piece = std::min(transfer.bytes_left, kPieceBytes);
      transfer.bytes_left -= piece;
      Server& link = in ? link_in_ : link_out_;
      const double rate = transfer.kind == Transfer::Kind::kReduce
                              ? std::max(costs_.reduce_alone_bytes, costs_.reduce_bytes)
                              : costs_.copy_bytes;
      const double linked = link.reserve(now, piece / rate) + piece / rate;
      const double cycles = piece / costs_.shared_bytes;
      // A piece that comes in is written once it is there; one that goes out is read while it leaves.
      const double stored = shared_port().reserve(now, cycles) + cycles;
      push(std::max(linked, stored), Item::kTransfer, t);
      return;
    }
    Warp& warp = warps_[transfer.actor.warp];
    if (in) {
      draw_transfer(transfer, now);
      arrive(now, transfer.mbarrier, 0, -static_cast<std::int32_t>(transfer.bytes), transfer.actor);
      return;
    }
    OutgoingGroups::Group& group = warp.outgoing.groups[transfer.group];
    if (!transfer.read) {
      transfer.read = true;
      --group.reading;
      push(now + costs_.reduce_latency / 2, Item::kTransfer, t);
    } else {
      draw_transfer(transfer, now);
      --group.unfinished;
    }
    if (warp.parked == Warp::Parked::kCopies && warp.outgoing.met(warp.what, warp.reads_only)) {
      wake(transfer.actor.warp, now, transfer.actor, now);
    }
  }

  void draw_transfer(const Transfer& transfer, double now) {
    if (timeline_) timeline_->spans.push_back({transfer.actor, transfer.asked, now, false, {}});
  }

  // ---- the end

  void finish() {
    for (std::size_t w = 0; w < warps_.size(); ++w) {
      if (warps_[w].finished) continue;
      const std::size_t at = warps_[w].next - 1;
      const std::uint32_t step = recording_.warps[w].events[at].step;
      outcome_.error +=
          fmt::format("{}warp {} waits for ever at PTX line {} `{}`", outcome_.error.empty() ? "" : "; ", w,
                      kernel_.lines[step], kernel_.opcodes[step]);
    }
    Busy& busy = outcome_.busy;
    for (int p = 0; p < kPartitions; ++p) {
      busy.issue += issue_[p].busy() / kPartitions;
      for (Pipe pipe : {Pipe::kFma, Pipe::kFma2, Pipe::kInteger}) {
        busy.fma += pipes_[p][static_cast<int>(pipe)].busy() / kPartitions;
      }
      for (Pipe pipe : {Pipe::kAlu, Pipe::kConvert})
        busy.alu += pipes_[p][static_cast<int>(pipe)].busy() / kPartitions;
      busy.special += pipes_[p][static_cast<int>(Pipe::kSpecial)].busy() / kPartitions;
      busy.tensor_read += tensor_read_[p].busy() / kPartitions;
      busy.tensor_write += tensor_write_[p].busy() / kPartitions;
    }
    busy.shared = shared_.busy();
    busy.operands = operands_.busy();
    busy.tensor_core = tensor_core_.busy;
    busy.copies_in = link_in_.busy();
    busy.reductions = link_out_.busy();
    if (timeline_) timeline_->kernel = recording_.kernel;
  }

  const Recording& recording_;
  const Kernel& kernel_;
  const Costs& costs_;
  Timeline* const timeline_;
  Outcome outcome_;

  std::priority_queue<Item> agenda_;
  std::uint64_t order_ = 0;
  std::vector<Warp> warps_;
  std::vector<Warpgroup> groups_;
  std::uint32_t live_warps_ = 0;
  std::vector<Phases> phases_;
  std::vector<NamedBarrier> barriers_;
  std::vector<Transfer> transfers_;
  TensorCore tensor_core_;
  std::size_t last_product_ = ~std::size_t{0};

  std::array<double, kPipes> intervals_{};
  Server issue_[kPartitions], pipes_[kPartitions][kPipes];
  Server tensor_read_[kPartitions], tensor_write_[kPartitions];
  Server shared_, operands_, link_in_, link_out_, atomics_;
};

}  // namespace

Outcome replay(const Recording& recording, const Costs& costs, Timeline* timeline) {
  return Replay(recording, costs, timeline).run();
}

}  // namespace flashback::emulator::timing
