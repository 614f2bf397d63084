// SPDX-License-Identifier: Apache-2.0
// Defends reading protobuf bodies: every kind of field, every way to be malformed, and noise.
#include "meta/k8s_proto/k8s_proto.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <optional>
#include <vector>

#include "base/random.h"
#include "meta/k8s_proto/messages.h"
#include "meta/object_meta.h"
#include "meta/quantity.h"

namespace berth::meta {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

// Messages by hand.
class Bytes {
 public:
  Bytes& Number(uint32_t field, uint64_t value) {
    Varint(field << 3);
    Varint(value);
    return *this;
  }
  Bytes& Text(uint32_t field, std::string_view text) {
    Varint(field << 3 | 2);
    Varint(text.size());
    bytes_ += text;
    return *this;
  }
  Bytes& Nested(uint32_t field, const Bytes& message) { return Text(field, message.bytes_); }
  Bytes& Entry(uint32_t field, std::string_view key, std::string_view value) {
    return Nested(field, Bytes().Text(1, key).Text(2, value));
  }
  Bytes& Double(uint32_t field, double value) {
    Varint(field << 3 | 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(bits >> (8 * i));
    return *this;
  }
  Bytes& Raw(std::string_view raw) {
    bytes_ += raw;
    return *this;
  }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string Body(const Bytes& raw, std::string_view kind = "K") {
  return "k8s\0"s + Bytes()
                        .Nested(1, Bytes().Text(1, "v1").Text(2, kind))
                        .Nested(2, raw)
                        .Text(3, "")
                        .Text(4, "")
                        .str();
}

// The decoder knows messages by name only, so these stand for any message with such fields.
struct Numbers {
  int32_t small = 0;
  std::vector<int32_t> list;
  std::optional<int64_t> large;
  double real = 0;
  std::optional<bool> flag;
};
BERTH_DESCRIBE(Numbers,
               "io.k8s.api.core.v1.NamespaceCondition",
               "",
               BERTH_FIELD(small, "type", ""),
               BERTH_FIELD(list, "status", ""),
               BERTH_FIELD(large, "lastTransitionTime", ""),
               BERTH_FIELD(real, "reason", ""),
               BERTH_FIELD(flag, "message", ""))

struct Wrapped {
  Quantity quantity;
  MicroTime moment;
  std::map<std::string, std::vector<std::string>> lists;
  std::map<std::string, Base64> bytes;
};
BERTH_DESCRIBE(Wrapped,
               "io.k8s.api.core.v1.ConfigMap",
               "",
               BERTH_FIELD(quantity, "metadata", ""),
               BERTH_FIELD(moment, "data", ""),
               BERTH_FIELD(lists, "binaryData", ""),
               BERTH_FIELD(bytes, "immutable", ""))

struct Deep {
  std::vector<Deep> inner;
};
extern const TypeInfo kDeep;
const TypeInfo kDeepList{.kind = TypeKind::kList,
                         .element = &kDeep,
                         .list = &internal::kListOps<Deep>,
                         .ops = &internal::kValueOps<std::vector<Deep>>};
const Field kDeepFields[] = {
    {.name = "clusterRoleSelectors", .offset = 0, .type = &kDeepList, .doc = {}, .options = {}}};
const TypeInfo kDeep{.kind = TypeKind::kStruct,
                     .ops = &internal::kValueOps<Deep>,
                     .name = "io.k8s.api.rbac.v1.AggregationRule",
                     .doc = {},
                     .fields = kDeepFields};

template <class T>
Result<T> Decode(std::string_view body) {
  T out{};
  TRY_STATUS(DecodeKubernetesProto(body, TypeInfoOf<T>(), &out, nullptr));
  return out;
}

Bytes FullMeta() {
  return Bytes()
      .Text(1, "web")
      .Text(3, "")
      .Number(7, 300)
      .Nested(8, Bytes().Number(1, 1'790'000'000).Number(2, 999'999'999))
      .Nested(9, Bytes())
      .Number(10, 30)
      .Entry(11, "app", "x")
      .Entry(11, "app", "y")
      .Nested(11, Bytes().Text(1, "empty"))
      .Nested(13, Bytes().Text(5, "v1").Text(1, "K").Text(3, "o").Text(4, "u").Number(6, 1))
      .Text(14, "f1")
      .Text(14, "f2")
      .Nested(17, Bytes().Text(1, "m").Nested(7, Bytes().Text(1, R"({"f:a":{}})")));
}

TEST(KubernetesProto, ReadsEveryFieldOfObjectMeta) {
  ObjectMeta meta;
  TypeMeta type_meta;
  const auto status =
      DecodeKubernetesProto(Body(FullMeta(), "Thing"), TypeInfoOf<ObjectMeta>(), &meta, &type_meta);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(type_meta, (TypeMeta{.api_version = "v1", .kind = "Thing"}));
  EXPECT_EQ(EncodeJsonOf(meta),
            R"({"name":"web","generation":300,"creationTimestamp":"2026-09-21T14:13:20Z",)"
            R"("deletionGracePeriodSeconds":30,"labels":{"app":"y","empty":""},)"
            R"("ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"u",)"
            R"("controller":true}],"finalizers":["f1","f2"],)"
            R"("managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]})");
}

TEST(KubernetesProto, ReadsNumbersPlainAndPacked) {
  Bytes packed;
  packed.Varint(1);
  packed.Varint(300);
  const auto numbers = Decode<Numbers>(Body(Bytes()
                                                .Number(1, static_cast<uint64_t>(int64_t{-5}))
                                                .Number(2, 9)
                                                .Nested(2, packed)
                                                .Number(4, uint64_t{1} << 40)
                                                .Double(5, 2.5)
                                                .Number(6, 0)));
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(numbers->small, -5);
  EXPECT_EQ(numbers->list, (std::vector<int32_t>{9, 1, 300}));
  EXPECT_EQ(numbers->large, int64_t{1} << 40);
  EXPECT_EQ(numbers->real, 2.5);
  EXPECT_EQ(numbers->flag, false);
}

TEST(KubernetesProto, ReadsWhatIsAMessageHereAndATextInJson) {
  const auto wrapped = Decode<Wrapped>(Body(
      Bytes()
          .Nested(1, Bytes().Text(1, "16Gi"))
          .Nested(2, Bytes().Number(1, 5).Number(2, 123'456'789))
          .Nested(3,
                  Bytes().Nested(2, Bytes().Text(1, "a").Text(1, "b")).Text(1, "value before key"))
          .Entry(4, "k", "\0\xff"sv)));
  ASSERT_TRUE(wrapped.ok()) << wrapped.status();
  EXPECT_EQ(wrapped->quantity.ToString(), "16Gi");
  EXPECT_EQ(wrapped->moment.time.micros(), 5'123'456);
  EXPECT_EQ(wrapped->lists.at("value before key"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(wrapped->bytes.at("k").bytes, "\0\xff"sv);
}

TEST(KubernetesProto, SkipsFieldsThatItDoesNotKnow) {
  const auto meta = Decode<ObjectMeta>(Body(Bytes()
                                                .Number(100, 7)
                                                .Double(101, 1)
                                                .Text(102, "\xff")
                                                .Raw("\xbd\x06"sv)  // 103, 32 bits
                                                .Raw("1234")
                                                .Text(1, "web")));
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->name, "web");
}

TEST(KubernetesProto, SaysWhereItCannotRead) {
  const std::string prefix = "k8s\0"s;
  const auto raw = [](const Bytes& bytes) { return "k8s\0"s + Bytes().Nested(2, bytes).str(); };
  struct Case {
    std::string_view name;
    std::string body;
    std::string_view message;
  };
  const Case cases[] = {
      {"empty", "", "at byte 0: the prefix"},
      {"no prefix", R"({"kind":"K"})", "at byte 0: the prefix"},
      {"cut off in a length", prefix + "\x12", "at byte 5: the body ends inside a number"},
      {"cut off in a text",
       prefix + "\x12\x05\x0a",
       "at byte 5: 5 bytes are announced, 1 are left"},
      {"text longer than its message", raw(Bytes().Raw("\x0a\x05x")), "at byte 7: 5 bytes"},
      {"huge length",
       raw(Bytes().Raw("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
       "at byte 7: 18446744073709551615 bytes"},
      {"number of 11 bytes",
       raw(Bytes().Raw("\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
       "at byte 7: a number has more than 64 bits"},
      {"field 0", raw(Bytes().Number(0, 1)), "at byte 6: 0 is no field number"},
      {"group", raw(Bytes().Raw("\x0b")), "at byte 6: wire type 3 is not supported"},
      {"number for a text", raw(Bytes().Number(1, 1)), "field 1 has wire type 0, expected 2"},
      {"text for a number", raw(Bytes().Text(7, "1")), "field 7 has wire type 2, expected 0"},
      {"not UTF-8", raw(Bytes().Text(1, "\xff")), "at byte 6: the text is not valid UTF-8"},
      {"key not UTF-8", raw(Bytes().Entry(11, "\xff", "")), "at byte 8: the text is not valid"},
      {"time beyond the years",
       raw(Bytes().Nested(8, Bytes().Number(1, uint64_t{1} << 62))),
       "at byte 8: 4611686018427387904 seconds and 0 nanoseconds are not a time"},
      {"negative nanoseconds",
       raw(Bytes().Nested(8, Bytes().Number(2, static_cast<uint64_t>(int64_t{-1})))),
       "-1 nanoseconds are not a time"},
      {"fields that are no JSON",
       raw(Bytes().Nested(17, Bytes().Nested(7, Bytes().Text(1, "{")))),
       "at byte 11: invalid JSON"},
      {"encoded content", prefix + Bytes().Text(3, "gzip").str(), R"(content encoding "gzip")"},
      {"JSON inside", prefix + Bytes().Text(4, "application/json").str(), "content type"},
      {"too large", prefix + std::string(kMaxProtoBytes, '\0'), "at most 3145728 are read"},
  };
  for (const auto& c : cases) {
    const auto status = Decode<ObjectMeta>(c.body).status();
    EXPECT_TRUE(status.Is(Reason::kBadRequest)) << c.name << ": " << status;
    EXPECT_NE(status.message().find(c.message), std::string_view::npos) << c.name << ": " << status;
  }
}

TEST(KubernetesProto, RefusesIntegersBeyondTheirField) {
  const auto status = Decode<Numbers>(Body(Bytes().Number(1, uint64_t{1} << 31))).status();
  EXPECT_TRUE(status.Is(Reason::kBadRequest)) << status;
  EXPECT_NE(status.message().find("32 bits, got 2147483648"), std::string_view::npos) << status;
}

Status DecodeNested(size_t depth) {
  Bytes bytes;
  for (size_t i = 1; i < depth; ++i) bytes = Bytes().Nested(1, bytes);
  Deep deep;
  return DecodeKubernetesProto(Body(bytes), kDeep, &deep, nullptr);
}

TEST(KubernetesProto, BoundsDepthAndItems) {
  EXPECT_TRUE(DecodeNested(kMaxProtoDepth).ok());
  const auto deep = DecodeNested(kMaxProtoDepth + 1);
  EXPECT_TRUE(deep.Is(Reason::kBadRequest)) << deep;
  EXPECT_NE(deep.message().find("more than 32 nested messages"), std::string_view::npos) << deep;

  Bytes items;
  for (size_t i = 0; i < kMaxProtoItems; ++i) items.Text(14, "");
  EXPECT_TRUE(Decode<ObjectMeta>(Body(items)).ok());
  const auto many = Decode<ObjectMeta>(Body(items.Entry(11, "", ""))).status();
  EXPECT_TRUE(many.Is(Reason::kBadRequest)) << many;
}

struct Unlisted {
  std::string name;
};
BERTH_DESCRIBE(Unlisted, "test.Unlisted", "", BERTH_FIELD(name, "name", ""))

TEST(KubernetesProto, RefusesKindsWithoutAForm) {
  EXPECT_FALSE(HasKubernetesProto(TypeInfoOf<Unlisted>()));
  EXPECT_TRUE(HasKubernetesProto(TypeInfoOf<ObjectMeta>()));
  const auto status = Decode<Unlisted>(Body(Bytes())).status();
  EXPECT_TRUE(status.Is(Reason::kUnsupportedMediaType)) << status;
}

TEST(KubernetesProto, SurvivesNoise) {
  const std::string sound = Body(FullMeta());
  size_t refused = 0;
  constexpr size_t kRounds = 20'000;
  Random random(20'260'101);
  for (size_t round = 0; round < kRounds; ++round) {
    std::string body = sound;
    for (uint64_t change = random.Between(1, 4); change > 0; --change) {
      const size_t at = random.Below(body.size() - 4) + 4;
      switch (random.Below(4)) {
        case 0: body[at] = static_cast<char>(random.Next()); break;
        case 1: body[at] = static_cast<char>(body[at] ^ (1 << random.Below(8))); break;
        case 2: body.insert(at, 1, static_cast<char>(random.Next())); break;
        default: body.erase(at, random.Below(3)); break;
      }
    }
    if (random.Chance(0.1)) body.resize(random.Below(body.size()));
    // An exact copy on the heap, so that the sanitizer sees a step beyond its end.
    const std::vector<char> exact(body.begin(), body.end());
    const auto status = Decode<ObjectMeta>(std::string_view(exact.data(), exact.size())).status();
    if (!status.ok()) {
      ++refused;
      ASSERT_TRUE(status.Is(Reason::kBadRequest)) << status;
      ASSERT_NE(status.message().find("at byte "), std::string_view::npos) << status;
    }
  }
  // Neither everything nor nothing: the noise reaches the decoder's inside.
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace berth::meta
