#include "emulator/timing/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "emulator/machine/cta.h"
#include "emulator/timing/assembly.h"

namespace flashback::emulator::timing {
namespace {

constexpr int kLanes = 32, kBanks = 32;

// Cycles in which the banks serve the lanes: as many lanes together as make 128 bytes, the same word once for
// all of them, different words of a bank one after the other.
std::uint32_t bank_cycles(const std::uint64_t* addresses, LaneMask lanes, std::uint32_t bytes) {
  const int together = bytes <= 4 ? kLanes : bytes == 8 ? kLanes / 2 : kLanes / 4;
  std::uint32_t cycles = 0;
  std::vector<std::uint64_t> before;
  for (int first = 0; first < kLanes; first += together) {
    std::vector<std::uint64_t> words;
    for (int l = first; l < first + together; ++l) {
      if (!(lanes >> l & 1)) continue;
      for (std::uint32_t b = 0; b < std::max(bytes, 4u); b += 4) words.push_back((addresses[l] + b) / 4);
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    if (words.empty() || words == before) continue;  // a broadcast serves all
    std::array<std::uint32_t, kBanks> of_bank{};
    for (std::uint64_t word : words) ++of_bank[word % kBanks];
    cycles += *std::max_element(of_bank.begin(), of_bank.end());
    before = std::move(words);
  }
  return std::max(cycles, 1u);
}

// Whether the assembler makes nothing of it.
bool vanishes(const Kernel::Step& step) {
  return step.action == Action::kArithmetic && step.instructions == 0;
}

// The events of a warp, from the order of the text to the assembler's.
std::vector<std::uint32_t> assembled_order(const std::vector<Event>& events, const Kernel& kernel) {
  std::vector<std::uint32_t> order;
  for (std::size_t begin = 0; begin < events.size();) {
    const std::uint32_t stretch = kernel.steps[events[begin].step].stretch;
    std::size_t end = begin + 1;
    while (end < events.size() && kernel.steps[events[end].step].stretch == stretch &&
           events[end].step >= events[end - 1].step) {
      ++end;
    }
    const std::size_t first = order.size();
    for (std::size_t i = begin; i < end; ++i) {
      if (!vanishes(kernel.steps[events[i].step])) order.push_back(static_cast<std::uint32_t>(i));
    }
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(),
                     [&](std::uint32_t x, std::uint32_t y) {
                       return kernel.steps[events[x].step].rank < kernel.steps[events[y].step].rank;
                     });
    begin = end;
  }
  return order;
}

// Puts the events of a warp into the assembler's order and links each to those whose results it reads: by the
// registers of the text, in the order of the text, through instructions that vanish.
Stream order_and_link(const std::vector<Event>& events, const Kernel& kernel, const Program& program) {
  const std::vector<std::uint32_t> order = assembled_order(events, kernel);
  std::vector<std::uint32_t> place_of(events.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place_of[order[i]] = i;

  std::unordered_map<Register, std::vector<std::uint32_t>> producers;
  std::vector<std::vector<std::uint32_t>> waits(order.size());
  std::vector<std::uint32_t> read;
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    const std::uint32_t step = events[i].step, begin = program.access_begin[step],
                        end = program.access_begin[step + 1];
    read.clear();
    for (std::uint32_t a = begin; a < end; ++a) {
      if (!program.accesses[a].read) continue;
      const auto found = producers.find(program.accesses[a].register_number);
      if (found != producers.end()) read.insert(read.end(), found->second.begin(), found->second.end());
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    const bool gone = vanishes(kernel.steps[step]);
    if (!gone) waits[place_of[i]] = read;
    for (std::uint32_t a = begin; a < end; ++a) {
      if (!program.accesses[a].written) continue;
      auto& of_register = producers[program.accesses[a].register_number];
      if (gone) {
        of_register = read;
      } else {
        of_register = {place_of[i]};
      }
    }
  }

  // Sections begin where they do in the text, whichever instructions have come before them: as many as there.
  std::vector<std::uint32_t> in_text = order;
  std::sort(in_text.begin(), in_text.end());
  Stream stream;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    Event event = events[order[i]];
    event.section = events[in_text[i]].section;
    event.marks = events[in_text[i]].marks;
    event.waits_begin = static_cast<std::uint32_t>(stream.waits.size());
    event.waits_count = static_cast<std::uint16_t>(waits[i].size());
    stream.waits.insert(stream.waits.end(), waits[i].begin(), waits[i].end());
    stream.events.push_back(event);
  }
  return stream;
}

}  // namespace

// A CTA that runs, each warp's instructions in the order of the machine.
struct Recorder::Open {
  const Cta* cta = nullptr;
  struct WarpState {
    std::vector<Event> events;
    std::uint16_t section = 0, marks = 0;
  };
  std::vector<WarpState> warps;
  std::map<std::uint32_t, std::uint32_t> mbarriers;  // address -> number

