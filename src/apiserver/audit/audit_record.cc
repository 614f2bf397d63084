// SPDX-License-Identifier: Apache-2.0
#include "apiserver/audit/audit_record.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/result.h"
#include "meta/json.h"
#include "meta/value.h"
#include "meta/yaml.h"

namespace berth::apiserver {
namespace {

// A sender chooses these texts; a line stays a line of reasonable length.
constexpr size_t kUserAgentMax = 256;
constexpr size_t kPathMax = 1024;

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::ranges::find(list, text) != list.end();
}

class LineWriter {
 public:
  explicit LineWriter(std::string& out) : out_(out) { out_ += '{'; }
  // Empty texts are left out.
  void Text(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    Key(key);
    meta::AppendJsonString(value, out_);
  }
  void Number(std::string_view key, int64_t value) {
    Key(key);
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out_.append(digits.data(), end);
  }
  void List(std::string_view key, const std::vector<std::string>& values) {
    Key(key);
    out_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ',';
      meta::AppendJsonString(values[i], out_);
    }
    out_ += ']';
  }
  // As an object, which YAML becomes too. What is neither, or too large, is told by its size.
  void Body(std::string_view key, std::string_view size_key, std::string_view body) {
    if (body.empty()) return;
    if (body.size() <= kAuditBodyMax) {
      const Result<meta::Value> value = meta::ParseYaml(body);
      if (value.ok() && (value->is_object() || value->is_array())) {
        Key(key);
        out_ += meta::WriteJson(*value);
        return;
      }
    }
    Number(size_key, static_cast<int64_t>(body.size()));
  }
  void End() { out_ += "}\n"; }

 private:
  void Key(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += key;
    out_ += "\":";
  }
  std::string& out_;
  bool first_ = true;
};

}  // namespace

bool IsAudited(const RequestInfo& request) {
  if (!request.is_resource) return !IsOneOf(request.verb, {"get", "head", "options"});
  if (request.kind != nullptr && request.kind->storage == meta::Storage::kReview) return false;
  if (!IsOneOf(request.verb, {"get", "list", "watch"})) return true;
  if (request.resource == "machines" && request.subresource == "log") return true;
  return request.group.empty() && request.resource == "secrets";
}

void AppendAuditLine(const AuditRecord& record, std::string& out) {
  const RequestInfo& request = record.request;
  LineWriter line(out);
  line.Text("time", FormatRfc3339Micro(record.time));
  line.Text("id", record.request_id);
  line.Text("user", record.identity.user);
  line.List("groups", record.identity.groups);
  line.Text("impersonator", record.impersonator);
  line.Text("source", record.source);
  line.Text("userAgent", record.user_agent.substr(0, kUserAgentMax));
  line.Text("verb", request.verb);
  if (request.is_resource) {
    line.Text("group", request.group);
    line.Text("version", request.version);
    line.Text("resource", request.resource);
    line.Text("subresource", request.subresource);
    line.Text("namespace", request.namespace_);
    line.Text("name", request.name.empty() ? record.name : std::string_view(request.name));
    if (request.requested_group != request.group) {
      line.Text("requestedGroup", request.requested_group);
    }
  } else {
    line.Text("path", std::string_view(request.path).substr(0, kPathMax));
  }
  line.Text("stage", record.stage);
  line.Number("code", record.code);
  line.Number("durationMicros", record.duration.micros());
  if (record.stage == kAuditEnded) {
    line.Number("bytesIn", record.bytes_in);
    line.Number("bytesOut", record.bytes_out);
  }
  line.Body("requestObject", "requestBytes", record.request_body);
  line.Body("responseObject", "responseBytes", record.response_body);
  if (record.response_body.empty() && record.response_bytes > 0) {
    line.Number("responseBytes", static_cast<int64_t>(record.response_bytes));
  }
  line.End();
}

void AppendAuditGap(WallTime time, uint64_t lost, std::string& out) {
  LineWriter line(out);
  line.Text("time", FormatRfc3339Micro(time));
  line.Number("lostRecords", static_cast<int64_t>(lost));
  line.End();
}

}  // namespace berth::apiserver
