#include "bench/clocks/clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <vector>

namespace flashback::clocks {
namespace {

constexpr std::string_view kMark = "//@ ";
// Instructions that wait. After mbarrier.try_wait comes the branch that asks again.
constexpr std::string_view kAsks = "mbarrier.try_wait";
constexpr std::string_view kWaits[] = {"bar.sync", "barrier.cluster.wait", "wgmma.wait_group",
                                       "cp.async.bulk.wait_group", "tcgen05.wait::"};
// Between places that are one: at most so many instructions, of registers only.
constexpr int kSideBySide = 10;
// After so many instructions in a row since the note before, the begin of a wait is not noted, nor its end.
constexpr int kLongStretch = 128;
constexpr std::uint32_t kLanes = 32;

bool has(std::string_view line, std::string_view what) {
  return line.find(what) != std::string_view::npos;
}
bool waits(std::string_view line) {
  return std::any_of(std::begin(kWaits), std::end(kWaits), [&](auto what) { return has(line, what); });
}
bool is_code(std::string_view line) {
  return !line.empty() && !line.starts_with("\t.") && !line.starts_with(".") && !line.starts_with("\t//");
}
// Neither a label nor a branch, and no time to speak of.
bool of_registers(std::string_view line) {
  if (has(line, "bar.arrive")) return true;
  for (std::string_view what : {"[", ":", "bra ", ".sync", "fence", "ret;"}) {
    if (has(line, what)) return false;
  }
  return true;
}

bool is_label(std::string_view line) {
  return line.starts_with("$") && line.ends_with(":");
}

// Where the parameters have Notes, and how rows lie there.
struct Rows {
  std::string parameter;
  std::size_t notes_at, words;
  int warps;

  std::string notes(std::size_t offset) const { return fmt::format("{}+{}", parameter, notes_at + offset); }
};

// From a label to a branch back to it.
struct Loop {
  std::size_t begin, end;  // lines
  bool of_warps = false;   // has an instruction that all lanes execute at once
};

std::vector<Loop> loops_of(const std::vector<std::string_view>& lines) {
  std::map<std::string_view, std::size_t> labels;
  std::vector<Loop> loops;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (is_label(line)) labels[line.substr(0, line.size() - 1)] = i;
    const std::size_t to = line.find('$');
    if (!has(line, "bra") || to == std::string_view::npos) continue;
    const auto label = labels.find(line.substr(to, line.size() - 1 - to));
    if (label == labels.end()) continue;
    const auto begin = lines.begin() + long(label->second);
    loops.push_back({label->second, i, std::any_of(begin, lines.begin() + long(i), [](std::string_view of) {
                       return has(of, ".sync") || has(of, ".aligned");
                     })});
  }
  return loops;
}

// The lines of an entry's body, with notes in between.
class Body {
 public:
  Body(std::string_view text, std::uint32_t first_line, Rows rows, std::vector<Place>& places)
      : first_line_(first_line), rows_(std::move(rows)), places_(places) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines_.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    loops_ = loops_of(lines_);
  }

  std::string with_notes(Where where) {
    bool begun = false;
    for (at_ = 0; at_ < lines_.size(); ++at_) {
      const std::string_view line = lines_[at_];
      if (!begun && !line.empty() && !line.starts_with("\t.")) {
        begun = true;
        begin();
      }
      if (line == "\tret;") note_end(kEnd);
      if (where == Where::kSections) before(line);
      out_ += line;
      out_ += '\n';
      if (where == Where::kSections) after(line);
    }
    return std::move(out_);
  }

 private:
  // What stands before a line of the text.
  void before(std::string_view line) {
    // The label of an mbarrier's question stands right before it.
    const bool asks_next = at_ + 1 < lines_.size() && has(lines_[at_ + 1], kAsks);
    if (asks_next || waits(line)) wait_from(first_line_ + static_cast<std::uint32_t>(at_) + asks_next);
    asking_ |= has(line, kAsks);
    for (const Loop& loop : loops_) {
      if (loop.end == at_) close_row(loop);
    }
  }
  void after(std::string_view line) {
    if (is_label(line)) since_ = 0;
    if (is_code(line)) {
      ++since_;
      near_ = of_registers(line) ? near_ - 1 : 0;
    }
    if (waits(line) || (asking_ && has(line, "bra "))) {
      asking_ = false;
      near_ = 0;
      if (waiting_) note({.ends_wait = true});
    }
    if (const std::size_t mark = line.find(kMark); mark != std::string_view::npos)
      begin_section(std::string(line.substr(mark + kMark.size())));
  }