  std::uint32_t mbarrier(std::uint32_t address) {
    return mbarriers.try_emplace(address, static_cast<std::uint32_t>(mbarriers.size())).first->second;
  }
};

Recorder::Recorder(std::string entry_prefix, std::function<bool(std::uint64_t)> wants)
    : entry_prefix_(std::move(entry_prefix)), wants_(std::move(wants)) {}
Recorder::~Recorder() = default;

void Recorder::launch_began(const Program& program) {
  program_ = nullptr;
  if (!program.name.starts_with(entry_prefix_)) return;
  program_ = &program;
  try {
    kernel_ = assemble(program);
    a_in_shared_.assign(program.code.size(), false);
    for (std::size_t i = 0; i < program.code.size(); ++i) {
      for (std::uint32_t a = program.access_begin[i]; a < program.access_begin[i + 1]; ++a) {
        const Program::Access& access = program.accesses[a];
        if (access.slot == program.code[i].a && access.bytes == 8) a_in_shared_[i] = true;
      }
    }
  } catch (const std::invalid_argument& no_cost) {
    error_ = fmt::format("{} (entry {})", no_cost.what(), program.name);
    program_ = nullptr;
  }
}

void Recorder::cta_began(const Cta& cta) {
  if (!program_ || !wants_(cta.number())) return;
  auto open = std::make_unique<Open>();
  open->cta = &cta;
  open->warps.resize(cta.warps().size());
  open_.push_back(std::move(open));
}

void Recorder::accessed(const Warp&, const Step&, const LaneAccess& access) {
  if (open_.empty()) return;
  effects_.accesses.push_back(access);
  effects_.addresses.insert(effects_.addresses.end(), access.addresses, access.addresses + kLanes);
}

void Recorder::issued(const Operation& operation) {
  if (!open_.empty()) effects_.operations.push_back(operation);
}

void Recorder::mbarrier(const MbarrierEvent& event) {
  if (!open_.empty() && event.operation == 0) effects_.arrivals.push_back(event);
}

void Recorder::executed(const Warp& warp, const Step& step, LaneMask mask) {
  if (open_.empty()) return;
  for (const auto& open : open_) {
    if (open->cta == &warp.cta()) {
      note(*open, warp, step, mask, static_cast<std::uint32_t>(&step - program_->code.data()));
      break;
    }
  }
  effects_.accesses.clear();
  effects_.addresses.clear();
  effects_.operations.clear();
  effects_.arrivals.clear();
}

void Recorder::note(Open& open, const Warp& warp, const Step& step, LaneMask mask, std::uint32_t index) {
  Open::WarpState& state = open.warps[static_cast<std::size_t>(warp.index())];
  if (kernel_->section_of[index] != Kernel::kSame) {
    state.section = kernel_->section_of[index];
    ++state.marks;
  }
  Event event;
  event.step = index;
  event.section = state.section;
  event.marks = state.marks;
  const int lane = std::countr_zero(mask);
  const auto word = [&](Slot slot) { return slot == kNone ? 0u : warp.lanes<std::uint32_t>(slot)[lane]; };
  // An instruction that lanes execute for several mbarriers stands for one event each.
  const auto each_arrival = [&](MbarrierEvent::Kind kind) {
    for (const MbarrierEvent& arrival : effects_.arrivals) {
      if (arrival.kind != kind || arrival.warp != &warp) continue;
      event.a = open.mbarrier(arrival.address);
      event.b = kind == MbarrierEvent::Kind::kWait ? arrival.parity : arrival.amount;
      state.events.push_back(event);
    }
  };
  const auto each_operation = [&](bool has_mbarrier) {
    for (const Operation& operation : effects_.operations) {
      if (operation.warp != &warp) continue;
      event.a = has_mbarrier ? open.mbarrier(operation.mbarrier) : 0;
      event.b = operation.bytes;
      state.events.push_back(event);
    }
  };

  // A question that is asked again right after it was asked is one wait: the last time counts.
  if (kernel_->steps[index].action == Action::kGlobalLoad &&
      kernel_->opcodes[index].starts_with("ld.acquire")) {
    constexpr std::size_t kLoop = 4;
    for (std::size_t back = 1; back <= std::min(kLoop, state.events.size()); ++back) {
      if (state.events[state.events.size() - back].step != index) continue;
      state.events.resize(state.events.size() - back);
      break;
    }
  }
  switch (kernel_->steps[index].action) {
    case Action::kSharedLoad:
    case Action::kSharedStore:
    case Action::kGlobalLoad:
    case Action::kGlobalStore:
      for (std::size_t i = 0; i < effects_.accesses.size(); ++i) {
        const LaneAccess& access = effects_.accesses[i];
        const std::uint64_t* const addresses = effects_.addresses.data() + kLanes * i;
        event.a += access.owner ? bank_cycles(addresses, access.lanes, access.bytes) : 0;
        event.b += access.bytes * static_cast<std::uint32_t>(std::popcount(access.lanes));
      }
      break;
    case Action::kBarrier:
    case Action::kBarrierArrive:
      event.a = word(step.a);
      event.b = word(step.b);
      break;
    case Action::kPhaseInit:
      return each_arrival(MbarrierEvent::Kind::kInit);
    case Action::kPhaseArrive:
      return each_arrival(MbarrierEvent::Kind::kArrive);
    case Action::kPhaseExpect:
      return each_arrival(MbarrierEvent::Kind::kExpect);
    case Action::kPhaseWait:
      return each_arrival(MbarrierEvent::Kind::kWait);
    case Action::kTensorLoad:
    case Action::kTensorStore:
      event.b = step.list_size;
      break;
    case Action::kProduct: {
      const std::uint32_t instruction = word(step.c);
      event.a =
          Product{(instruction >> 24 & 31) * 16, (instruction >> 17 & 63) * 8, a_in_shared_[index]}.packed();
      event.b = word(step.d) & 0xffff;
      break;
    }
    case Action::kGroupProduct: {
      const WarpProductShape shape = WarpProductShape::of(step);
      event.a = Product{64, static_cast<std::uint32_t>(shape.n), !shape.a_in_registers}.packed();
      break;
    }
    case Action::kCommit:
    case Action::kCopyIn:
      return each_operation(true);
    case Action::kCopyOut:
    case Action::kReduceOut:
      return each_operation(false);
    case Action::kCopyWait:
    case Action::kCopyWaitRead:
    case Action::kGroupWait:
      event.a = static_cast<std::uint32_t>(step.immediate);
      break;
    default:
      break;
  }
  state.events.push_back(event);
}

void Recorder::cta_ended(const Cta& cta) {
  const auto place =
      std::find_if(open_.begin(), open_.end(), [&](const auto& open) { return open->cta == &cta; });
  if (place == open_.end()) return;
  const std::unique_ptr<Open> open = std::move(*place);
  open_.erase(place);
  Recording recording;
  recording.kernel = kernel_;
  recording.cta = cta.number();
  recording.mbarriers = static_cast<std::uint32_t>(open->mbarriers.size());
  for (Open::WarpState& state : open->warps) {
    Stream stream = order_and_link(state.events, *kernel_, *program_);
    recording.warps.push_back(std::move(stream));
  }
  recordings_.push_back(std::move(recording));
}

}  // namespace flashback::emulator::timing
