// SPDX-License-Identifier: Apache-2.0
#include "cli/testing/fake_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace berth::cli {
namespace {

bool IsDiscovery(std::string_view line) {
  const bool root = line == "GET /api" || line == "GET /apis" || line == "GET /api/v1";
  return root || (line.starts_with("GET /apis/") && std::ranges::count(line, '/') == 3);
}

std::string ResourceEntry(std::string_view plural,
                          std::string_view kind,
                          bool namespaced,
                          std::string_view more) {
  return fmt::format(
      R"({{"name":"{}","singularName":"","namespaced":{},"kind":"{}","verbs":["create","delete",)"
      R"("get","list","patch","update","watch"]{}}})",
      plural,
      namespaced,
      kind,
      more);
}

std::string ResourceList(std::string_view group_version, std::string_view entries) {
  return fmt::format(
      R"({{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"{}","resources":[{}]}})",
      group_version,
      entries);
}

std::string GroupEntry(std::string_view group, std::string_view version) {
  return fmt::format(R"({{"name":"{0}","versions":[{{"groupVersion":"{0}/{1}","version":"{1}"}}],)"
                     R"("preferredVersion":{{"groupVersion":"{0}/{1}","version":"{1}"}}}})",
                     group,
                     version);
}

class FakeStreams final : public Streams {
 public:
  explicit FakeStreams(std::vector<FakeServer::Watch> watches) : watches_(std::move(watches)) {
    position_.resize(watches_.size());
  }

  Result<Chunk> Next(std::optional<Duration> limit) override {
    for (size_t i = 0; i < watches_.size(); ++i) {
      if (position_[i] < watches_[i].chunks.size()) {
        return Chunk{.stream = i, .bytes = watches_[i].chunks[position_[i]++]};
      }
    }
    for (size_t i = 0; i < watches_.size(); ++i) {
      if (watches_[i].ends) return Chunk{.stream = i, .bytes = ""};
    }
    return limit ? Timeout("nothing happened") : Unavailable("the fake has nothing more to say");
  }

 private:
  std::vector<FakeServer::Watch> watches_;
  std::vector<size_t> position_;
};

class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(FakeServer& server) : server_(server) {}

  Result<Response> Send(Request request) override {
    if (server_.is_down) return Unavailable("connect to 127.0.0.1:8443: connection refused");
    const std::string line = fmt::format("{} {}", request.method, TargetOf(request));
    Note(line, request);
    const auto found = server_.answers.find(line);
    if (found == server_.answers.end()) {
      return Response{
          .status = 404,
          .headers = {},
          .body = StatusBody(404, "NotFound", fmt::format("{} not found", request.path))};
    }
    FakeServer::Answer answer = found->second.front();
    if (found->second.size() > 1) found->second.erase(found->second.begin());
    Response out{.status = answer.status, .headers = {}, .body = std::move(answer.body)};
    for (const auto& [name, value] : answer.headers) out.headers.Add(name, value);
    return out;
  }

  Result<std::unique_ptr<Streams>> Open(std::vector<Request> requests) override {
    if (server_.is_down) return Unavailable("connect to 127.0.0.1:8443: connection refused");
    std::vector<FakeServer::Watch> watches;
    for (const Request& request : requests) {
      const std::string target = TargetOf(request);
      Note(fmt::format("WATCH {}", target), request);
      const auto found = server_.watches.find(target);
      if (found == server_.watches.end()) return NotFound(fmt::format("{} not found", target));
      watches.push_back(found->second);
    }
    return std::unique_ptr<Streams>(new FakeStreams(std::move(watches)));
  }

 private:
  void Note(const std::string& line, const Request& request) {
    server_.asked.push_back({.line = line,
                             .accept = std::string(request.headers.Get("Accept")),
                             .content_type = std::string(request.headers.Get("Content-Type")),
                             .body = request.body});
  }

  FakeServer& server_;
};

}  // namespace

std::string StatusBody(int code, std::string_view reason, std::string_view message) {
  return fmt::format(
      R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{}",)"
      R"("reason":"{}","code":{}}})",
      message,
      reason,
      code);
}

void FakeServer::On(const std::string& line, std::string body, int status) {
  answers[line].push_back({.status = status, .body = std::move(body), .headers = {}});
}

std::vector<std::string> FakeServer::Lines() const {
  std::vector<std::string> out;
  for (const Asked& one : asked) {
    if (!IsDiscovery(one.line)) out.push_back(one.line);
  }
  return out;
}

FakeServer::Asked FakeServer::Last(std::string_view prefix) const {
  Asked out;
  for (const Asked& one : asked) {
    if (one.line.starts_with(prefix)) out = one;
  }
  return out;
}

void FakeServer::ServeDiscovery() {
  On("GET /api", R"({"kind":"APIVersions","versions":["v1"]})");
  On("GET /apis",
     fmt::format(R"({{"kind":"APIGroupList","groups":[{},{},{}]}})",
                 GroupEntry("compute.ironcore.dev", "v1alpha1"),
                 GroupEntry("storage.ironcore.dev", "v1alpha1"),
                 GroupEntry("compute.OpenKCM.dev", "v1alpha1")));
  On("GET /api/v1",
     ResourceList(
         "v1",
         fmt::format("{},{},{},{}",
                     ResourceEntry("namespaces", "Namespace", false, R"(,"shortNames":["ns"])"),
                     ResourceEntry("secrets", "Secret", true, ""),
                     ResourceEntry("configmaps", "ConfigMap", true, R"(,"shortNames":["cm"])"),
                     ResourceEntry("events", "Event", true, R"(,"shortNames":["ev"])"))));
  const std::string compute = fmt::format(
      "{},{},{}",
      ResourceEntry("machines", "Machine", true, R"(,"categories":["all"])"),
      R"({"name":"machines/status","namespaced":true,"kind":"Machine","verbs":["get"]})",
      ResourceEntry("machineclasses", "MachineClass", false, R"(,"categories":["classes"])"));
  for (const std::string_view group : {"compute.ironcore.dev", "compute.OpenKCM.dev"}) {
    On(fmt::format("GET /apis/{}/v1alpha1", group),
       ResourceList(fmt::format("{}/v1alpha1", group), compute));
  }
  On("GET /apis/storage.ironcore.dev/v1alpha1",
     ResourceList("storage.ironcore.dev/v1alpha1",
                  ResourceEntry(
                      "volumes", "Volume", true, R"(,"shortNames":["vol"],"categories":["all"])")));
}

std::unique_ptr<Transport> FakeServer::Connect() { return std::make_unique<FakeTransport>(*this); }

}  // namespace berth::cli
