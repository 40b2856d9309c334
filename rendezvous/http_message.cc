#include "rendezvous/http_message.hpp"

#include <algorithm>
#include <cctype>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/status.hpp>
#include <fmt/format.h>

namespace runjob::rendezvous {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

bool equal_in_any_case(std::string_view a, std::string_view b) {
  const auto same = [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

HttpParser::Failure failure_of(error_code error) {
  if (error == http::error::body_limit) return HttpParser::Failure::kBodyTooLarge;
  if (error == http::error::header_limit) return HttpParser::Failure::kHeadTooLarge;
  return HttpParser::Failure::kMalformed;
}

}  // namespace

std::optional<std::string_view> HttpHead::find(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& header) { return equal_in_any_case(header.first, name); });
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

/// Boost.Beast's parser of requests or of responses.
class HttpParser::Bytes {
 public:
  virtual ~Bytes() = default;
  /// Parses the head, or else the body. Returns how many of the bytes it has used.
  virtual std::size_t parse(std::string_view bytes, error_code& error) = 0;
  virtual void end(error_code& error) = 0;
  virtual State state() const = 0;
};

/// Copies the parts of the message into `message`.
template <bool isRequest>
class HttpParser::BeastParser final : public HttpParser::Bytes, private http::basic_parser<isRequest> {
 public:
  BeastParser(HttpParser& message, std::uint32_t most_head_bytes, std::uint64_t most_body_bytes)
      : message_(message), head_bytes_left_(most_head_bytes) {
    this->header_limit(most_head_bytes);
    this->body_limit(most_body_bytes);
  }

  std::size_t parse(std::string_view bytes, error_code& error) override {
    const bool in_head = !this->is_header_done();
    this->eager(!in_head);
    const std::size_t used = this->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    if (error == http::error::need_more) error.clear();
    if (in_head && !error) {
      // Beast forgets the lines that it has used; many short ones must not exceed the limit either.
      if (used > head_bytes_left_) error = http::error::header_limit;
      head_bytes_left_ -= std::min(used, head_bytes_left_);
    }
    return used;
  }

  void end(error_code& error) override {
    if (this->got_some()) this->put_eof(error);
  }

  State state() const override {
    if (this->is_done()) return State::kComplete;
    return this->is_header_done() ? State::kBody : State::kHead;
  }

 private:
  using Text = beast::string_view;

  void on_request_impl(http::verb, Text method, Text target, int version, error_code&) override {
    message_.head_.method.assign(method.data(), method.size());
    message_.head_.target.assign(target.data(), target.size());
    message_.head_.version = version;
  }
  void on_response_impl(int status, Text, int version, error_code&) override {
    message_.head_.status = status;
    message_.head_.version = version;
  }
  void on_field_impl(http::field, Text name, Text value, error_code&) override {
    if (this->is_header_done()) return;  // a trailer
    message_.head_.headers.emplace_back(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
  }
  void on_header_impl(error_code&) override { message_.head_.keep_alive = this->keep_alive(); }
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
    if (length) message_.body_.reserve(*length);
  }
  std::size_t on_body_impl(Text part, error_code&) override {
    message_.body_.append(part.data(), part.size());
    return part.size();
  }
  void on_chunk_header_impl(std::uint64_t, Text, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text part, error_code& error) override {
    return on_body_impl(part, error);
  }
  void on_finish_impl(error_code&) override {}

  HttpParser& message_;
  std::size_t head_bytes_left_;
};

HttpParser::HttpParser(Kind kind, std::uint32_t most_head_bytes, std::uint64_t most_body_bytes) {
  if (kind == Kind::kRequest) {
    bytes_ = std::make_unique<BeastParser<true>>(*this, most_head_bytes, most_body_bytes);
  } else {
    bytes_ = std::make_unique<BeastParser<false>>(*this, most_head_bytes, most_body_bytes);
  }
}

HttpParser::~HttpParser() = default;

void HttpParser::parse(std::string& received) {
  if (received.empty() || state_ >= State::kComplete) return;
  error_code error;
  received.erase(0, bytes_->parse(received, error));
  state_ = bytes_->state();
  if (!error) return;
  state_ = State::kBroken;
  failure_ = failure_of(error);
  reason_ = error.message();
}

void HttpParser::end() {
  error_code ignored;
  bytes_->end(ignored);
  if (state_ != State::kBroken) state_ = bytes_->state();
}

std::string request_head(const Request& request, std::string_view host, const AuthHeaders& headers) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.target, host);
  if (request.process >= 0) text += fmt::format("{}: {}\r\n", kRankHeader, request.process);
  for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
  const bool may_have_body = request.method == "PUT" || request.method == "POST";
  if (may_have_body || !request.body.empty()) text += fmt::format("Content-Length: {}\r\n", request.body.size());
  return text + "\r\n";
}

std::string response_head(const Response& response, const AuthHeaders& headers, int version, bool keep_alive) {
  const beast::string_view phrase = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
  std::string text = fmt::format("HTTP/{}.{} {} {}\r\n", version / 10, version % 10, response.status,
                                 std::string_view(phrase.data(), phrase.size()));
  for (const auto& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
  if (!response.body.empty()) text += fmt::format("Content-Type: {}\r\n", response.content_type);
  if (!keep_alive) text += "Connection: close\r\n";
  if (keep_alive && version < 11) text += "Connection: keep-alive\r\n";
  return text + fmt::format("Content-Length: {}\r\n\r\n", response.body.size());
}

}  // namespace runjob::rendezvous
