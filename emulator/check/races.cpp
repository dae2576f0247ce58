#include "emulator/check/races.h"

#include <bit>

#include "emulator/check/words.h"

namespace flashback::emulator::checking {
namespace {

// The lanes of an earlier access of one's own warp that the access knows without being told: what a lane did
// itself it knows; where several lanes access one place together, each has to know the others.
LaneMask own_lanes(const Access& access, const Record& earlier, Time time, bool by_lane) {
  if (earlier.cta != access.state->number || earlier.first != access.view.first || time > access.view.now)
    return 0;
  if (by_lane) return kAllLanes;
  const bool each_for_itself = access.operation != 0 || std::has_single_bit(access.view.lanes);
  return each_for_itself ? access.view.lanes : 0;
}

std::uint32_t bits_of(std::uint32_t from, std::uint32_t to) {  // [from, to) of 32
  return static_cast<std::uint32_t>((std::uint64_t{1} << to) - (std::uint64_t{1} << from));
}

// What would order the two. Null: lanes, not an operation. An operation may have been issued before an access
// that is on record earlier.
std::string remedy(const Access& access, const OperationState* mine, const Record& earlier,
                   const OperationState* other, bool earlier_writes) {
  const bool same_warp = earlier.first == access.view.first;
  const bool issued_before = mine != nullptr && other != nullptr && access.operation < earlier.operation;
  if (other != nullptr && !issued_before) return end_words(other->kind, earlier_writes, same_warp);
  if (issued_before || (mine != nullptr && same_warp && earlier.time >= access.view.now)) {
    return end_words(mine->kind, access.writes, same_warp);
  }
  if (same_warp && mine == nullptr) return "bar.warp.sync between them would.";
  return "An arrival behind the first (its warp in step before that) that the second waits for would.";
}

}  // namespace

bool Races::knows(const Sight& sight, const Access& access, const Record& earlier, bool earlier_writes,
                  bool exempt, bool by_lane) const {
  Time time = earlier.time;
  if (const OperationState* operation = operation_of(earlier, *access.state)) {
    for (const OperationState::Told& told : operation->told) {
      if (sight.knows(told.cta, told.agent, told.time)) return true;
    }
    time = earlier_writes ? operation->ended : operation->read_ended;
    if (time == 0) return false;
  }
  const LaneMask own = exempt ? own_lanes(access, earlier, time, by_lane) : 0;
  return sight.behind(earlier.cta, earlier.first, earlier.lanes & ~own, time) == 0;
}

Races::Order Races::order_of_pieces(const Record& earlier, bool earlier_writes, const Access& access,
                                    Space space) {
  // Lanes know what they did themselves.
  if (access.operation == 0 && earlier.first == access.view.first && earlier.cta == access.state->number)
    return order(earlier, earlier_writes, access, space);
  Answer& lately = lately_[earlier_writes ? 1 : 0];
  const Record& other = lately.earlier;
  const bool same = other.step == earlier.step && other.time == earlier.time &&
                    other.first == earlier.first && other.lanes == earlier.lanes &&
                    other.operation == earlier.operation && other.cta == earlier.cta;
  if (!same) lately = {earlier, order(earlier, earlier_writes, access, space)};
  return lately.order;
}

Races::Order Races::order(const Record& earlier, bool earlier_writes, const Access& access,
                          Space space) const {
  const Knowledge& known = *access.view.known;
  const Order by_letter = order(earlier, earlier_writes, access, space, true);
  if (by_letter == Order::kOrdered || known.unscoped == nullptr) return by_letter;
  const Order on_hardware = order(earlier, earlier_writes, access, space, false);
  return on_hardware == Order::kOrdered && strict_ ? Order::kNotScoped : on_hardware;
}

Races::Order Races::order(const Record& earlier, bool earlier_writes, const Access& access, Space space,
                          bool scoped) const {
  const bool tensor = space == Space::kTensor, same_cta = earlier.cta == access.state->number;
  // In tensor memory a lane of a warp has its own lane, whatever the lanes of the access.
  const auto covered = [&](Sight::Of of, bool exempt) {
    const Sight sight(*access.view.known, access.state->number, space, of, scoped);
    return knows(sight, access, earlier, earlier_writes, exempt, tensor);
  };
  const OperationState* other = operation_of(earlier, *access.state);
  const OperationState* mine = access.operation == 0 ? nullptr : &access.state->operation(access.operation);
  // Lanes that write one place in one instruction.
  if (mine != nullptr && other != nullptr && same_cta && mine->first == other->first &&
      mine->instruction == other->instruction && access.writes && earlier_writes) {
    return Order::kOrdered;
  }
  const bool ordered = covered(Sight::Of::kHappened, true);
  if (tensor && same_cta) {
    if (mine != nullptr && other != nullptr) {
      if (mine->kind == Operation::Kind::kProduct && other->kind == Operation::Kind::kProduct) {
        if (ordered || !strict_ || mine->accumulator == other->accumulator) return Order::kOrdered;
        return Order::kOnlyIssueOrder;
      }
      // Stores of one warp are taken up in their order.
      if (mine->kind == Operation::Kind::kTensorStore && other->kind == Operation::Kind::kTensorStore &&
          mine->first == other->first && !strict_) {
        return Order::kOrdered;
      }
    }
    const bool fenced = (!ordered || strict_) && covered(Sight::Of::kFenced, true);
    if (!ordered && !fenced) return Order::kUnordered;
    return strict_ && !fenced ? Order::kNotFenced : Order::kOrdered;
  }
  if (!ordered) return Order::kUnordered;
  if (tensor || !access.async_proxy || !earlier_writes) return Order::kOrdered;
  // Within a CTA accesses of one proxy need no fence (ISA 8.9.5); between two they do, unless an mbarrier
  // tells of the first, which makes it visible.
  if (other != nullptr && !is_generic(other->kind) && (same_cta || !other->told.empty()))
    return Order::kOrdered;
  return covered(Sight::Of::kProxied, false) ? Order::kOrdered : Order::kNotProxied;
}

void Races::note(const Conflict& conflict, std::uint32_t part, std::uint64_t place) {
  std::uint64_t first = place, last = place;
  if (conflict.space != Space::kTensor) {
    first = kPieceBytes * place + static_cast<std::uint32_t>(std::countr_zero(part));
    last = kPieceBytes * place + 31 - static_cast<std::uint32_t>(std::countl_zero(part));
  } else {
    first = last = place % TensorMemory::kColumns;
  }
  for (Conflict& noted : conflicts_) {
    if (noted.order != conflict.order || noted.earlier.step != conflict.earlier.step ||
        noted.of_sums != conflict.of_sums || noted.uninitialised != conflict.uninitialised ||
        noted.space != conflict.space || noted.earlier_writes != conflict.earlier_writes ||
        noted.on_mbarrier != conflict.on_mbarrier || noted.earlier.first != conflict.earlier.first) {
      continue;
    }
    noted.first = std::min(noted.first, first);
    noted.last = std::max(noted.last, last);
    noted.earlier.lanes |= conflict.earlier.lanes;
    if (conflict.space == Space::kTensor) noted.lanes[place / TensorMemory::kColumns] |= part;
    return;
  }
  conflicts_.push_back(conflict);
  conflicts_.back().first = first;
  conflicts_.back().last = last;
  if (conflict.space == Space::kTensor) conflicts_.back().lanes[place / TensorMemory::kColumns] = part;
}

void Races::piece(const Access& access, Piece& piece, std::uint32_t part, Space space, std::uint64_t place) {
  Record mine;
  mine.step = access.step;
  mine.cta = access.state->number;
  mine.operation = access.operation;
  mine.first = access.view.first;
  mine.lanes = access.view.lanes;
  mine.time = access.view.now;
  mine.part = part;
  mine.strong = access.strong;
  mine.sums_floats = access.sums_floats;
  mine.kind = access.kind;

  // Most accesses by far: a write where the last was a write of the same part.
  if (access.writes && !access.strong && piece.mbarriers == 0 && piece.reads.size() == 0 &&
      piece.writes.size() == 1) {
    Record& write = *piece.writes.begin();
    if (write.part == part && order_of_pieces(write, true, access, space) == Order::kOrdered) {
      write = mine;
      return;
    }
  }
  const auto conflict = [&](Order order, const Record& earlier, bool earlier_writes, std::uint32_t parts) {
    Conflict c{};
    c.order = order;
    c.of_sums = fixed_sums_ && access.sums_floats && earlier.sums_floats;
    c.earlier = earlier;
    c.earlier_writes = earlier_writes;
    c.space = space;
    note(c, parts, place);
  };
  if (access.reads && space != Space::kGlobal && (part & ~piece.written) != 0) {
    Conflict c{};
    c.uninitialised = true;
    c.space = space;
    note(c, part & ~piece.written, place);
  }
  if (access.writes && (part & piece.mbarriers) != 0) {
    Conflict c{};
    c.on_mbarrier = true;
    c.space = space;
    note(c, part & piece.mbarriers, place);
  }
  for (const Record& write : piece.writes) {
    const std::uint32_t both = write.part & part;
    const bool of_sums = fixed_sums_ && write.sums_floats && access.sums_floats;
    if (both == 0 || (write.strong && access.strong && !of_sums)) continue;
    const Order found = order_of_pieces(write, true, access, space);
    if (found != Order::kOrdered) conflict(found, write, true, both);
  }
  if (access.writes) {
    for (const Record& read : piece.reads) {
      const std::uint32_t both = read.part & part;
      if (both == 0 || (read.strong && access.strong)) continue;
      const Order found = order_of_pieces(read, false, access, space);
      if (found != Order::kOrdered) conflict(found, read, false, both);
    }
    piece.written |= part;
    const auto forget = [&](Records& records) {
      records.erase_if([&](Record& r) {
        if (r.strong && access.strong && r.first != mine.first) return false;
        r.part &= ~part;
        return r.part == 0;
      });
    };
    forget(piece.writes);
    forget(piece.reads);
    piece.writes.push_back(mine);
    return;
  }
  // A later read of the same lanes, or of the same kind of operation, stands for the earlier one.
  constexpr std::size_t kMostReads = 64;
  for (Record& read : piece.reads) {
    if (read.cta != mine.cta || read.first != mine.first || read.strong != mine.strong) continue;
    if ((read.operation == 0) != (mine.operation == 0)) continue;
    if (mine.operation == 0) {
      if (read.part == part && read.time == mine.time) {
        read.lanes |= mine.lanes;
        return;
      }
      if ((read.lanes & ~mine.lanes) != 0 || (read.part & ~part) != 0) continue;
    } else if (read.lanes != mine.lanes || (read.part & ~part) != 0 || read.kind != mine.kind) {
      continue;
    }
    read = mine;
    return;
  }
  if (space == Space::kGlobal && piece.reads.size() >= 2) return;  // two readers stand for all
  if (piece.reads.size() < kMostReads) piece.reads.push_back(mine);
}

void Races::bytes(const Access& access, CtaState* owner, std::uint64_t begin, std::uint64_t count) {
  const Space space = owner == nullptr ? Space::kGlobal : Space::kShared;
  for (std::uint64_t at = begin, end = begin + count; at < end;) {
    const std::uint64_t place = at / kPieceBytes;
    const std::uint64_t stop = std::min(end, (place + 1) * kPieceBytes);
    Piece& touched = owner == nullptr ? global_.at(place) : owner->shared[place];
    const auto part = bits_of(static_cast<std::uint32_t>(at % kPieceBytes),
                              static_cast<std::uint32_t>(stop - place * kPieceBytes));
    piece(access, touched, part, space, place);
    at = stop;
  }
}

void Races::columns(const Access& access, CtaState& owner, std::uint32_t first, std::uint32_t count,
                    const LaneMask (&lanes)[4]) {
  for (std::uint32_t quarter = 0; quarter < 4; ++quarter) {
    if (lanes[quarter] == 0) continue;
    for (std::uint32_t column = first; column < first + count; ++column) {
      const std::uint64_t place = quarter * TensorMemory::kColumns + column;
      piece(access, owner.columns[place], lanes[quarter], Space::kTensor, place);
    }
  }
}

void Races::report(const Access& access) {
  lately_[0] = lately_[1] = {};
  if (conflicts_.empty()) return;
  for (const Conflict& c : conflicts_) {
    const bool strict_only =
        c.order == Order::kNotFenced || c.order == Order::kOnlyIssueOrder || c.order == Order::kNotScoped;
    const char* rule = c.uninitialised                             ? "uninitialised"
                       : c.on_mbarrier                             ? "mbarrier"
                       : c.order == Order::kNotProxied             ? "proxy"
                       : c.order == Order::kNotScoped              ? "scope"
                       : c.of_sums && c.order == Order::kUnordered ? "sum-order"
                       : c.order == Order::kNotFenced              ? "tensor-fence"
                       : c.order == Order::kOnlyIssueOrder         ? "mma-order"
                       : c.space == Space::kTensor                 ? "tensor-race"
                                                                   : "race";
    std::string key;
    if (c.order == Order::kOnlyIssueOrder) {
      key = fmt::format("{} {}", access.state->operation(access.operation).accumulator,
                        access.state->operation(c.earlier.operation).accumulator);
    } else {
      key = source_key(*program_, access.step) + ' ' + source_key(*program_, c.earlier.step);
    }
    findings_.add(rule, strict_only ? Severity::kAdvice : Severity::kError, key,
                  [&] { return sentence(access, c); });
  }
  conflicts_.clear();
}

std::string Races::sentence(const Access& access, const Conflict& c) const {
  const std::string where = c.space == Space::kTensor   ? tensor_place(c.first, c.last, c.lanes)
                            : c.space == Space::kShared ? shared_place(c.first, c.last)
                                                        : global_place(c.first, c.last);
  const OperationState* mine = access.operation == 0 ? nullptr : &access.state->operation(access.operation);
  const std::string who =
      mine != nullptr ? operation_words(*mine) : lanes_words(access.view.first, access.view.lanes);
  const std::string cta = cta_words(*access.state->cta);
  const std::string here = fmt::format("{} {} {} ({})", who, access.writes ? "writes" : "reads", where,
                                       step_words(*program_, *access.step));
  if (c.uninitialised) {
    return fmt::format("{}: {}, where nothing has been written since the CTA began{}.", cta, here,
                       c.space == Space::kTensor ? " or the columns were allocated" : "");
  }
  if (c.on_mbarrier) {
    return fmt::format("{}: {}, an mbarrier in use; mbarrier.inval must come first.", cta, here);
  }
  const bool same_cta = c.earlier.cta == access.state->number;
  const OperationState* other =
      c.earlier.operation == 0 || !same_cta ? nullptr : &access.state->operation(c.earlier.operation);
  const std::string they = other != nullptr ? operation_words(*other)
                           : same_cta       ? lanes_words(c.earlier.first, c.earlier.lanes)
                                            : fmt::format("CTA number {}", c.earlier.cta);
  const std::string before = fmt::format("{} {} them ({})", they, c.earlier_writes ? "writes" : "reads",
                                         step_words(*program_, *c.earlier.step));
  switch (c.order) {
    case Order::kNotProxied:
      return fmt::format(
          "{}: {} through the asynchronous proxy, and {} through the generic one; they are in order, but no "
          "fence.proxy.async stands between. The writer needs one before its signal.",
          cta, here, before);
    case Order::kNotScoped:
      return fmt::format(
          "{}: {}, and {}; they are in order by a synchronisation of two CTAs at the scope of one, which is "
          "that "
          "of mbarrier operations unless they say otherwise. .release.cluster and .acquire.cluster would "
          "promise "
          "it.",
          cta, here, before);
    case Order::kNotFenced:
      return fmt::format(
          "{}: {}, and {}; they are in order by a synchronisation that lacks "
          "tcgen05.fence::before_thread_sync in "
          "front of it or tcgen05.fence::after_thread_sync behind it.",
          cta, here, before);
    case Order::kOnlyIssueOrder:
      return fmt::format(
          "{}: {}, and {}; only the order of issue keeps them apart, which the ISA promises for products of "
          "one "
          "accumulator and shape. A commit and a wait on it would order them.",
          cta, here, before);
    default:
      if (c.of_sums) {
        return fmt::format(
            "{}: {}, and {}; both add floats, and nothing orders the two, so the last bits of the sum may "
            "change from run to run. The end of the first, released and acquired before the second, would.",
            cta, here, before);
      }
      return fmt::format("{}: {}, and {}; nothing orders the two. {}", cta, here, before,
                         remedy(access, mine, c.earlier, other, c.earlier_writes));
  }
}

}  // namespace flashback::emulator::checking
