// SPDX-License-Identifier: Apache-2.0
// Defends: tables line up as kubectl's do, and nothing in them can command the terminal.
#include "cli/render/text_table.h"

#include <gtest/gtest.h>

#include "cli/render/describe.h"
#include "cli/render/object_table.h"
#include "cli/render/palette.h"
#include "meta/json.h"

namespace berth::cli {
namespace {

meta::Value Json(std::string_view text) {
  auto value = meta::ParseJson(text);
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *std::move(value) : meta::Value();
}

constexpr WallTime kNow = WallTime::FromSeconds(1'700'000'000);  // 2023-11-14T22:13:20Z

TEST(TextTable, AlignsColumnsWithThreeSpaces) {
  TextTable table({"Name", "Status", "Age"});
  table.AddRow({"default", "Active", "5m"});
  table.AddRow({"kube-system-long", "Terminating", "5m"});
  EXPECT_EQ(table.Flush(),
            "NAME               STATUS        AGE\n"
            "default            Active        5m\n"
            "kube-system-long   Terminating   5m\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table({"Name", "X"});
  table.AddRow({"größer", "1"});
  table.AddRow({"aaaaaa", "2"});
  EXPECT_EQ(table.Flush(),
            "NAME     X\n"
            "größer   1\n"
            "aaaaaa   2\n");
}

TEST(TextTable, EscapesControlCharacters) {
  TextTable table({"Name"}, TableHeader::kHidden);
  table.AddRow({"a\x1b[31mred\nb"});
  EXPECT_EQ(table.Flush(), "a\\x1b[31mred\\nb\n");
}

TEST(TextTable, PrintsTheHeaderOnceAndKeepsWidthsForLaterRows) {
  TextTable table({"Name", "Age"});
  EXPECT_EQ(table.Flush(), "");
  table.AddRow({"long-name", "1s"});
  EXPECT_EQ(table.Flush(), "NAME        AGE\nlong-name   1s\n");
  table.AddRow({"x", "2s"});
  EXPECT_EQ(table.Flush(), "x           2s\n");
}

TEST(TextTable, LeavesNoSpacesAtTheEndOfALine) {
  TextTable table({"Current", "Name", "Namespace"});
  table.AddRow({"*", "home", ""});
  EXPECT_EQ(table.Flush(), "CURRENT   NAME   NAMESPACE\n*         home\n");
}

TEST(ObjectTable, ShowsWideColumnsOnlyWhenAsked) {
  const auto table = ServerTableFromValue(
      Json(R"({"kind":"Table","metadata":{"resourceVersion":"7","continue":"c"},
        "columnDefinitions":[{"name":"Name","priority":0},{"name":"Ready"},{"name":"Pool","priority":1}],
        "rows":[{"cells":["web",true,null],"object":{"metadata":{"name":"web","namespace":"a",
          "labels":{"app":"x","example.com/tier":"db"}}}}]})"),
      kNow);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->resource_version, "7");
  EXPECT_EQ(table->continue_token, "c");
  ObjectTable narrow(table->columns, {});
  narrow.Add(table->rows.front());
  EXPECT_EQ(narrow.Flush(), "NAME   READY\nweb    true\n");
  ObjectTable wide(table->columns,
                   {.wide = true,
                    .with_namespace = true,
                    .show_labels = true,
                    .label_columns = {"example.com/tier"},
                    .name_prefix = "machine.compute/",
                    .leading = {"Event"}});
  wide.Add(table->rows.front(), {"ADDED"});
  EXPECT_EQ(wide.Flush(),
            "EVENT   NAMESPACE   NAME                  READY   POOL     TIER   LABELS\n"
            "ADDED   a           machine.compute/web   true    <none>   db     "
            "app=x,example.com/tier=db\n");
}

TEST(ObjectTable, AServerWithoutTablesGivesNameAndAge) {
  const auto table =
      ServerTableFromValue(Json(R"({"kind":"MachineList","items":[{"metadata":{"name":"web",
        "creationTimestamp":"2023-11-14T22:11:20Z"}},{"metadata":{"name":"db"}}]})"),
                           kNow);
  ASSERT_TRUE(table.ok()) << table.status();
  ObjectTable printed(table->columns, {});
  for (const ServerRow& row : table->rows) printed.Add(row);
  EXPECT_EQ(printed.Flush(), "NAME   AGE\nweb    2m\ndb     <unknown>\n");
}

