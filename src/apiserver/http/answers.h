// SPDX-License-Identifier: Apache-2.0
// Answers of the API: metav1.Status for errors, JSON documents for the rest.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "meta/value.h"
#include "net/http.h"

namespace berth::apiserver {

// metav1.Status of an error, with details, every cause and the HTTP code.
meta::Value StatusDocument(const Status& status);
// metav1.Status of a success, as delete answers.
meta::Value SuccessDocument(const ErrorObject& object);

net::HttpResponse StatusAnswer(const Status& status);
net::HttpResponse JsonAnswer(int code, const meta::Value& document);
net::HttpResponse JsonTextAnswer(int code, std::string_view json);
// What is no request yet, in the words of a metav1.Status. Codes that no reason has are named after
// their phrase: 431 is RequestHeaderFieldsTooLarge.
net::HttpResponse RefusalAnswer(int code, std::string_view message);
net::HttpResponse TextAnswer(int code, std::string_view text);

// Adds `Warning: 299 - "text"` headers, bounded in number and length.
void AddWarnings(net::HttpResponse& response, const std::vector<std::string>& warnings);

}  // namespace berth::apiserver
