// SPDX-License-Identifier: Apache-2.0
// URLs, queries and escapes: what they mean, and that broken ones are refused, never misread.
#include "net/url.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"

namespace berth::net {
namespace {

TEST(Url, TakesUrlsApart) {
  struct Case {
    std::string text;
    Url url;
  };
  const std::vector<Case> cases = {
      {"https://example.org", {.scheme = "https", .host = "example.org", .port = 443, .path = "/"}},
      {"HTTP://Example.ORG:8080/a/b?c=d&e#f",
       {.scheme = "http", .host = "example.org", .port = 8080, .path = "/a/b", .query = "c=d&e"}},
      {"https://[::1]:6443/x", {.scheme = "https", .host = "::1", .port = 6443, .path = "/x"}},
      {"https://[fe80::1]", {.scheme = "https", .host = "fe80::1", .port = 443, .path = "/"}},
      {"https://a?b", {.scheme = "https", .host = "a", .port = 443, .path = "/", .query = "b"}},
      {"unix:///run/berth.sock", {.scheme = "unix", .path = "/run/berth.sock"}},
      {"https://10.0.0.1:1/%2F",
       {.scheme = "https", .host = "10.0.0.1", .port = 1, .path = "/%2F"}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.text);
    const Result<Url> url = ParseUrl(test.text);
    ASSERT_TRUE(url.ok()) << url.status();
    EXPECT_EQ(url->scheme, test.url.scheme);
    EXPECT_EQ(url->host, test.url.host);
    EXPECT_EQ(url->port, test.url.port);
    EXPECT_EQ(url->path, test.url.path);
    EXPECT_EQ(url->query, test.url.query);
  }
  EXPECT_EQ(ParseUrl("https://[::1]:6443/x?y")->authority(), "[::1]:6443");
  EXPECT_EQ(ParseUrl("https://[::1]:6443/x?y")->target(), "/x?y");
}

TEST(Url, RefusesWhatIsNone) {
  const std::vector<std::string> cases = {
      "",
      "example.org",
      "//example.org",
      "ftp://example.org",
      "https://",
      "https:///path",
      "https://user:secret@example.org",
      "https://exa mple.org",
      "https://example.org/a b",
      "https://example.org:0",
      "https://example.org:65536",
      "https://example.org:",
      "https://example.org:80x",
      "https://::1",
      "https://[::1",
      "https://[::1]x",
      "https://[example]",
      "https://exam\tple",
      "https://a\r\nHost: b",
      "https://a/\x7f",
      "unix://relative",
      "https://" + std::string(300, 'a'),
      "https://a/" + std::string(kUrlBytesMax, 'a'),
  };
  for (const std::string& text : cases) {
    const Result<Url> url = ParseUrl(text);
    EXPECT_EQ(url.status().reason(), Reason::kBadRequest) << text.substr(0, 64);
    EXPECT_EQ(url.status().message().find("secret"), std::string_view::npos);
  }
}

TEST(Url, EncodesAndDecodesEveryByte) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(PercentDecode(PercentEncode(all)), all);
  EXPECT_EQ(PercentEncode("a-b_c.d~e/f g?é"), "a-b_c.d~e%2Ff%20g%3F%C3%A9");
  EXPECT_EQ(PercentDecode("a+b%20c"), "a+b c");
  for (const char* broken : {"%", "%1", "%zz", "%1g", "a%", "%00"}) {
    EXPECT_EQ(PercentDecode(broken), std::nullopt) << broken;
  }
}

TEST(Query, ReadsPairsInOrder) {
  const Result<Query> query = Query::Parse("labelSelector=a%3Db%2Cc&watch&limit=5&&x=1&x=2+3&=e");
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->Get("labelSelector"), "a=b,c");
  EXPECT_TRUE(query->Has("watch"));
  EXPECT_EQ(query->Get("watch"), "");
  EXPECT_EQ(query->Get("x"), "1");
  EXPECT_EQ(query->GetAll("x"), (std::vector<std::string_view>{"1", "2 3"}));
  EXPECT_EQ(query->Get(""), "e");
  EXPECT_FALSE(query->Has("absent"));
  EXPECT_EQ(query->pairs().size(), 6U);
}

TEST(Query, EncodesWhatItReads) {
  Query query;
  query.Add("fieldSelector", "a=b,c!=d é");
  query.Add("empty", "");
  EXPECT_EQ(query.Encode(), "fieldSelector=a%3Db%2Cc%21%3Dd%20%C3%A9&empty=");
  const Result<Query> again = Query::Parse(query.Encode());
  EXPECT_EQ(again->Get("fieldSelector"), "a=b,c!=d é");
}

TEST(Query, RefusesBrokenEscapesAndFloods) {
  EXPECT_EQ(Query::Parse("a=%zz").status().reason(), Reason::kBadRequest);
  EXPECT_EQ(Query::Parse("%=a").status().reason(), Reason::kBadRequest);
  std::string flood;
  for (size_t i = 0; i < kQueryPairsMax; ++i) flood += "a&";
  EXPECT_TRUE(Query::Parse(flood).ok());
  EXPECT_EQ(Query::Parse(flood + "b").status().reason(), Reason::kBadRequest);
}

TEST(Url, SplitsATargetAtItsFirstQuestionMark) {
  EXPECT_EQ(SplitTarget("/a?b?c").path, "/a");
  EXPECT_EQ(SplitTarget("/a?b?c").query, "b?c");
  EXPECT_EQ(SplitTarget("/a").query, "");
}

TEST(Url, SurvivesNoise) {
  constexpr std::string_view kAlphabet = "htps:/@[]?#%&=.-_a0\xc3\x01 +";
  for (uint64_t seed = 0; seed < 5'000; ++seed) {
    Random random(seed);
    std::string text = random.Chance(0.5) ? "https://" : "";
    for (uint64_t i = random.Below(40); i > 0; --i)
      text += kAlphabet[random.Below(kAlphabet.size())];
    const Result<Url> url = ParseUrl(text);
    if (url.ok() && url->scheme != "unix") {
      EXPECT_TRUE(url->path.starts_with('/')) << text;
      EXPECT_FALSE(url->host.empty()) << text;
      EXPECT_NE(url->port, 0) << text;
      const Result<Url> again = ParseUrl(url->scheme + "://" + url->authority() + url->target());
      ASSERT_TRUE(again.ok()) << text;
      EXPECT_EQ(again->target(), url->target());
    }
    const Result<Query> query = Query::Parse(text);
    if (query.ok()) {
      EXPECT_EQ(Query::Parse(query->Encode())->pairs().size(), query->pairs().size()) << text;
    }
  }
}

}  // namespace
}  // namespace berth::net
