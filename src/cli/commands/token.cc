// SPDX-License-Identifier: Apache-2.0
#include "pki/token.h"

#include <fmt/core.h>

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands/flags.h"
#include "cli/commands/secrets.h"
#include "cli/commands/table.h"
#include "cli/failure.h"
#include "cli/objects/failures.h"
#include "cli/objects/fetch.h"
#include "cli/render/output.h"
#include "cli/render/text_table.h"
#include "cli/session/session.h"
#include "pki/entropy.h"

namespace berth::cli {
namespace {

using meta::Value;

Status RunCreate(Session& session, const Arguments& arguments) {
  if (arguments.words().size() != 1) {
    return Advise(BadRequest("one user name is needed"), "berth token create ci --group=deployers");
  }
  std::optional<Duration> ttl;
  if (arguments.Span("ttl") != Duration()) ttl = arguments.Span("ttl");
  TRY(const pki::NewToken token,
      pki::MakeToken(pki::SystemEntropy(),
                     arguments.words().front(),
                     arguments.List("group"),
                     ttl,
                     session.environment().wall_now()));
  TRY(Api * api, session.GetApi());
  TRY_STATUS(StoreSecret(*api, SecretValue(token.secret, pki::kTokenSecretType)));
  if (arguments.Text("output") == "json") {
    Value out = Value::Object();
    out.Set("name", token.secret.name);
    out.Set("user", arguments.words().front());
    out.Set("token", token.text);
    return PrintValue(session.environment(), {.kind = OutputKind::kJson}, out);
  }
  session.out() << token.text << "\n";
  session.err() << fmt::format(
      "This is the only time the token is shown. Revoke it with: berth token revoke {}\n",
      token.secret.name.substr(pki::kTokenNamePrefix.size()));
  return OkStatus();
}

// An id, the name of its Secret, or the token itself.
std::string SecretNameOf(std::string_view word) {
  if (const auto id = pki::TokenId(word)) return fmt::format("{}{}", pki::kTokenNamePrefix, *id);
  if (word.starts_with(pki::kTokenNamePrefix)) return std::string(word);
  return fmt::format("{}{}", pki::kTokenNamePrefix, word);
}

Status RunRevoke(Session& session, const Arguments& arguments) {
  if (arguments.words().empty()) {
    return Advise(BadRequest("no token is named"), "berth token list shows their ids");
  }
  TRY(Api * api, session.GetApi());
  Failures failures(session.environment());
  for (const std::string& word : arguments.words()) {
    const std::string name = SecretNameOf(word);
    const auto answer =
        api->Delete(PathOf(SecretResource(), TokenNamespace(), name), Value::Object());
    if (answer.ok()) {
      session.out() << fmt::format("token {} revoked\n",
                                   Printable(name.substr(pki::kTokenNamePrefix.size())));
    } else if (answer.status().Is(Reason::kNotFound)) {
      failures.Add(Advise(NotFound(fmt::format("there is no token {}",
                                               Quote(name.substr(pki::kTokenNamePrefix.size())))),
                          "berth token list shows their ids"));
    } else {
      failures.Add(answer.status());
    }
  }
  return failures.Outcome();
}

std::map<std::string, std::string> DecodedData(const Value& secret) {
  std::map<std::string, std::string> out;
  const Value* data = secret.Find("data");
  if (data == nullptr || !data->is_object()) return out;
  for (const Value::Member& member : data->members()) {
    const auto bytes =
        member.value.is_string() ? Base64Decode(member.value.as_string()) : std::nullopt;
    if (bytes) out.emplace(member.key, *bytes);
  }
  return out;
}

struct ListedToken {
  pki::TokenRecord record;
  std::string created;
};

Result<std::vector<ListedToken>> FetchTokens(Session& session) {
  TRY(Api * api, session.GetApi());
  TRY(const FetchedList secrets,
      FetchList(*api,
                SecretResource(),
                {.namespace_ = TokenNamespace(),
                 .label_selector = {},
                 .field_selector = fmt::format("type={}", pki::kTokenSecretType)}));
  std::vector<ListedToken> out;
  for (const Value& secret : secrets.items) {
    auto record =
        pki::ParseTokenSecret(secret.GetString({"metadata", "name"}), DecodedData(secret));
    if (!record.ok()) {
      session.err() << "Warning: " << Printable(record.status().message()) << "\n";
      continue;
    }
    out.push_back(
        {*std::move(record), std::string(secret.GetString({"metadata", "creationTimestamp"}))});
  }
  return out;
}

Value TokenValue(const ListedToken& token) {
  Value out = Value::Object();
  out.Set("id", token.record.id);
  out.Set("user", token.record.user);
  Value groups = Value::Array();
  for (const std::string& group : token.record.groups) groups.items().emplace_back(group);
  out.Set("groups", std::move(groups));
  if (token.record.expires) out.Set("expires", FormatRfc3339(*token.record.expires));
  out.Set("created", token.created);
  return out;
}

std::string ExpiryText(const std::optional<WallTime>& expires, WallTime now) {
  if (!expires) return "never";
  if (*expires <= now) return "expired";
  return fmt::format("in {}", FormatAge(*expires - now));
}

Status RunList(Session& session, const Arguments& arguments) {
  TRY(const OutputFormat format, ParseOutputFormat(arguments.Text("output")));
  TRY(const std::vector<ListedToken> tokens, FetchTokens(session));
  if (!format.is_table()) {
    std::vector<Value> items;
    for (const ListedToken& token : tokens) items.push_back(TokenValue(token));
    return PrintValue(session.environment(), format, ListOf(std::move(items)));
  }
  const WallTime now = session.environment().wall_now();
  TextTable table({"Id", "User", "Groups", "Expires", "Age"},
                  arguments.Switch("no-headers") ? TableHeader::kHidden : TableHeader::kShown);
  for (const ListedToken& token : tokens) {
    const auto created = ParseRfc3339(token.created);
    table.AddRow({token.record.id,
                  token.record.user,
                  token.record.groups.empty() ? "<none>" : Join(token.record.groups, ","),
                  ExpiryText(token.record.expires, now),
                  created.ok() ? FormatAge(now - *created) : "<unknown>"});
  }
  if (table.empty()) session.err() << "No tokens found\n";
  session.out() << table.Flush();
  return OkStatus();
}

constexpr std::array<std::string_view, 1> kCreateFormats = {"json"};
constexpr std::array kCreateFlags = {
    Flag{.name = "group",
         .kind = FlagKind::kList,
         .value_name = "NAME",
         .help = "A group that the user belongs to; may be repeated."},
    Flag{.name = "ttl",
         .kind = FlagKind::kDuration,
         .value_name = "TIME",
         .help = "How long the token works; 0 means until it is revoked.",
         .fallback = "0"},
    Flag{.name = "output",
         .letter = 'o',
         .kind = FlagKind::kText,
         .value_name = "FORMAT",
         .help = "Print the token with its name.",
         .values = kCreateFormats},
};
constexpr std::array kListFlags = {flags::kOutput, flags::kNoHeaders};

constexpr std::array kChildren = {
    Command{.name = "create",
            .usage = "USER",
            .summary = "Make a bearer token and print it once",
            .details = "The server keeps a hash of the token only. What the user may do is decided "
                       "by role bindings for the user and the groups.",
            .examples = "berth token create ci --group=deployers --ttl=720h",
            .flags = kCreateFlags,
            .run = &RunCreate},
    Command{.name = "list",
            .summary = "List tokens",
            .examples = "berth token list\n"
                        "berth token list -o json",
            .flags = kListFlags,
            .run = &RunList},
    Command{.name = "revoke",
            .usage = "ID...",
            .summary = "Make tokens useless",
            .examples = "berth token revoke 3kf0a9x2mz",
            .run = &RunRevoke},
};

}  // namespace

Command TokenCommand() {
  return {.name = "token",
          .group = "Access",
          .summary = "Create, list and revoke bearer tokens",
          .examples =
              "berth token create ci --group=deployers --ttl=720h\n"
              "berth token list",
          .children = kChildren};
}

}  // namespace berth::cli
