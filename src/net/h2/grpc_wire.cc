// SPDX-License-Identifier: Apache-2.0
#include "net/h2/grpc_wire.h"

#include <fmt/core.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "net/status_map.h"

namespace berth::net {
namespace {

constexpr std::string_view kContentType = "application/grpc";
constexpr std::string_view kDetailField = "berth-status-bin";
constexpr std::string_view kDetailVersion = "1";
// Trailers stay well below the 8 KB that gRPC's peers allow by default: the message may grow
// threefold by its encoding, the detail by a third.
constexpr size_t kMessageMax = 1'024;
constexpr size_t kDetailMax = 3'000;
constexpr Duration kTimeoutMax = Duration::Hours(24 * 365);

bool IsBinary(std::string_view name) { return name.ends_with("-bin"); }

// Base64 as gRPC's peers send it: padding is optional.
std::optional<std::string> DecodeBinary(std::string_view text) {
  std::string padded(text);
  while (padded.size() % 4 != 0) padded += '=';
  return Base64Decode(padded);
}

const std::string* Find(const H2Fields& fields, std::string_view name) {
  for (const H2Field& field : fields) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

bool IsGrpcContent(const H2Fields& fields) {
  const std::string* type = Find(fields, "content-type");
  if (type == nullptr || !type->starts_with(kContentType)) return false;
  const std::string_view rest = std::string_view(*type).substr(kContentType.size());
  return rest.empty() || rest.front() == '+' || rest.front() == ';';
}

// Fields that are not the caller's.
bool IsReserved(std::string_view name) {
  return name.starts_with(':') || name.starts_with("grpc-") || name == "te" ||
         name == "content-type" || name == "user-agent";
}

Status AddMetadata(const H2Field& field, CallHead& request) {
  std::string value = field.value;
  if (IsBinary(field.name)) {
    std::optional<std::string> decoded = DecodeBinary(value);
    if (!decoded.has_value()) return BadRequest("metadata " + Quote(field.name) + ": not base64");
    value = *std::move(decoded);
  }
  const auto [place, added] = request.metadata.try_emplace(field.name, value);
  if (!added) place->second += "," + value;
  return OkStatus();
}

// Parts, each behind its length: "4:name".
void AppendPart(std::string& text, std::string_view part) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}

std::optional<std::string> TakePart(std::string_view& text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> size = ParseUint(text.substr(0, colon));
  if (!size.has_value() || *size > text.size() - colon - 1) return std::nullopt;
  std::string part(text.substr(colon + 1, *size));
  text.remove_prefix(colon + 1 + *size);
  return part;
}

CauseKind CauseKindOf(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(CauseKind::kNamespaceTerminating); ++i) {
    if (CauseKindName(static_cast<CauseKind>(i)) == name) return static_cast<CauseKind>(i);
  }
  return CauseKind::kInvalid;
}

// What a grpc-status cannot say: the reason, the object, when to try again, the causes. Causes that
// do not fit are left out.
std::string EncodeDetail(const Status& status) {
  std::string text;
  AppendPart(text, kDetailVersion);
  AppendPart(text, ReasonName(status.reason()));
  const std::optional<Duration> after = status.retry_after();
  AppendPart(text, after.has_value() ? std::to_string(after->nanos()) : "");
  const ErrorObject& object = status.object();
  for (const std::string* part : {&object.group, &object.kind, &object.name, &object.uid}) {
    AppendPart(text, std::string_view(*part).substr(0, 256));
  }
  for (const Cause& cause : status.causes()) {
    if (text.size() + cause.field.size() + cause.message.size() > kDetailMax) break;
    AppendPart(text, CauseKindName(cause.kind));
    AppendPart(text, cause.field);
    AppendPart(text, cause.message);
  }
  return text;
}

// nullopt if the text is none of ours or contradicts the code.
std::optional<Status> DecodeDetail(std::string_view text, int code, const std::string& message) {
  std::array<std::string, 7> head;
  for (std::string& part : head) {
    std::optional<std::string> taken = TakePart(text);
    if (!taken.has_value()) return std::nullopt;
    part = *std::move(taken);
  }
  const Reason reason = ReasonFromName(head[1]);
  if (head[0] != kDetailVersion || static_cast<int>(GrpcCodeOf(reason)) != code) {
    return std::nullopt;
  }
  std::vector<Cause> causes;
  while (!text.empty()) {
    std::optional<std::string> kind = TakePart(text);
    std::optional<std::string> field = TakePart(text);
    std::optional<std::string> why = TakePart(text);
    if (!kind.has_value() || !field.has_value() || !why.has_value()) return std::nullopt;
    causes.push_back({.kind = CauseKindOf(*kind), .field = *field, .message = *why});
  }
  Status status(reason, message, std::move(causes));
  ErrorObject object{.group = head[3], .kind = head[4], .name = head[5], .uid = head[6]};
  if (object != ErrorObject()) status = status.WithObject(std::move(object));
  const std::optional<int64_t> after = ParseInt(head[2]);
  if (after.has_value()) status = status.WithRetryAfter(Duration::Nanos(*after));
  return status;
}

}  // namespace

Result<CallHead> ParseGrpcRequest(const H2Fields& fields) {
  CallHead request;
  const std::string* http_method = Find(fields, ":method");
  const std::string* path = Find(fields, ":path");
  if (http_method == nullptr || *http_method != "POST" || path == nullptr) {
    return BadRequest("a gRPC call is a POST with a path");
  }
  if (!IsGrpcContent(fields)) {
    return Status(Reason::kUnsupportedMediaType, "the content type is not application/grpc");
  }
  request.method = *path;
  if (const std::string* timeout = Find(fields, "grpc-timeout")) {
    request.timeout = ParseGrpcTimeout(*timeout);
    if (!request.timeout.has_value()) return BadRequest("grpc-timeout " + Quote(*timeout));
  }
  const std::string* encoding = Find(fields, "grpc-encoding");
  if (encoding != nullptr && *encoding != "identity") {
    return Status(Reason::kMethodNotSupported,
                  "grpc-encoding " + Quote(*encoding) + ": only identity is supported");
  }
  for (const H2Field& field : fields) {
    if (!IsReserved(field.name)) TRY_STATUS(AddMetadata(field, request));
  }
  return request;
}

