#include <nlohmann/json.hpp>

#include "emulator/trace/lanes.h"

namespace flashback::emulator::trace {

std::string chrome_json(std::span<const Run> runs) {
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  int process = 0;
  for (const Run& run : runs) {
    ++process;
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", process},
                      {"args", {{"name", run.title + ", " + run.word}}}});
    int thread = 0;
    for (const Lane& lane : lanes_of(run)) {
      ++thread;
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", process},
                        {"tid", thread},
                        {"args", {{"name", lane.name}}}});
      // Overlapping bars of one thread would be taken for nested ones: copies are asynchronous slices.
      int id = 0;
      for (const Bar& bar : lane.bars) {
        const std::string name = bar.waits ? "waits for " + bar.waits_for : bar.name;
        if (name.empty()) continue;
        if (lane.of_warp || lane.name == "tensor core") {
          events.push_back({{"name", name},
                            {"cat", bar.waits ? "wait" : "work"},
                            {"ph", "X"},
                            {"ts", bar.begin},
                            {"dur", bar.end - bar.begin},
                            {"pid", process},
                            {"tid", thread}});
          continue;
        }
        for (const char* phase : {"b", "e"}) {
          events.push_back({{"name", name},
                            {"cat", lane.name},
                            {"ph", phase},
                            {"id", 1000 * thread + id},
                            {"ts", *phase == 'b' ? bar.begin : bar.end},
                            {"pid", process},
                            {"tid", thread}});
        }
        ++id;
      }
    }
    for (const timing::Meeting& meeting : run.timeline.meetings) {
      events.push_back({{"name", "barrier of " + std::to_string(meeting.warps) + " warps"},
                        {"ph", "i"},
                        {"s", "p"},
                        {"ts", meeting.time},
                        {"pid", process},
                        {"tid", 0}});
    }
  }
  return Json{{"displayTimeUnit", "ms"},
              {"otherData", {{"unit", "a microsecond is an SM cycle"}}},
              {"traceEvents", std::move(events)}}
             .dump() +
         "\n";
}

}  // namespace flashback::emulator::trace