  // The place right before here, if it is one with a new one.
  Place* side_by_side() { return near_ > 0 ? &places_.back() : nullptr; }

  void wait_from(std::uint32_t line) {
    waiting_ = since_ < kLongStretch;
    if (!waiting_) return;
    if (Place* const before = side_by_side(); before && before->waiting_line == 0) {
      before->waiting_line = line;
    } else {
      note({.waiting_line = line});
    }
  }
  void begin_section(std::string section) {
    if (Place* const before = side_by_side();
        before && before->section.empty() && before->waiting_line == 0) {
      before->section = std::move(section);
    } else {
      note({.section = std::move(section)});
    }
  }

  // Only CTA 0 stores notes.
  void begin() {
    out_ += fmt::format(
        ".reg .b64 %ck_to;\n.reg .b32 %ck_row, %ck_lane, %ck_warp, %ck_half, %ck_other, %ck_notes<{}>;\n"
        ".reg .pred %ck_stores, %ck_first, %ck_here;\n"
        "mov.u32 %ck_half, %ctaid.x;\nmov.u32 %ck_other, %ctaid.y;\nor.b32 %ck_half, %ck_half, %ck_other;\n"
        "mov.u32 %ck_other, %ctaid.z;\nor.b32 %ck_half, %ck_half, %ck_other;\n"
        "setp.eq.u32 %ck_stores, %ck_half, 0;\nmov.u32 %ck_warp, %tid.x;\n"
        "and.b32 %ck_lane, %ck_warp, 31;\nshr.u32 %ck_warp, %ck_warp, 5;\n"
        "setp.eq.and.u32 %ck_first, %ck_lane, 0, %ck_stores;\n"
        "ld.param.u32 %ck_row, [{}];\nmad.lo.u32 %ck_row, %ck_warp, {}, %ck_row;\n",
        rows_.words / kLanes + 1, rows_.notes(offsetof(Notes, begin)), rows_.words * sizeof(std::uint32_t));
    for (std::size_t i = 0; i < rows_.words / kLanes; ++i)
      out_ += fmt::format("mov.u32 %ck_notes{}, {};\n", i, kNoClock);
    places_.resize(2);
    note_end(kBegin);
  }
  void note_end(std::uint32_t which) {
    out_ += fmt::format(
        "mov.u32 %ck_half, %clock;\nld.param.u64 %ck_to, [{}];\nmad.wide.u32 %ck_to, %ck_warp, 8, %ck_to;\n"
        "@%ck_first st.global.u32 [%ck_to+{}], %ck_half;\n",
        rows_.notes(offsetof(Notes, ends)), which * sizeof(std::uint32_t));
  }
  void note(Place place) {
    const std::size_t n = places_.size() - 2;
    if (at_once()) {
      out_ += fmt::format("mov.u32 %ck_half, %clock;\n{}@%ck_stores st.global.u32 [%ck_to+{}], %ck_half;\n",
                          address("%ck_row", "%ck_other"), n * sizeof(std::uint32_t));
    } else {
      out_ += fmt::format("setp.eq.u32 %ck_here, %ck_lane, {};\n@%ck_here mov.u32 %ck_notes{}, %clock;\n",
                          n % kLanes, n / kLanes);
    }
    noted_.push_back({at_, n / kLanes, !at_once()});
    places_.push_back(std::move(place));
    near_ = kSideBySide;
    since_ = 0;
  }
  // Whether a note is stored at once: outside of loops, and where a warp may be down to a lane, in a loop
  // that has nothing which all lanes execute together and where a thread waits for bulk copies of its own.
  bool at_once() const {
    const Loop* innermost = nullptr;
    for (const Loop& loop : loops_) {
      if (loop.begin > at_ || at_ > loop.end) continue;
      if (!innermost || loop.end - loop.begin < innermost->end - innermost->begin) innermost = &loop;
    }
    return !innermost || !innermost->of_warps || has(lines_[at_], "cp.async.bulk.wait_group");
  }
  // Stores what lanes keep of the notes of a loop, and goes on to the next row.
  void close_row(const Loop& loop) {
    if (noted_.empty() || noted_.back().line < loop.begin) return;
    std::set<std::size_t> registers;
    for (const Noted& note : noted_) {
      if (note.line >= loop.begin && note.kept) registers.insert(note.index);
    }
    if (!registers.empty())
      out_ += "mad.lo.u32 %ck_half, %ck_lane, 4, %ck_row;\n" + address("%ck_half", "%ck_other");
    for (std::size_t i : registers) {
      out_ += fmt::format(
          "setp.ne.and.u32 %ck_here, %ck_notes{0}, {1}, %ck_stores;\n"
          "@%ck_here st.global.u32 [%ck_to+{2}], %ck_notes{0};\nmov.u32 %ck_notes{0}, {1};\n",
          i, kNoClock, i * kLanes * sizeof(std::uint32_t));
    }
    out_ += fmt::format(
        "ld.param.u32 %ck_half, [{}];\nadd.u32 %ck_row, %ck_row, {};\n"
        "setp.lt.and.u32 %ck_stores, %ck_row, %ck_half, %ck_stores;\n",
        rows_.notes(offsetof(Notes, end)),
        rows_.words * sizeof(std::uint32_t) * static_cast<std::size_t>(rows_.warps));
    near_ = 0;
  }
  // Makes %ck_to of its lower half.
  std::string address(std::string_view low, std::string_view high) const {
    return fmt::format("ld.param.u32 {1}, [{2}];\nmov.b64 %ck_to, {{{0}, {1}}};\n", low, high,
                       rows_.notes(offsetof(Notes, begin) + 4));
  }