Result<H2Fields> FormatGrpcRequest(const std::string& authority,
                                   const std::string& method,
                                   const RpcOptions& options) {
  H2Fields fields = {{":method", "POST"},
                     {":scheme", "https"},
                     {":path", method},
                     {":authority", authority},
                     {"te", "trailers"},
                     {"content-type", std::string(kContentType)}};
  if (options.deadline.has_value()) {
    fields.push_back({"grpc-timeout", FormatGrpcTimeout(*options.deadline)});
  }
  for (const auto& [name, value] : options.metadata) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(name.data());
    if (IsReserved(name) || nghttp2_check_header_name(bytes, name.size()) == 0) {
      return BadRequest("metadata " + Quote(name) + ": not a name that a caller may use");
    }
    std::string text = IsBinary(name) ? Base64Encode(value) : value;
    const auto* text_bytes = reinterpret_cast<const uint8_t*>(text.data());
    if (nghttp2_check_header_value_rfc9113(text_bytes, text.size()) == 0) {
      return BadRequest("metadata " + Quote(name) + ": its value cannot be a header field's");
    }
    fields.push_back({name, std::move(text)});
  }
  return fields;
}

H2Fields GrpcResponseHead() {
  return {{":status", "200"}, {"content-type", std::string(kContentType)}};
}

H2Fields GrpcTrailers(const Status& status) {
  const int code = static_cast<int>(GrpcCodeOf(status.reason()));
  H2Fields fields = {{"grpc-status", std::to_string(code)}};
  if (status.ok()) return fields;
  fields.push_back({"grpc-message", EncodeGrpcMessage(status.message().substr(0, kMessageMax))});
  fields.push_back({std::string(kDetailField), Base64Encode(EncodeDetail(status))});
  return fields;
}

Status CheckGrpcResponse(const H2Fields& fields) {
  const std::string* text = Find(fields, ":status");
  const std::optional<int64_t> code = text == nullptr ? std::nullopt : ParseInt(*text);
  if (code != 200) {
    const std::string shown = text == nullptr ? "none" : *text;
    return {code.has_value() ? ReasonOfHttpStatus(static_cast<int>(*code)) : Reason::kUnavailable,
            "the server answered with HTTP status " + shown};
  }
  if (!IsGrpcContent(fields)) return Unavailable("the server's answer is not application/grpc");
  return OkStatus();
}

Status StatusOfTrailers(const H2Fields& fields) {
  const std::string* text = Find(fields, "grpc-status");
  const std::optional<int64_t> code = text == nullptr ? std::nullopt : ParseInt(*text);
  if (!code.has_value()) return Unavailable("the server ended the call without a status");
  if (*code == 0) return OkStatus();
  const std::string* encoded = Find(fields, "grpc-message");
  const std::string message = encoded == nullptr ? std::string() : DecodeGrpcMessage(*encoded);
  const Reason reason = ReasonOfGrpcCode(static_cast<int>(std::clamp<int64_t>(*code, 0, 1'000)));
  if (reason == Reason::kCancelled) {
    return Unavailable("the server cancelled the call" + (message.empty() ? "" : ": " + message));
  }
  if (const std::string* detail = Find(fields, kDetailField)) {
    const std::optional<std::string> decoded = DecodeBinary(*detail);
    if (decoded.has_value()) {
      std::optional<Status> status = DecodeDetail(*decoded, static_cast<int>(*code), message);
      if (status.has_value()) return *std::move(status);
    }
  }
  return {reason, message};
}

std::string FormatGrpcTimeout(Duration timeout) {
  constexpr int64_t kDigitsMax = 99'999'999;
  struct Unit {
    char letter;
    int64_t nanos;
  };
  constexpr std::array kUnits = {Unit{'n', 1},
                                 Unit{'u', 1'000},
                                 Unit{'m', 1'000'000},
                                 Unit{'S', 1'000'000'000},
                                 Unit{'M', 60'000'000'000}};
  const int64_t nanos = std::max<int64_t>(1, std::min(timeout, kTimeoutMax).nanos());
  for (const Unit& unit : kUnits) {
    const int64_t count = nanos / unit.nanos + (nanos % unit.nanos == 0 ? 0 : 1);
    if (count <= kDigitsMax) return std::to_string(count) + unit.letter;
  }
  return "99999999M";
}

std::optional<Duration> ParseGrpcTimeout(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  const std::optional<uint64_t> count = ParseUint(text.substr(0, text.size() - 1));
  if (!count.has_value()) return std::nullopt;
  Duration unit;
  switch (text.back()) {
    case 'n': unit = Duration::Nanos(1); break;
    case 'u': unit = Duration::Micros(1); break;
    case 'm': unit = Duration::Millis(1); break;
    case 'S': unit = Duration::Seconds(1); break;
    case 'M': unit = Duration::Minutes(1); break;
    case 'H': unit = Duration::Hours(1); break;
    default: return std::nullopt;
  }
  const auto wanted = static_cast<int64_t>(*count);
  if (wanted > kTimeoutMax.nanos() / unit.nanos()) return kTimeoutMax;
  return unit * wanted;
}

std::string EncodeGrpcMessage(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string DecodeGrpcMessage(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    if (!escaped) {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return decoded;
}

}  // namespace berth::net
