// SPDX-License-Identifier: Apache-2.0
// A runtime that promises disk without asking the others of its host says how to ask them.
#include "app/runtime/image_flags.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::app {
namespace {

std::string WarningOf(Promises promises, const std::string& images, const std::string& budget) {
  cli::Arguments arguments = *cli::Arguments::Make(kImageFlags, {}, {});
  for (const cli::Flag& flag : kImageFlags) {
    if (flag.name == "images") EXPECT_EQ(arguments.Set(flag, images), OkStatus());
    if (flag.name == "disk-budget") EXPECT_EQ(arguments.Set(flag, budget), OkStatus());
  }
  return LonePromiseWarning(arguments, promises);
}

TEST(ImageFlags, WhoPromisesDiskAndAsksNobodyNamesTheFlag) {
  EXPECT_TRUE(WarningOf(Promises::kDisks, "", "").contains("--disk-budget DIR"));
  EXPECT_TRUE(WarningOf(Promises::kImages, "/srv/images", "").contains("--disk-budget DIR"));
  EXPECT_EQ(WarningOf(Promises::kImages, "", ""), "") << "nothing to promise";
  EXPECT_EQ(WarningOf(Promises::kDisks, "/srv/images", "/srv/budget"), "");
}

}  // namespace
}  // namespace berth::app
