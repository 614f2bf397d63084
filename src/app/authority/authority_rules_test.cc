// SPDX-License-Identifier: Apache-2.0
// Defends: which step of changing the authority is next, and what stands in its way.
#include "app/authority/authority_rules.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace berth::app {
namespace {

using client::HeldCertificate;
using client::RecordEntries;
using Verb = AuthorityRequest::Verb;
using Force = AuthorityRequest::Force;

const WallTime kNow = ParseRfc3339("2026-08-22T10:00:00Z").value();
constexpr Duration kSettle = Duration::Seconds(5);

class AuthorityRules : public testing::Test {
 protected:
  AuthorityRules() {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth_test_XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    authority_.emplace(pki::CertificateAuthority::LoadOrCreate(folder_, kNow).value());
  }
  ~AuthorityRules() override { std::filesystem::remove_all(folder_); }

  AuthorityStep Next(const std::optional<AuthorityRequest>& request,
                     const std::vector<HeldCertificate>& holders = {},
                     WallTime now = kNow) {
    const AuthorityStep step = NextStep(*authority_, request, holders, kSettle, now);
    if (step.text) EXPECT_TRUE(authority_->Replace(*step.text, now).ok());
    return step;
  }
  static AuthorityRequest Rotate(const std::string& id, Duration grace = Duration::Hours(1)) {
    return {.verb = Verb::kRotate, .id = id, .grace = grace};
  }
  static AuthorityRequest Retire(const std::string& id, Force force = Force::kNo) {
    return {.verb = Verb::kRetire, .id = id, .grace = {}, .force = force};
  }
  static HeldCertificate Held(const std::string& host,
                              const std::string& authority,
                              Duration left = Duration::Hours(2)) {
    return {.host = host,
            .pools = {"machinepool/" + host},
            .certificate = {.authority = authority, .until = kNow + left}};
  }