  const std::uint32_t first_line_;
  const Rows rows_;
  std::vector<Place>& places_;
  std::vector<std::string_view> lines_;
  std::vector<Loop> loops_;
  struct Noted {
    std::size_t line, index;  // which of %ck_notes
    bool kept;                // there, until the row is closed
  };
  std::vector<Noted> noted_;
  std::string out_;
  std::size_t at_ = 0;    // line
  bool asking_ = false;   // an mbarrier; the branch is to come
  bool waiting_ = false;  // in a wait whose begin is noted
  int near_ = 0;          // instructions for which the last place still counts as this one
  int since_ = 0;         // instructions since the last note or label
};

}  // namespace

ClockedKernel with_clocks(std::string_view ptx, std::string_view entry, int warps, Where where) {
  ClockedKernel kernel;
  constexpr std::string_view kEntry = ".visible .entry ";
  const std::size_t head = ptx.find(fmt::format("{}{}(", kEntry, entry));
  if (head == std::string_view::npos) return kernel;
  // Blocks within a body end in the same way as the body: its own end is the last one before the next entry.
  const auto end_of = [&](std::size_t of_entry) {
    return ptx.rfind("\n}\n", ptx.find(kEntry, of_entry + 1)) + 1;
  };
  const std::size_t body = ptx.find("\n{\n", head) + 3, end = end_of(head);
  // The one parameter is a struct, `.b8 NAME_param_0[BYTES]`.
  const std::string parameter = fmt::format("{}_param_0", entry);
  const std::size_t size = ptx.find(parameter + "[", head) + parameter.size() + 1,
                    size_end = ptx.find(']', size);
  kernel.notes_at = (std::stoul(std::string(ptx.substr(size, size_end - size))) + 7) / 8 * 8;

  const auto line = static_cast<std::uint32_t>(1 + std::count(ptx.begin(), ptx.begin() + long(body), '\n'));
  const auto clocked_body = [&](std::size_t row_words) {
    kernel.places.clear();
    const Rows rows = {parameter, kernel.notes_at, row_words, warps};
    return Body(ptx.substr(body, end - body), line, rows, kernel.places).with_notes(where);
  };
  clocked_body(0);  // how long a row is, is known once all places are
  kernel.ptx = fmt::format("{}{}{}{}{}{}", ptx.substr(0, ptx.find(kEntry)), ptx.substr(head, size - head),
                           kernel.notes_at + sizeof(Notes), ptx.substr(size_end, body - size_end),
                           clocked_body(kernel.row_words()), ptx.substr(end_of(ptx.rfind(kEntry))));
  return kernel;
}

}  // namespace flashback::clocks
