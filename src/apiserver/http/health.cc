// SPDX-License-Identifier: Apache-2.0
#include "apiserver/http/health.h"

#include <algorithm>
#include <utility>

#include "apiserver/http/answers.h"
#include "base/strings.h"

namespace berth::apiserver {

Health::Health(std::vector<Check> ready) {
  live_.push_back({.name = "ping", .look = [] { return OkStatus(); }});
  ready_ = live_;
  std::ranges::move(ready, std::back_inserter(ready_));
}

std::optional<net::HttpResponse> Health::Answer(std::string_view path,
                                                const net::Query& query) const {
  const size_t slash = path.find('/', 1);
  const std::string_view root = path.substr(0, slash);
  if (root != "/livez" && root != "/readyz" && root != "/healthz") return std::nullopt;
  const std::vector<Check>& checks = root == "/livez" ? live_ : ready_;
  if (slash == path.npos) return Tell(root.substr(1), checks, query);
  const auto one = std::ranges::find(checks, path.substr(slash + 1), &Check::name);
  if (one == checks.end()) return std::nullopt;
  return Tell(path.substr(1), {&*one, 1}, query);
}

net::HttpResponse Health::Tell(std::string_view root,
                               std::span<const Check> checks,
                               const net::Query& query) {
  const std::vector<std::string_view> excluded = query.GetAll("exclude");
  std::string lines;
  Status first;
  for (const Check& check : checks) {
    if (std::ranges::find(excluded, check.name) != excluded.end()) {
      lines += "[+]" + check.name + " excluded: ok\n";
      continue;
    }
    const Status seen = check.look();
    if (first.ok()) first = seen;
    lines += seen.ok() ? "[+]" + check.name + " ok\n"
                       : "[-]" + check.name + " failed: " + Printable(seen.message()) + "\n";
  }
  for (const std::string_view name : excluded) {
    if (std::ranges::find(checks, name, &Check::name) != checks.end()) continue;
    lines += "warn: some health checks cannot be excluded: no matches for " + Quote(name) + "\n";
  }
  const int status = first.ok() ? 200 : 503;
  if (query.Has("verbose")) {
    const std::string verdict = first.ok() ? " check passed\n" : " check failed\n";
    return TextAnswer(status, lines + std::string(root) + verdict);
  }
  return TextAnswer(status, first.ok() ? "ok" : std::string(first.message()));
}

}  // namespace berth::apiserver