  std::string folder_;
  std::optional<pki::CertificateAuthority> authority_;
};

TEST_F(AuthorityRules, TheServerFollowsWhenTheGraceIsOverAndNoHostWaits) {
  EXPECT_FALSE(Next(std::nullopt).text);
  EXPECT_EQ(Next(Rotate("one")).answer, "ok");
  const std::string old = authority_->names()[0];
  EXPECT_EQ(authority_->rotation()->signs_from, kNow + kSettle);
  EXPECT_FALSE(Next(std::nullopt, {}, kNow + Duration::Minutes(59)).text);
  EXPECT_FALSE(Next(std::nullopt, {Held("a", old)}, kNow + Duration::Minutes(61)).text);
  EXPECT_TRUE(Next(std::nullopt, {}, kNow + Duration::Minutes(61)).text);
  EXPECT_TRUE(authority_->is_switched());
  EXPECT_FALSE(Next(std::nullopt, {}, kNow + Duration::Hours(100)).text);
}

TEST_F(AuthorityRules, NoGraceStillLeavesOtherServersTheirTime) {
  EXPECT_EQ(Next(Rotate("one", Duration())).answer, "ok");
  EXPECT_EQ(authority_->rotation()->switch_after, kNow + kSettle);
}

TEST_F(AuthorityRules, WhatWasDoneBeforeTheAnswerWasWrittenIsNotDoneAgain) {
  EXPECT_TRUE(Next(Rotate("one")).text);
  const AuthorityStep again = Next(Rotate("one"));
  EXPECT_FALSE(again.text);
  EXPECT_EQ(again.answer, "ok");
  EXPECT_NE(Next(Rotate("two")).answer, "ok");  // one at a time
  EXPECT_TRUE(Next(Retire("three", Force::kYes)).text);
  EXPECT_EQ(Next(Retire("three", Force::kYes)).answer, "ok");
  EXPECT_EQ(authority_->names().size(), 1U);
}

TEST_F(AuthorityRules, RetiringSaysWhoIsInTheWayAndCanBeForced) {
  EXPECT_NE(Next(Retire("zero")).answer.find("none can be retired"), std::string::npos);
  (void)Next(Rotate("one"));
  const std::string old = authority_->names()[0];
  AuthorityStep step = Next(Retire("two"));
  EXPECT_FALSE(step.text);
  EXPECT_NE(step.answer.find("the server's own certificate is of authority " + old),
            std::string::npos)
      << step.answer;
  ASSERT_TRUE(Next(std::nullopt, {}, kNow + Duration::Hours(2)).text);
  step = Next(Retire("three"), {Held("a", old)});
  EXPECT_FALSE(step.text);
  EXPECT_EQ(step.answer,
            "certificates of authority " + old +
                " are still in use: host a (machinepool/a) until 2026-08-22T12:00:00Z");
  EXPECT_TRUE(Next(Retire("four", Force::kYes), {Held("a", old)}).text);
  EXPECT_EQ(authority_->names().size(), 1U);
}

TEST_F(AuthorityRules, AHostCountsWhileItsCertificateIsGoodAndNotOfTheNextOne) {
  const auto hosts = [&](const std::vector<HeldCertificate>& records,
                         const std::vector<HeldCertificate>& connected,
                         WallTime now) {
    std::vector<std::string> names;
    for (const auto& held : OldHolders(*authority_, records, connected, now)) {
      names.push_back(held.host);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  const std::string old = authority_->names()[0];
  EXPECT_EQ(hosts({Held("a", old)}, {}, kNow), Names());  // nothing is changed
  (void)Next(Rotate("one"));
  const std::string next = authority_->names()[1];
  EXPECT_EQ(hosts({Held("a", old), Held("b", next)}, {}, kNow), Names{"a"});
  EXPECT_EQ(hosts({Held("a", old)}, {}, kNow + Duration::Hours(3)), Names());  // expired
  EXPECT_EQ(hosts({Held("a", old)}, {Held("a", next)}, kNow), Names());
  EXPECT_EQ(hosts({Held("a", next)}, {Held("a", old)}, kNow), Names{"a"});  // its answer was lost
  // Of a server that noted nothing: as long as it may be good.
  EXPECT_EQ(hosts({Held("a", "")}, {}, kNow), Names{"a"});
  EXPECT_EQ(hosts({Held("a", "")}, {}, kNow + Duration::Hours(25)), Names());
  ASSERT_TRUE(Next(std::nullopt, {}, kNow + Duration::Hours(2)).text);
  EXPECT_EQ(hosts({Held("a", old), Held("b", next)}, {}, kNow), Names{"a"});
}

TEST_F(AuthorityRules, RequestsAreReadOnceAndBadOnesSayWhatIsWrong) {
  const auto read = [](RecordEntries entries) { return ReadRequest(entries); };
  EXPECT_EQ(read({})->has_value(), false);
  EXPECT_EQ(read({{"request", "rotate"}, {"requestId", "x"}, {"answerId", "x"}})->has_value(),
            false);
  const auto rotate = read({{"request", "rotate"}, {"requestId", "x"}, {"requestGrace", "24h"}});
  ASSERT_TRUE(rotate.ok()) << rotate.status();
  EXPECT_EQ((*rotate)->grace, Duration::Hours(24));
  const auto retire = read({{"request", "retire"}, {"requestId", "x"}, {"requestForce", "true"}});
  ASSERT_TRUE(retire.ok());
  EXPECT_EQ((*retire)->force, Force::kYes);
  struct Bad {
    RecordEntries entries;
    std::string_view names;
  };
  for (const Bad& bad : {Bad{{{"request", "burn"}, {"requestId", "x"}}, "data.request"},
                         Bad{{{"request", "rotate"}, {"requestId", "X Y"}}, "data.requestId"},
                         Bad{{{"request", "rotate"}, {"requestId", "x"}}, "data.requestGrace"},
                         Bad{{{"request", "rotate"}, {"requestId", "x"}, {"requestGrace", "-1h"}},
                             "data.requestGrace"},
                         Bad{{{"request", "rotate"}, {"requestId", "x"}, {"requestGrace", "9999h"}},
                             "data.requestGrace"}}) {
    const auto answer = read(bad.entries);
    ASSERT_FALSE(answer.ok());
    EXPECT_NE(answer.status().message().find(bad.names), std::string_view::npos) << answer.status();
  }
}

TEST_F(AuthorityRules, PeopleAreShownAsTheyWereSeen) {
  EXPECT_EQ(RetiringName(*authority_), "");
  EXPECT_EQ(ShowUsers({}), "");
  const auto user = [](const std::string& name, int64_t hours) {
    return OldUser{.user = name,
                   .last_seen = kNow - Duration::Hours(hours),
                   .until = kNow + Duration::Hours(1)};
  };
  EXPECT_EQ(ShowUsers({user("joe", 2), user("a;b", 1)}),
            "a,b, last seen 2026-08-22T09:00:00Z, until 2026-08-22T11:00:00Z; "
            "joe, last seen 2026-08-22T08:00:00Z, until 2026-08-22T11:00:00Z");
  const std::vector<OldUser> many(1'000, user("joe", 1));
  EXPECT_LT(ShowUsers(many).size(), 8'000U);
  EXPECT_TRUE(ShowUsers(many).ends_with(" more"));
  const std::string old = authority_->names()[0];
  (void)Next(Rotate("one"));
  EXPECT_EQ(RetiringName(*authority_), old);
  ASSERT_TRUE(Next(std::nullopt, {}, kNow + Duration::Hours(2)).text);
  EXPECT_EQ(RetiringName(*authority_), old);
}

TEST_F(AuthorityRules, TheRecordShowsEveryPhaseAndNoKeys) {
  EXPECT_EQ(Describe(*authority_, {}, kNow)["phase"], "Steady");
  (void)Next(Rotate("one"));
  RecordEntries learning = Describe(*authority_, {Held("a", authority_->names()[0])}, kNow);
  EXPECT_EQ(learning["phase"], "Learning");
  EXPECT_TRUE(learning["waiting"].starts_with("host a (machinepool/a)"));
  EXPECT_EQ(learning["ca.crt"], authority_->certificate_pem());
  ASSERT_TRUE(Next(std::nullopt, {}, kNow + Duration::Hours(2)).text);
  RecordEntries switched = Describe(*authority_, {}, kNow);
  EXPECT_EQ(switched["phase"], "Switched");
  EXPECT_EQ(switched.contains("waiting"), false);
  for (const auto& [name, value] : switched) {
    EXPECT_EQ(value.find("PRIVATE"), std::string::npos) << name;
    EXPECT_EQ(value.find("SEED"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace berth::app
