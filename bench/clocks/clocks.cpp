#include "bench/clocks/clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace flashback::clocks {
namespace {

constexpr std::string_view kMark = "//@ ";
// Instructions that wait. After mbarrier.try_wait comes the branch that asks again.
constexpr std::string_view kAsks = "mbarrier.try_wait";
constexpr std::string_view kWaits[] = {"bar.sync", "barrier.cluster.wait", "wgmma.wait_group",
                                       "cp.async.bulk.wait_group", "tcgen05.wait::"};
// Between places that are one: at most so many instructions, of registers only.
constexpr int kSideBySide = 10;

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

// Where the parameters have Notes, and how rows lie there.
struct Rows {
  std::string parameter;
  std::size_t notes_at, bytes;
  int warps;

  std::string notes(std::size_t offset) const { return fmt::format("{}+{}", parameter, notes_at + offset); }
};

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
  }

  std::string with_notes(Where where) {
    bool begun = false, asking = false;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::string_view line = lines_[i];
      if (!begun && !line.empty() && !line.starts_with("\t.")) {
        begun = true;
        begin();
      }
      if (line == "\tret;") note({});
      if (where == Where::kSections) {
        // The question's label stands right before it.
        const bool asks_next = i + 1 < lines_.size() && has(lines_[i + 1], kAsks);
        const auto number = first_line_ + static_cast<std::uint32_t>(i);
        if (asks_next || waits(line)) wait_from(number + asks_next);
        asking |= has(line, kAsks);
      }
      out_ += line;
      out_ += '\n';
      if (is_code(line)) near_ = of_registers(line) ? near_ - 1 : 0;
      if (where == Where::kEnds) continue;
      if (waits(line) || (asking && has(line, "bra "))) {
        asking = false;
        near_ = 0;
        note({.ends_wait = true});
      }
      if (const std::size_t mark = line.find(kMark); mark != std::string_view::npos)
        begin_section(std::string(line.substr(mark + kMark.size())));
    }
    return std::move(out_);
  }

 private:
  // The place right before here, if it is one with a new one.
  Place* side_by_side() { return near_ > 0 ? &places_.back() : nullptr; }

  void wait_from(std::uint32_t line) {
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
    close_row();
  }

  // Only the first thread of a warp of CTA 0 makes notes.
  void begin() {
    out_ += fmt::format(
        ".reg .b64 %ck_to;\n.reg .b32 %ck_row, %ck_high, %ck_end, %ck_other;\n.reg .pred %ck_notes;\n"
        "mov.u32 %ck_end, %ctaid.x;\nmov.u32 %ck_other, %ctaid.y;\nor.b32 %ck_end, %ck_end, %ck_other;\n"
        "mov.u32 %ck_other, %ctaid.z;\nor.b32 %ck_end, %ck_end, %ck_other;\nmov.u32 %ck_row, %tid.x;\n"
        "and.b32 %ck_other, %ck_row, 31;\nor.b32 %ck_end, %ck_end, %ck_other;\n"
        "setp.eq.u32 %ck_notes, %ck_end, 0;\nshr.u32 %ck_row, %ck_row, 5;\nld.param.u32 %ck_end, [{}];\n"
        "mad.lo.u32 %ck_row, %ck_row, {}, %ck_end;\n",
        rows_.notes(offsetof(Notes, begin)), rows_.bytes);
    note({});
    near_ = 0;
  }
  // A reading of the clock and a store of it: two instructions, if registers permit.
  void note(Place place) {
    out_ += fmt::format(
        "{{\n.reg .b32 %ck_clock;\nmov.u32 %ck_clock, %clock;\nld.param.u32 %ck_high, [{}];\n"
        "mov.b64 %ck_to, {{%ck_row, %ck_high}};\n@%ck_notes st.global.u32 [%ck_to+{}], %ck_clock;\n}}\n",
        rows_.notes(offsetof(Notes, begin) + 4), places_.size() * sizeof(std::uint32_t));
    places_.push_back(std::move(place));
    near_ = kSideBySide;
  }
  void close_row() {
    out_ += fmt::format(
        "ld.param.u32 %ck_end, [{}];\n@%ck_notes add.u32 %ck_row, %ck_row, {};\n"
        "setp.lt.and.u32 %ck_notes, %ck_row, %ck_end, %ck_notes;\n",
        rows_.notes(offsetof(Notes, end)), rows_.bytes * static_cast<std::size_t>(rows_.warps));
  }

  const std::uint32_t first_line_;
  const Rows rows_;
  std::vector<Place>& places_;
  std::vector<std::string_view> lines_;
  std::string out_;
  int near_ = 0;  // instructions for which the last place still counts as this one
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
  const auto clocked_body = [&](std::size_t places) {
    kernel.places.clear();
    const Rows rows = {parameter, kernel.notes_at, places * sizeof(std::uint32_t), warps};
    return Body(ptx.substr(body, end - body), line, rows, kernel.places).with_notes(where);
  };
  clocked_body(0);  // how long a row is, is known once all places are
  kernel.ptx = fmt::format("{}{}{}{}{}{}", ptx.substr(0, ptx.find(kEntry)), ptx.substr(head, size - head),
                           kernel.notes_at + sizeof(Notes), ptx.substr(size_end, body - size_end),
                           clocked_body(kernel.places.size()), ptx.substr(end_of(ptx.rfind(kEntry))));
  return kernel;
}

}  // namespace flashback::clocks
