// CLI11's class by name: whoever only passes one on need not compile CLI11.
#pragma once

namespace CLI {
class App;
}
