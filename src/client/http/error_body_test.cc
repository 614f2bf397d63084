// SPDX-License-Identifier: Apache-2.0
// Defends: an error keeps its meaning on the way from server to client, and cannot pose as success.
#include "client/http/error_body.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace berth::client {
namespace {

TEST(ErrorBody, KeepsReasonCausesObjectAndRetryTime) {
  const Status status =
      StatusOfAnswer(422,
                     R"({"kind":"Status","status":"Failure","reason":"Invalid","code":422,
        "message":"Machine \"x\" is invalid\u001b[0m","details":{"name":"x","kind":"Machine",
        "group":"compute.ironcore.dev","uid":"u","retryAfterSeconds":2,"causes":[
        {"reason":"FieldValueRequired","field":"spec.image","message":"Required value"},
        {"reason":"SomethingNew","field":"spec.x","message":"no"}]}})");
  EXPECT_EQ(status.reason(), Reason::kInvalid);
  EXPECT_EQ(status.message(), "Machine \"x\" is invalid\\x1b[0m");
  EXPECT_EQ(
      status.object(),
      (ErrorObject{.group = "compute.ironcore.dev", .kind = "Machine", .name = "x", .uid = "u"}));
  EXPECT_EQ(status.retry_after(), Duration::Seconds(2));
  ASSERT_EQ(status.causes().size(), 2U);
  EXPECT_EQ(status.causes()[0].kind, CauseKind::kRequired);
  EXPECT_EQ(status.causes()[0].field, "spec.image");
  EXPECT_EQ(status.causes()[1].kind, CauseKind::kInvalid);
}

TEST(ErrorBody, AnAnswerWithoutStatusIsJudgedByItsCode) {
  const Status status = StatusOfAnswer(503, "<html>proxy\n</html>");
  EXPECT_EQ(status.reason(), Reason::kUnavailable);
  EXPECT_EQ(status.message(), "the server answered 503: <html>proxy\\n</html>");
  EXPECT_EQ(StatusOfAnswer(404, "").reason(), Reason::kNotFound);
}

TEST(ErrorBody, AReasonOfAnotherNameIsJudgedByItsCode) {
  struct Row {
    int code;
    const char* body;
    Reason reason;
  };
  for (const Row& row :
       {Row{408,
            R"({"kind":"Status","reason":"RequestTimeout","message":"m","code":408})",
            Reason::kTimeout},
        Row{431,
            R"({"kind":"Status","reason":"RequestHeaderFieldsTooLarge","message":"m","code":431})",
            Reason::kBadRequest},
        Row{501,
            R"({"kind":"Status","reason":"NotImplemented","message":"m","code":501})",
            Reason::kInternal},
        Row{410, R"({"kind":"Status","reason":"Gone","message":"m","code":410})", Reason::kExpired},
        Row{404,
            R"({"kind":"Status","reason":"Unknown","message":"m","code":404})",
            Reason::kNotFound},
        Row{400,
            R"({"kind":"Status","reason":"InternalError","message":"m","code":400})",
            Reason::kInternal},
        Row{400, R"({"kind":"Status","reason":"Odd","message":"m"})", Reason::kInternal}}) {
    const Status status = StatusOfAnswer(row.code, row.body);
    EXPECT_EQ(status.reason(), row.reason) << row.body;
    EXPECT_EQ(status.message(), "m");
  }
}

TEST(ErrorBody, IsNeverOk) {
  EXPECT_FALSE(StatusOfAnswer(200, "").ok());
  EXPECT_FALSE(StatusOfAnswer(400, R"({"kind":"Status","code":200,"status":"Success"})").ok());
  EXPECT_FALSE(StatusOfAnswer(302, "elsewhere").ok());
}

}  // namespace
}  // namespace berth::client
