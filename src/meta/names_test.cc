// SPDX-License-Identifier: Apache-2.0
// Defends Kubernetes' rules for names, label keys and values, and the words of its field errors.
#include "meta/names.h"

#include <gtest/gtest.h>

namespace berth::meta {
namespace {

TEST(Names, LabelsAndSubdomains) {
  for (const std::string_view good : {"a", "0", "web-1", "a--b"}) EXPECT_TRUE(IsDnsLabel(good));
  for (const std::string_view bad : {"", "-a", "a-", "A", "a_b", "a.b", "ä", " a"}) {
    EXPECT_FALSE(IsDnsLabel(bad)) << bad;
    EXPECT_FALSE(DnsLabelProblems(bad).empty()) << bad;
  }
  for (const std::string_view good : {"a.b", "a-b.c-d", "x"}) EXPECT_TRUE(IsDnsSubdomain(good));
  for (const std::string_view bad : {"", ".a", "a.", "a..b", "a.-b", "A.b"}) {
    EXPECT_FALSE(IsDnsSubdomain(bad)) << bad;
  }
  EXPECT_TRUE(IsDnsLabel(std::string(63, 'a')));
  EXPECT_FALSE(IsDnsLabel(std::string(64, 'a')));
  EXPECT_EQ(DnsLabelProblems(std::string(64, 'a')),
            std::vector<std::string>{"must be no more than 63 characters"});
  EXPECT_EQ(DnsLabelProblems("a.b"), std::vector<std::string>{"must not contain dots"});
}

TEST(Names, QualifiedNamesMayHaveAPrefix) {
  for (const std::string_view good : {"app", "a.b_c-D", "example.com/app", "x/Y"}) {
    EXPECT_TRUE(QualifiedNameProblems(good).empty()) << good;
  }
  for (const std::string_view bad : {"", "/a", "a/", "a/b/c", "Example.com/a", "_a", "a.", "ä"}) {
    EXPECT_FALSE(QualifiedNameProblems(bad).empty()) << bad;
  }
  EXPECT_EQ(QualifiedNameProblems("/a"), std::vector<std::string>{"prefix part must be non-empty"});
  EXPECT_EQ(QualifiedNameProblems(std::string(64, 'a')),
            std::vector<std::string>{"name part must be no more than 63 characters"});
}

TEST(Names, GeneratedNamesMayEndWithADash) {
  EXPECT_TRUE(NamePrefixProblems(NameRule::kDnsLabel, "web-").empty());
  EXPECT_FALSE(NamePrefixProblems(NameRule::kDnsLabel, "-").empty());
  EXPECT_FALSE(NameProblems(NameRule::kDnsLabel, "web-").empty());
  EXPECT_TRUE(NameProblems(NameRule::kPathSegment, "system:node:x y").empty());
  EXPECT_FALSE(NameProblems(NameRule::kPathSegment, "a/b").empty());
  EXPECT_FALSE(NameProblems(NameRule::kPathSegment, "..").empty());
  EXPECT_FALSE(NameProblems(NameRule::kPathSegment, "a\nb").empty());
}

TEST(Names, ConfigKeys) {
  EXPECT_TRUE(ConfigKeyProblems("tls.crt").empty());
  for (const std::string_view bad : {"", "..", ".", "..x", "a b", "a/b"}) {
    EXPECT_FALSE(ConfigKeyProblems(bad).empty()) << bad;
  }
}

TEST(FieldErrors, SpeaksAsKubernetes) {
  FieldErrors errors;
  const FieldPath spec("spec");
  errors.Required(spec.Child("image"));
  errors.Required(spec.Child("volumes").Index(1).Child("name"), "give it one");
  errors.Invalid(spec.Child("power"), "on\n", "must be upper case");
  errors.Invalid(spec.Child("count"), 7, "must be less than 5");
  errors.NotSupported(spec.Child("power"), "x", {"On", "Off"});
  errors.Duplicate(spec.Child("names").Index(0), "a");
  errors.Forbidden(spec.Child("labels").Key("app"), "it is immutable");
  errors.TooLong(spec, 254, 253);
  errors.TooMany(spec, 9, 8);
  errors.NotFound(spec, "x");
  const std::vector<Cause> expected = {
      {CauseKind::kRequired, "spec.image", "Required value"},
      {CauseKind::kRequired, "spec.volumes[1].name", "Required value: give it one"},
      {CauseKind::kInvalid, "spec.power", R"(Invalid value: "on\n": must be upper case)"},
      {CauseKind::kInvalid, "spec.count", "Invalid value: 7: must be less than 5"},
      {CauseKind::kNotSupported,
       "spec.power",
       R"(Unsupported value: "x": supported values: "On", "Off")"},
      {CauseKind::kDuplicate, "spec.names[0]", R"(Duplicate value: "a")"},
      {CauseKind::kForbidden, "spec.labels[app]", "Forbidden: it is immutable"},
      {CauseKind::kTooLong, "spec", "Too long: 254 bytes: may not be more than 253 bytes"},
      {CauseKind::kTooMany, "spec", "Too many: 9: must have at most 8 items"},
      {CauseKind::kNotFound, "spec", R"(Not found: "x")"},
  };
  EXPECT_EQ(errors.causes(), expected);
}

TEST(FieldErrors, StatusListsEveryCauseOnce) {
  FieldErrors errors;
  EXPECT_TRUE(errors.ToStatus("Machine", "compute.ironcore.dev", "x").ok());
  errors.Required(FieldPath("spec.image"));
  EXPECT_EQ(errors.ToStatus("Machine", "compute.ironcore.dev", "x").message(),
            R"(Machine.compute.ironcore.dev "x" is invalid: spec.image: Required value)");
  errors.Required(FieldPath("spec.image"));
  errors.Forbidden(FieldPath("spec.power"), "no");
  const auto status = errors.ToStatus("Secret", "", "x");
  EXPECT_EQ(status.message(),
            R"(Secret "x" is invalid: [spec.image: Required value, spec.power: Forbidden: no])");
  EXPECT_EQ(status.causes().size(), 3U);
  EXPECT_TRUE(status.Is(Reason::kInvalid));
  EXPECT_EQ(status.object().kind, "Secret");
}

TEST(FieldErrors, ForgivesOnlyWhatWasAsMuchTooLongBefore) {
  FieldErrors before;
  before.TooLong(FieldPath("spec.image"), 70, 64);
  before.TooLong(FieldPath("status.conditions[1].message"), 80, 64);
  before.Required(FieldPath("spec.power"));
  FieldErrors now;
  now.TooLong(FieldPath("spec.image"), 70, 64);
  now.TooLong(FieldPath("status.conditions[0].message"), 80, 64);
  EXPECT_TRUE(now.Has(CauseKind::kTooLong));
  now.ForgiveTooLong(before);
  EXPECT_TRUE(now.empty());
  now.TooLong(FieldPath("spec.image"), 71, 64);
  now.TooLong(FieldPath("spec.imageOfAnother"), 70, 64);
  now.TooLong(FieldPath("status.conditions[1].reason"), 80, 64);
  now.Required(FieldPath("spec.power"));
  now.ForgiveTooLong(before);
  EXPECT_EQ(now.causes().size(), 4U);
}

TEST(FieldErrors, IsBounded) {
  FieldErrors errors;
  for (size_t i = 0; i < 2 * kMaxFieldErrors; ++i) errors.Required(FieldPath("a").Index(i));
  EXPECT_EQ(errors.causes().size(), kMaxFieldErrors);
}

}  // namespace
}  // namespace berth::meta
