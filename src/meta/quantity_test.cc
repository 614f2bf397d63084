// SPDX-License-Identifier: Apache-2.0
// Defends that quantities are read, rounded, compared and written exactly as Kubernetes does.
#include "meta/quantity.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace berth::meta {
namespace {

struct Known {
  std::string_view text;
  std::string_view canonical;
  int64_t value;
  int64_t milli;
};

// What k8s.io/apimachinery 0.32 answers for the same texts, after dropping its cached spelling.
constexpr Known kKnown[] = {
    {"0", "0", 0, 0},
    {"-0", "0", 0, 0},
    {"00", "0", 0, 0},
    {"0Ki", "0", 0, 0},
    {"1000m", "1", 1, 1000},
    {"1024m", "1024m", 2, 1024},
    {"0.5", "500m", 1, 500},
    {"0.500", "500m", 1, 500},
    {"1.500", "1500m", 2, 1500},
    {"12.345", "12345m", 13, 12345},
    {"1.2345", "1234500u", 2, 1235},
    {".5", "500m", 1, 500},
    {"5.", "5", 5, 5000},
    {"12.3", "12300m", 13, 12300},
    {"1.0", "1", 1, 1000},
    {"-1", "-1", -1, -1000},
    {"+5", "5", 5, 5000},
    {"1024", "1024", 1024, 1024000},
    {"1536", "1536", 1536, 1536000},
    {"1000", "1k", 1000, 1000000},
    {"100M", "100M", 100000000, 100000000000},
    {"9E", "9E", 9000000000000000000, std::numeric_limits<int64_t>::max()},
    {"10E", "10E", std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()},
    {"18446744073709551616",
     "18446744073709551616",
     std::numeric_limits<int64_t>::max(),
     std::numeric_limits<int64_t>::max()},
    {"1n", "1n", 1, 1},
    {"0.9n", "1n", 1, 1},
    {"1e3", "1e3", 1000, 1000000},
    {"1E3", "1e3", 1000, 1000000},
    {"1E+3", "1e3", 1000, 1000000},
    {"1e-3", "1e-3", 1, 1},
    {"1e-1", "100e-3", 1, 100},
    {"1e-12", "1e-9", 1, 1},
    {"1e1", "10", 10, 10000},
    {"1e5", "100e3", 100000, 100000000},
    {"1000e3", "1e6", 1000000, 1000000000},
    {"1Ki", "1Ki", 1024, 1024000},
    {"010Ki", "10Ki", 10240, 10240000},
    {"1000Ki", "1000Ki", 1024000, 1024000000},
    {"1024Ki", "1Mi", 1048576, 1048576000},
    {"2048Ki", "2Mi", 2097152, 2097152000},
    {"1.5Gi", "1536Mi", 1610612736, 1610612736000},
    {"0.1Gi", "107374182400m", 107374183, 107374182400},
    {"5.Gi", "5Gi", 5368709120, 5368709120000},
    {"0.5Ki", "512", 512, 512000},
    {"1.5Ki", "1536", 1536, 1536000},
    {"1.953125Ki", "2k", 2000, 2000000},
    {"-0.5Ki", "-512", -512, -512000},
    {"-.5Mi", "-512Ki", -524288, -524288000},
    {"1.1Ki", "1126400m", 1127, 1126400},
    {"0.0001Ki", "102400u", 1, 103},
    {"8Ei",
     "9223372036854775807",
     std::numeric_limits<int64_t>::max(),
     std::numeric_limits<int64_t>::max()},
};

TEST(Quantity, IsWrittenInKubernetesCanonicalForm) {
  for (const auto& known : kKnown) {
    const auto parsed = Quantity::Parse(known.text);
    ASSERT_TRUE(parsed.ok()) << known.text << ": " << parsed.status();
    EXPECT_EQ(parsed->ToString(), known.canonical) << known.text;
    EXPECT_EQ(parsed->Value(), known.value) << known.text;
    EXPECT_EQ(parsed->MilliValue(), known.milli) << known.text;
  }
}

TEST(Quantity, RefusesWhatIsNoNumberWithASuffix) {
  constexpr std::string_view kFormat = "quantities must match the regular expression";
  constexpr std::string_view kSuffix = "unable to parse quantity's suffix";
  constexpr std::pair<std::string_view, std::string_view> kBad[] = {
      {"", kFormat},      {"-", kFormat},      {".", kFormat},     {"aoeu", kFormat},
      {"1.1.M", kFormat}, {"1+1.0M", kFormat}, {"0.1am", kFormat}, {" 1", kFormat},
      {"1 ", kFormat},    {"1 Gi", kFormat},   {"0.1mi", kSuffix}, {"1i", kSuffix},
      {".5i", kSuffix},   {"1K", kSuffix},     {"1ki", kSuffix},   {"1e", kSuffix},
      {"1e+", kSuffix},   {"1e+-3", kFormat},  {"1KiKi", kSuffix}, {"1e1e1", kFormat},
      {"1e3Ki", kFormat}, {"0x10", kFormat},   {"1_000", kFormat}, {"1,5", kFormat},
  };
  for (const auto& [text, error] : kBad) {
    const auto parsed = Quantity::Parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_TRUE(parsed.status().message().starts_with(error)) << text << ": " << parsed.status();
  }
}

TEST(Quantity, RefusesWhatItCannotHold) {
  EXPECT_FALSE(Quantity::Parse("1e100").ok());
  EXPECT_FALSE(Quantity::Parse("1e99999999999999999999").ok());
  EXPECT_FALSE(Quantity::Parse(std::string(200, '9')).ok());
  EXPECT_FALSE(Quantity::Parse(std::string(Quantity::kTextMax + 1, '0')).ok());
  EXPECT_EQ(Quantity::Parse("0e1000000")->ToString(), "0");
  EXPECT_EQ(Quantity::Parse("1e-1000000")->ToString(), "1e-9");
}

TEST(Quantity, CalculatesExactlyAndCapsInsteadOfOverflowing) {
  Quantity sum;
  sum += *Quantity::Parse("1Gi");
  sum += *Quantity::Parse("512Mi");
  EXPECT_EQ(sum.ToString(), "1536Mi");
  sum -= *Quantity::Parse("1536Mi");
  EXPECT_TRUE(sum.IsZero());
  EXPECT_EQ((*Quantity::Parse("100m") * 3).ToString(), "300m");
  EXPECT_EQ((*Quantity::Parse("1") - *Quantity::Parse("1500m")).ToString(), "-500m");
  Quantity huge = *Quantity::Parse("1e28");
  for (int i = 0; i < 10; ++i) huge *= std::numeric_limits<int64_t>::max();
  EXPECT_EQ(huge.Value(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ((huge * -1).Sign(), -1);
  EXPECT_EQ(huge + huge, huge);
  EXPECT_LT(Quantity(1), Quantity::Milli(1001));
  EXPECT_EQ(*Quantity::Parse("1Gi"), *Quantity::Parse("1073741824"));
}

TEST(Quantity, SurvivesWritingAndReadingAgain) {
  Random random(7);
  for (int i = 0; i < 20000; ++i) {
    auto nanos =
        static_cast<Quantity::Wide>(random.Next()) * static_cast<int64_t>(random.Below(1000000));
    for (uint64_t shift = random.Below(40); shift > 0; --shift) nanos /= 10;
    if (random.Chance(0.3)) nanos = -nanos;
    const auto format = static_cast<Quantity::Format>(random.Below(3));
    const auto quantity = Quantity::FromNanos(nanos, format);
    const std::string text = quantity.ToString();
    const auto again = Quantity::Parse(text);
    ASSERT_TRUE(again.ok()) << text;
    ASSERT_EQ(again->nanos(), nanos) << text;
    ASSERT_EQ(again->ToString(), text);
  }
}

TEST(Quantity, NeverCrashesOnRandomText) {
  Random random(11);
  constexpr std::string_view kAlphabet = "0123456789.+-eEinumkKMGTP x";
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (uint64_t n = random.Below(14); n > 0; --n)
      text += kAlphabet[random.Below(kAlphabet.size())];
    const auto parsed = Quantity::Parse(text);
    if (!parsed.ok()) continue;
    const auto again = Quantity::Parse(parsed->ToString());
    ASSERT_TRUE(again.ok()) << text;
    ASSERT_EQ(*again, *parsed) << text;
  }
}

}  // namespace
}  // namespace berth::meta