TEST(Palette, ColoursOnlyOnATerminalThatWantsThem) {
  Environment environment;
  EXPECT_EQ(Palette(environment).Good("ok"), "ok");
  environment.terminal.out_is_terminal = true;
  EXPECT_EQ(Palette(environment).Good("ok"), "\x1b[32mok\x1b[0m");
  environment.variables = {{"NO_COLOR", "1"}};
  EXPECT_EQ(Palette(environment).Good("ok"), "ok");
  environment.variables = {{"TERM", "dumb"}};
  EXPECT_EQ(Palette(environment).Good("ok"), "ok");
}

TEST(Describe, ShowsMetadataSpecStatusConditionsAndEvents) {
  const meta::Value object = Json(R"({"apiVersion":"compute.ironcore.dev/v1alpha1","kind":"Machine",
    "metadata":{"name":"web","namespace":"a","uid":"u-1","creationTimestamp":"2023-11-14T22:11:20Z",
      "labels":{"app":"x"},"finalizers":["berth.dev/machine"],
      "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"},
      "ownerReferences":[{"kind":"MachineSet","name":"set"}]},
    "spec":{"power":"On","volumes":[{"name":"root","device":"oda"}],"empty":[]},
    "status":{"state":"Running","conditions":[{"type":"Ready","status":"True",
      "lastTransitionTime":"2023-11-14T22:13:10Z","reason":"Booted","message":"up"}]}})");
  const std::vector<meta::Value> events = {
      Json(R"({"type":"Normal","reason":"Later","count":3,"lastTimestamp":"2023-11-14T22:13:15Z",
        "source":{"component":"poollet"},"message":"second"})"),
      Json(R"({"type":"Warning","reason":"Earlier","lastTimestamp":"2023-11-14T22:12:20Z",
        "reportingComponent":"scheduler","message":"first\u001b[2J"})")};
  EXPECT_EQ(DescribeObject(object, events, kNow),
            "Name:         web\n"
            "Namespace:    a\n"
            "Kind:         Machine (compute.ironcore.dev/v1alpha1)\n"
            "Labels:       app=x\n"
            "Annotations:  <none>\n"
            "Created:      2023-11-14T22:11:20Z (2m ago)\n"
            "UID:          u-1\n"
            "Owner:        MachineSet/set\n"
            "Finalizer:    berth.dev/machine\n"
            "Spec:\n"
            "  power: On\n"
            "  volumes:\n"
            "  - name: root\n"
            "    device: oda\n"
            "  empty: []\n"
            "Status:\n"
            "  state: Running\n"
            "Conditions:\n"
            "  TYPE    STATUS   SINCE   REASON   MESSAGE\n"
            "  Ready   True     10s     Booted   up\n"
            "Events:\n"
            "  TYPE      REASON    AGE       FROM        MESSAGE\n"
            "  Warning   Earlier   60s       scheduler   first\\x1b[2J\n"
            "  Normal    Later     5s (x3)   poollet     second\n");
}

TEST(Describe, ShowsSecretsAsSizes) {
  const std::string text = DescribeObject(
      Json(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"type":"Opaque",
        "data":{"password":"czNjcmV0"}})"),
      {},
      kNow);
  EXPECT_TRUE(text.contains("password: 6 bytes")) << text;
  EXPECT_FALSE(text.contains("czNjcmV0")) << text;
  EXPECT_TRUE(text.contains("Type:         Opaque\n")) << text;
}

}  // namespace
}  // namespace berth::cli
