#include "rendezvous/protocol.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/codec/message_codec.hpp"
#include "base/error.hpp"
#include "base/json_integer.hpp"
#include "base/json_text.hpp"
#include "rendezvous/auth.hpp"
#include "rendezvous/protocol_fields.hpp"

namespace runjob::rendezvous {
namespace {

using Json = nlohmann::json;

/// Takes an array of byte strings out of CBOR and stops at the first thing that is something else, before it takes
/// memory.
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

constexpr int kMaxRanks = 1 << 20;  // as hostfile/ has it, rounded up: bounds what a few bytes can expand to

bool within(int index, int size) {
  return index >= 0 && index < size;
}

/// The hosts of a topology, which a document has as runs: `Hosts` is const when they are written.
template <class Hosts>
struct Runs {
  Hosts& hosts;
};

Json to_document(const Runs<const std::vector<int>>& value) {
  const std::vector<int>& numbers = value.hosts;
  Json::array_t runs;
  for (std::size_t i = 0; i < numbers.size();) {
    const int step = i + 1 < numbers.size() ? numbers[i + 1] - numbers[i] : 0;
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] - numbers[end - 1] == step) ++end;
    runs.push_back({numbers[i], step, end - i});
    i = end;
  }
  return runs;
}

void from_document(const Json& runs, Runs<std::vector<int>>& value) {
  for (const Json& run : runs) {
    const auto first = json_integer<std::int64_t>(run.at(0)), step = json_integer<std::int64_t>(run.at(1));
    const auto count = json_integer<std::int64_t>(run.at(2));
    if (count < 1 || count > kMaxRanks - std::ssize(value.hosts) || first < 0 || first > kMaxRanks ||
        step < -kMaxRanks || step > kMaxRanks)
      throw Error(Errc::kProtocol, fmt::format("it has {} ranks from host {} on", count, first));
    for (std::int64_t i = 0; i < count; ++i)
      value.hosts.push_back(static_cast<int>(std::clamp<std::int64_t>(first + i * step, -1, kMaxRanks)));
  }
}

}  // namespace

void fields(auto& io, Is<Topology> auto& m) {
  io("hosts", Runs<std::remove_reference_t<decltype((m.hosts))>>{m.hosts});
  io("hostnames", m.hostnames);
  io.optional("commits", m.commits);
}

/// Only a reader calls this: join_reply() writes the answer from its parts.
void fields(auto& io, JoinReply& m) {
  fields(io, static_cast<Place&>(m));
  io("topology", static_cast<Topology&>(m));
  io.optional("waiting", m.waiting);
}

void fields(auto& io, Is<JoinRequest::Ready> auto& m) {
  io("commit", m.commit);
  io("reason", m.reason);
  io.optional("steps", m.steps);
}

void fields(auto& io, Is<JoinRequest> auto& m) {
  io("rank", m.rank);
  io.optional("pid", m.pid);
  io("ready", m.ready);
}

void fields(auto& io, Is<Notice> auto& m) {
  io("sequence", m.sequence);
  io("ended", m.ended);
  io("reason", m.reason);
  io("outdated", m.outdated);
  io("only_added", m.only_added);
  io("leaving", m.leaving);
}

void fields(auto& io, Is<Failing> auto& m) {
  io("own", m.own);
  io("reason", m.reason);
  io.optional("late", m.late);
  io.optional("lost", m.lost);
  io.optional("mutual", m.mutual);
}

void check(const Place& place) {
  // In an elastic job a process keeps its local rank when others of its host have gone.
  if (!within(place.rank, place.size) || !within(place.local_rank, kMaxRanks) || place.local_size < 1 ||
      !within(place.cross_rank, place.cross_size) || place.size > kMaxRanks)
    throw Error(Errc::kProtocol, fmt::format("it contradicts itself: rank {} of {}", place.rank, place.size));
}

void check(const JoinReply& reply) {
  check(static_cast<const Place&>(reply));
  const int hosts = static_cast<int>(reply.hostnames.size());
  const bool known_hosts =
      std::all_of(reply.hosts.begin(), reply.hosts.end(), [&](int host) { return within(host, hosts); });
  const bool known_commits = reply.commits.empty() || std::ssize(reply.commits) == reply.size;
  if (std::ssize(reply.hosts) != reply.size || !known_hosts || !known_commits)
    throw Error(Errc::kProtocol, fmt::format("it contradicts itself: {} of {} ranks are on {} hosts",
                                             reply.hosts.size(), reply.size, hosts));
}

std::string to_json(const Topology& topology) {
  return encode_json(topology);
}

std::string join_reply(const Place& place, const std::string& topology, bool waiting) {
  std::string text = encode_json(place);
  text.pop_back();  // the closing brace
  return text.append(R"(,"topology":)").append(topology).append(waiting ? R"(,"waiting":true})" : "}");
}

JoinReply join_reply_from_json(const std::string& text) {
  return decode_json<JoinReply>(text, "the answer to a join is malformed");
}

std::string to_json(const JoinRequest& request) {
  return encode_json(request);
}

JoinRequest join_request_from_json(const std::string& text) {
  return decode_json<JoinRequest>(text, "a rank's request to join is malformed");
}

std::string to_json(const Notice& notice) {
  return encode_json(notice);
}

Notice notice_from_json(const std::string& text) {
  return decode_json<Notice>(text, "the launcher's notice to the ranks is malformed");
}

std::string to_json(const Failing& failing) {
  return encode_json(failing);
}

Failing failing_from_json(const std::string& text) {
  return decode_json<Failing>(text, "a rank's report of its failure is malformed");
}

Digest Body::digest() const {
  if (!shared_) return sha256("");
  if (!shared_->digest) shared_->digest = sha256(shared_->bytes);
  return *shared_->digest;
}

std::string encode_blobs(const std::vector<std::string>& blobs) {
  Json array = Json::array();
  for (const std::string& blob : blobs)
    array.push_back(Json::binary(std::vector<std::uint8_t>(blob.begin(), blob.end())));
  return cbor_bytes(array);
}

std::vector<std::string> decode_blobs(const std::string& body) {
  BlobReader reader;
  try {
    check_cbor_levels(body);
    if (Json::sax_parse(body, &reader, Json::input_format_t::cbor)) return std::move(reader.blobs);
  } catch (const Json::exception&) {  // the message below is enough
  }
  throw Error(Errc::kProtocol, "the answer to a gather is not a CBOR array of byte strings");
}

Response error_response(int status, const std::string& message) {
  return {status, "application/json", json_text({{"error", message}})};
}

std::string error_text(const std::string& body) {
  const Json document = try_parse_json(body);
  if (document.is_object() && document.contains("error") && document["error"].is_string())
    return document["error"].get<std::string>();
  return body;
}

}  // namespace runjob::rendezvous
