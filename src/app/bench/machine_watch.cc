// SPDX-License-Identifier: Apache-2.0
#include "app/bench/machine_watch.h"

#include <cstring>
#include <optional>
#include <utility>

namespace berth::app {
namespace {

// The text behind `wanted`; nullopt if it is not there. Events are searched, not parsed: parsing
// them would cost the bench more than making them costs the server. memmem, because
// string_view::find stops at each quote of the JSON text.
std::optional<std::string_view> Behind(std::string_view text, std::string_view wanted) {
  const void* at = memmem(text.data(), text.size(), wanted.data(), wanted.size());
  if (at == nullptr) return std::nullopt;
  return text.substr(static_cast<size_t>(static_cast<const char*>(at) - text.data()) +
                     wanted.size());
}

// The text between `before` and the next quote; "" if it is not there.
std::string_view After(std::string_view text, std::string_view before) {
  const auto behind = Behind(text, before);
  return behind ? behind->substr(0, behind->find('"')) : std::string_view();
}

// The first such text of the object's own metadata; "" if it is not there.
std::string_view InMetadata(std::string_view line, std::string_view before) {
  const auto metadata = Behind(line, R"("metadata":{)");
  return metadata ? After(*metadata, before) : std::string_view();
}

}  // namespace

rt::Task<Status> MachineWatch::Follow(net::HttpClient* client, std::string namespace_) {
  net::HttpClientRequest request;
  request.target = "/apis/compute.ironcore.dev/v1alpha1/namespaces/" + namespace_ +
                   "/machines?watch=true&timeoutSeconds=3600";
  rest_.clear();
  is_open_ = false;
  CO_TRY(const auto stream, co_await client->Open(std::move(request), Duration::Seconds(30)));
  if (stream->status() != 200) {
    co_return Internal("watch: the server answered " + std::to_string(stream->status()));
  }
  is_open_ = true;
  while (true) {
    const auto bytes = co_await stream->Read();
    if (!bytes.ok() || bytes->empty()) is_open_ = false;
    CO_TRY_STATUS(bytes);
    if (bytes->empty()) co_return Unavailable("the server ended the watch: " + error_);
    Take(*bytes);
  }
}

void MachineWatch::Take(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      rest_ += bytes;
      return;
    }
    if (rest_.empty()) {
      TakeEvent(bytes.substr(0, end));
    } else {
      rest_ += bytes.substr(0, end);
      TakeEvent(rest_);
      rest_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

void MachineWatch::TakeEvent(std::string_view line) {
  const std::string_view pool = After(line, R"("machinePoolRef":{"name":")");
  if (pool.empty()) {
    if (Behind(line, R"("type":"ERROR")")) error_ = line;
    return;
  }
  const Time now = loop_.Now();
  const auto [found, is_new] = machines_.try_emplace(std::string(InMetadata(line, R"("name":")")));
  Seen& seen = found->second;
  if (is_new) {
    seen.bound = now;
    seen.pool = pool;
    seen.uid = InMetadata(line, R"("uid":")");
  } else if (seen.pool != pool) {
    seen.pool = pool;
    seen.moved = now;
  }
  if (seen.id.empty()) {
    std::string_view id = After(line, R"("machineID":")");
    if (const size_t scheme = id.find("://"); scheme != std::string_view::npos) {
      id.remove_prefix(scheme + 3);
    }
    seen.id = id;
  }
  if (seen.running == Time() && Behind(line, R"("state":"Running")")) {
    seen.running = now;
    ++running_;
  }
}

const MachineWatch::Seen* MachineWatch::Find(const std::string& name) const {
  const auto found = machines_.find(name);
  return found == machines_.end() ? nullptr : &found->second;
}

void MachineWatch::Clear() {
  machines_.clear();
  running_ = 0;
}

}  // namespace berth::app
