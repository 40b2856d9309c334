#include "rendezvous/protocol.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace runjob::rendezvous {
namespace {

using Json = nlohmann::json;

/// Takes an array of byte strings out of CBOR and stops at the first thing that is something else; a parser
/// that builds a tree would recurse as deep as the input is nested.
class BlobReader : public nlohmann::json_sax<Json> {
 public:
  bool start_array(std::size_t) override { return !std::exchange(in_array_, true); }
  bool end_array() override { return true; }
  bool binary(binary_t& value) override {
    blobs.emplace_back(value.begin(), value.end());
    return in_array_;
  }
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(number_integer_t) override { return false; }
  bool number_unsigned(number_unsigned_t) override { return false; }
  bool number_float(number_float_t, const string_t&) override { return false; }
  bool string(string_t&) override { return false; }
  bool start_object(std::size_t) override { return false; }
  bool key(string_t&) override { return false; }
  bool end_object() override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  std::vector<std::string> blobs;

 private:
  bool in_array_ = false;
};

/// What a rank indexes by, before it does.
void check(const JoinReply& reply) {
  const auto within = [](int index, int size) { return index >= 0 && index < size; };
  const int hosts = static_cast<int>(reply.hostnames.size());
  const bool known_hosts =
      std::all_of(reply.hosts.begin(), reply.hosts.end(), [&](int host) { return within(host, hosts); });
  if (!within(reply.rank, reply.size) || !within(reply.local_rank, reply.local_size) ||
      !within(reply.cross_rank, reply.cross_size) || std::ssize(reply.hosts) != reply.size || !known_hosts)
    throw Error(Errc::kProtocol, fmt::format("the answer to a join contradicts itself: rank {} of {} on {} hosts",
                                             reply.rank, reply.size, hosts));
}

}  // namespace

std::string to_json(const Failing& failing) {
  const Json document = {{"own", failing.own}, {"reason", failing.reason}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Failing failing_from_json(const std::string& text) {
  const Json document = Json::parse(text, nullptr, false);
  const bool well_formed = document.is_object() && document.contains("own") && document["own"].is_boolean() &&
                           document.contains("reason") && document["reason"].is_string();
  if (!well_formed) throw Error(Errc::kProtocol, "expected a JSON object with \"own\" and \"reason\"");
  return {document["own"].get<bool>(), document["reason"].get<std::string>()};
}

std::string to_json(const JoinReply& reply) {
  const Json document = {{"rank", reply.rank},
                         {"size", reply.size},
                         {"local_rank", reply.local_rank},
                         {"local_size", reply.local_size},
                         {"cross_rank", reply.cross_rank},
                         {"cross_size", reply.cross_size},
                         {"generation", reply.generation},
                         {"hostname", reply.hostname},
                         {"hosts", reply.hosts},
                         {"hostnames", reply.hostnames},
                         {"start_timeout_seconds", reply.start_timeout_seconds}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

JoinReply join_reply_from_json(const std::string& text) {
  try {
    const Json document = Json::parse(text);
    JoinReply reply;
    document.at("rank").get_to(reply.rank);
    document.at("size").get_to(reply.size);
    document.at("local_rank").get_to(reply.local_rank);
    document.at("local_size").get_to(reply.local_size);
    document.at("cross_rank").get_to(reply.cross_rank);
    document.at("cross_size").get_to(reply.cross_size);
    document.at("generation").get_to(reply.generation);
    document.at("hostname").get_to(reply.hostname);
    document.at("hosts").get_to(reply.hosts);
    document.at("hostnames").get_to(reply.hostnames);
    document.at("start_timeout_seconds").get_to(reply.start_timeout_seconds);
    check(reply);
    return reply;
  } catch (const Json::exception& error) {
    throw Error(Errc::kProtocol, std::string("the answer to a join makes no sense: ") + error.what());
  }
}

std::string encode_blobs(const std::vector<std::string>& blobs) {
  Json array = Json::array();
  for (const std::string& blob : blobs)
    array.push_back(Json::binary(std::vector<std::uint8_t>(blob.begin(), blob.end())));
  std::string body;
  Json::to_cbor(array, body);
  return body;
}

std::vector<std::string> decode_blobs(const std::string& body) {
  BlobReader reader;
  if (!Json::sax_parse(body, &reader, Json::input_format_t::cbor))
    throw Error(Errc::kProtocol, "the answer to a gather is not a CBOR array of byte strings");
  return std::move(reader.blobs);
}

Response error_response(int status, const std::string& message) {
  const Json document = {{"error", message}};
  return {status, "application/json", document.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

std::string error_text(const std::string& body) {
  const Json document = Json::parse(body, nullptr, false);
  if (document.is_object() && document.contains("error") && document["error"].is_string())
    return document["error"].get<std::string>();
  return body;
}

}  // namespace runjob::rendezvous
