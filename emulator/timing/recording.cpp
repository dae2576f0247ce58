#include "emulator/timing/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "emulator/machine/cta.h"
#include "emulator/machine/units/tensor_map.h"
#include "emulator/timing/assembly.h"

namespace flashback::emulator::timing {
namespace {

constexpr int kLanes = 32, kBanks = 32;

template <class F>
void each_lane(LaneMask mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

int first_lane(LaneMask mask) {
  return std::countr_zero(mask);
}

// Digits behind `what` in the opcode: 4 of ".v4", 32 of ".x32".
std::uint32_t number_behind(std::string_view opcode, std::string_view what, std::uint32_t otherwise) {
  const std::size_t at = opcode.find(what);
  if (at == std::string_view::npos) return otherwise;
  std::uint32_t number = 0;
  for (std::size_t i = at + what.size(); i < opcode.size() && opcode[i] >= '0' && opcode[i] <= '9'; ++i) {
    number = 10 * number + static_cast<std::uint32_t>(opcode[i] - '0');
  }
  return number == 0 ? otherwise : number;
}

// Bytes of the type that ends an opcode: "ld.shared.v2.b64" has 8.
std::uint32_t type_bytes(std::string_view opcode) {
  const std::string_view type = opcode.substr(opcode.rfind('.') + 2);
  std::uint32_t bits = 0;
  for (char c : type) {
    if (c < '0' || c > '9') break;
    bits = 10 * bits + static_cast<std::uint32_t>(c - '0');
  }
  return std::max(bits / 8, 1u);
}

// Cycles in which the banks serve the lanes: lanes that fit into 128 bytes go together, the same word of a
// bank is read once, different ones one after the other.
std::uint32_t bank_cycles(const std::array<std::uint64_t, kLanes>& addresses, LaneMask mask,
                          std::uint32_t bytes) {
  const int together = bytes <= 4 ? kLanes : bytes == 8 ? kLanes / 2 : kLanes / 4;
  std::uint32_t cycles = 0;
  std::array<std::vector<std::uint64_t>, kBanks> words;
  std::vector<std::uint64_t> seen_groups;
  for (int first = 0; first < kLanes; first += together) {
    for (auto& bank : words) bank.clear();
    for (int l = first; l < first + together; ++l) {
      if (!(mask >> l & 1)) continue;
      for (std::uint64_t word = addresses[l] / 4; word < (addresses[l] + std::max(bytes, 4u)) / 4; ++word) {
        auto& bank = words[word % kBanks];
        if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
      }
    }
    std::size_t worst = 0;
    for (const auto& bank : words) worst = std::max(worst, bank.size());
    if (worst == 0) continue;
    // Lanes that all read what the lanes before them read cost nothing.
    const std::uint64_t key = addresses[first_lane(mask >> first) + first];
    bool broadcast = worst == 1;
    for (int l = first; l < first + together; ++l) broadcast &= !(mask >> l & 1) || addresses[l] == key;
    if (broadcast && std::find(seen_groups.begin(), seen_groups.end(), key) != seen_groups.end()) continue;
    if (broadcast) seen_groups.push_back(key);
    cycles += static_cast<std::uint32_t>(worst);
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

  Stream stream;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    Event event = events[order[i]];
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
    std::uint16_t section = 0;
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
  } catch (const std::invalid_argument& no_cost) {
    throw Fault(fmt::format("{} (entry {})", no_cost.what(), program.name));
  }
}

void Recorder::cta_began(const Cta& cta) {
  if (!program_ || !wants_(cta.number())) return;
  auto open = std::make_unique<Open>();
  open->cta = &cta;
  open->warps.resize(cta.warps().size());
  open_.push_back(std::move(open));
}

void Recorder::executed(const Warp& warp, const Step& step, LaneMask mask) {
  if (!program_) return;
  for (const auto& open : open_) {
    if (open->cta != &warp.cta()) continue;
    note(*open, warp, step, mask, static_cast<std::uint32_t>(&step - program_->code.data()));
    return;
  }
}

void Recorder::note(Open& open, const Warp& warp, const Step& step, LaneMask mask, std::uint32_t index) {
  Open::WarpState& state = open.warps[static_cast<std::size_t>(warp.index())];
  if (kernel_->section_of[index] != Kernel::kSame) state.section = kernel_->section_of[index];
  Event event;
  event.step = index;
  event.section = state.section;

  const std::string_view opcode = kernel_->opcodes[index];
  const int lane = first_lane(mask);
  const auto word = [&](Slot slot, int l) { return slot == kNone ? 0u : warp.lanes<std::uint32_t>(slot)[l]; };
  const auto wide = [&](Slot slot, int l) { return warp.lanes<std::uint64_t>(slot)[l]; };
  const auto is_wide = [&](Slot slot) {
    for (std::uint32_t a = program_->access_begin[index]; a < program_->access_begin[index + 1]; ++a) {
      if (program_->accesses[a].slot == slot) return program_->accesses[a].bytes == 8;
    }
    return false;  // a preset: the address of a shared variable
  };
  const auto address = [&](Slot slot, std::int64_t displacement, int l) {
    return (is_wide(slot) ? wide(slot, l) : word(slot, l)) + static_cast<std::uint64_t>(displacement);
  };
  // An instruction that lanes execute for different mbarriers stands for one event each.
  const auto each_mbarrier = [&](auto&& amount_of) {
    std::map<std::uint32_t, std::uint32_t> amounts;
    each_lane(mask, [&](int l) {
      amounts[static_cast<std::uint32_t>(address(step.a, step.immediate, l))] += amount_of(l);
    });
    for (const auto& [at, amount] : amounts) {
      event.a = open.mbarrier(at);
      event.b = amount;
      state.events.push_back(event);
    }
  };

  switch (kernel_->steps[index].action) {
    case Action::kSharedLoad:
    case Action::kSharedStore: {
      const bool matrix = opcode.starts_with("ldmatrix") || opcode.starts_with("stmatrix");
      const std::uint32_t count = matrix ? number_behind(opcode, ".x", 1) : number_behind(opcode, ".v", 1);
      const std::uint32_t bytes = matrix ? 16 : count * type_bytes(opcode);
      std::array<std::uint64_t, kLanes> addresses{};
      const LaneMask taking = matrix && count < 4 ? (LaneMask{1} << 8 * count) - 1 : mask;
      each_lane(taking, [&](int l) { addresses[l] = address(step.a, step.immediate, l); });
      event.a = bank_cycles(addresses, taking, bytes);
      event.b = matrix ? count * 128 : bytes * static_cast<std::uint32_t>(std::popcount(mask));
      state.events.push_back(event);
      return;
    }
    case Action::kGlobalLoad:
    case Action::kGlobalStore: {
      event.b = number_behind(opcode, ".v", 1) * type_bytes(opcode) *
                static_cast<std::uint32_t>(std::popcount(mask));
      event.a = (event.b + 31) / 32;
      state.events.push_back(event);
      return;
    }
    case Action::kBarrier:
    case Action::kBarrierArrive:
      event.a = word(step.a, lane);
      event.b = word(step.b, lane);
      break;
    case Action::kPhaseInit:
      each_mbarrier([&](int l) { return word(step.b, l); });
      return;
    case Action::kPhaseArrive:
      each_mbarrier([&](int l) { return step.b == kNone ? 1u : word(step.b, l); });
      return;
    case Action::kPhaseExpect:
      each_mbarrier([&](int l) { return word(step.b, l); });
      return;
    case Action::kPhaseWait:
      event.a = open.mbarrier(static_cast<std::uint32_t>(address(step.a, step.immediate, lane)));
      event.b = word(step.b, lane) & 1;
      break;
    case Action::kTensorLoad:
    case Action::kTensorStore:
      event.b = step.list_size;
      break;
    case Action::kProduct: {
      const std::uint32_t instruction = word(step.c, lane);
      event.a =
          Product{(instruction >> 24 & 31) * 16, (instruction >> 17 & 63) * 8, is_wide(step.a)}.packed();
      event.b = word(step.d, lane) & 0xffff;
      break;
    }
    case Action::kCommit:
      event.a = open.mbarrier(static_cast<std::uint32_t>(address(step.a, step.immediate, lane)));
      break;
    case Action::kGroupProduct: {
      const WarpProductShape shape = WarpProductShape::of(step);
      event.a = Product{64, static_cast<std::uint32_t>(shape.n), !shape.a_in_registers}.packed();
      break;
    }
    case Action::kCopyIn: {
      const bool tiled = opcode.starts_with("cp.async.bulk.tensor");
      each_lane(mask, [&](int l) {
        event.a = open.mbarrier(word(tiled ? step.b : step.c, l));
        event.b = tiled ? reinterpret_cast<const TensorMap*>(wide(step.a, l))->box_bytes() : word(step.b, l);
        state.events.push_back(event);
      });
      return;
    }
    case Action::kCopyOut:
    case Action::kReduceOut: {
      const bool tiled = opcode.find(".bulk.tensor") != std::string_view::npos;
      each_lane(mask, [&](int l) {
        event.b = tiled ? reinterpret_cast<const TensorMap*>(wide(step.d, l) +
                                                             static_cast<std::uint64_t>(step.immediate))
                              ->box_bytes()
                        : word(step.b, l);
        state.events.push_back(event);
      });
      return;
    }
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
