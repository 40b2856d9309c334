#include "rendezvous/protocol.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_integer.hpp"
#include "base/json_text.hpp"
#include "rendezvous/auth.hpp"

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

/// Checks the numbers that a rank uses as indices.
void check(const Place& place) {
  // In an elastic job a process keeps its local rank when others of its host have gone.
  if (!within(place.rank, place.size) || !within(place.local_rank, kMaxRanks) || place.local_size < 1 ||
      !within(place.cross_rank, place.cross_size) || place.size > kMaxRanks)
    throw Error(Errc::kProtocol,
                fmt::format("the answer to a join contradicts itself: rank {} of {}", place.rank, place.size));
}

void check(const JoinReply& reply) {
  const int hosts = static_cast<int>(reply.hostnames.size());
  const bool known_hosts =
      std::all_of(reply.hosts.begin(), reply.hosts.end(), [&](int host) { return within(host, hosts); });
  const bool known_commits = reply.commits.empty() || std::ssize(reply.commits) == reply.size;
  if (std::ssize(reply.hosts) != reply.size || !known_hosts || !known_commits)
    throw Error(Errc::kProtocol, fmt::format("the answer to a join contradicts itself: {} of {} ranks are on {} hosts",
                                             reply.hosts.size(), reply.size, hosts));
}

Json to_runs(const std::vector<int>& numbers) {
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

/// At most `size` numbers. Errors  Error(kProtocol) for more, Json::exception for what is no run.
std::vector<int> from_runs(const Json& runs, int size) {
  std::vector<int> numbers;
  for (const Json& run : runs) {
    const auto first = json_integer<std::int64_t>(run.at(0)), step = json_integer<std::int64_t>(run.at(1));
    const auto count = json_integer<std::int64_t>(run.at(2));
    if (count < 1 || count > size - std::ssize(numbers) || first < 0 || first > kMaxRanks || step < -kMaxRanks ||
        step > kMaxRanks)
      throw Error(Errc::kProtocol,
                  fmt::format("the answer to a join contradicts itself: {} ranks from host {} on", count, first));
    for (std::int64_t i = 0; i < count; ++i)
      numbers.push_back(static_cast<int>(std::clamp<std::int64_t>(first + i * step, -1, kMaxRanks)));
  }
  return numbers;
}

Place place_from(const Json& document) {
  const auto number = [&document](const char* key) { return json_integer<int>(document.at(key)); };
  Place place;
  place.rank = number("rank");
  place.size = number("size");
  place.local_rank = number("local_rank");
  place.local_size = number("local_size");
  place.cross_rank = number("cross_rank");
  place.cross_size = number("cross_size");
  place.generation = number("generation");
  document.at("hostname").get_to(place.hostname);
  document.at("start_timeout_seconds").get_to(place.start_timeout_seconds);
  check(place);
  return place;
}

/// The result of `read` for the JSON document `text`.
template <class Read>
auto decode(const std::string& text, Read read) {
  try {
    return read(parse_json(text));
  } catch (const Json::exception& error) {
    throw Error(Errc::kProtocol, std::string("the answer to a join makes no sense: ") + error.what());
  }
}

}  // namespace

std::string to_json(const Failing& failing) {
  return json_text({{"own", failing.own},
                    {"reason", failing.reason},
                    {"late", failing.late},
                    {"lost", failing.lost},
                    {"mutual", failing.mutual}});
}

Failing failing_from_json(const std::string& text) {
  const Json document = try_parse_json(text);
  const bool well_formed = document.is_object() && document.contains("own") && document["own"].is_boolean() &&
                           document.contains("reason") && document["reason"].is_string();
  if (!well_formed) throw Error(Errc::kProtocol, "expected a JSON object with \"own\" and \"reason\"");
  const auto rank = [&document](const char* key) {
    const auto found = document.find(key);
    try {
      return found == document.end() ? -1 : json_integer<int>(*found);
    } catch (const Json::exception&) {
      throw Error(Errc::kProtocol, fmt::format("\"{}\" is no rank", key));
    }
  };
  const auto mutual = document.find("mutual");
  return {.own = document["own"].get<bool>(),
          .reason = document["reason"].get<std::string>(),
          .late = rank("late"),
          .lost = rank("lost"),
          .mutual = mutual != document.end() && mutual->is_boolean() && mutual->get<bool>()};
}

Digest Body::digest() const {
  if (!shared_) return sha256("");
  if (!shared_->digest) shared_->digest = sha256(shared_->bytes);
  return *shared_->digest;
}

std::string to_json(const Topology& topology) {
  Json document = {{"hosts", to_runs(topology.hosts)}, {"hostnames", topology.hostnames}};
  if (!topology.commits.empty()) document["commits"] = topology.commits;
  return json_text(document);
}

std::string to_json(const Place& place) {
  return json_text({{"rank", place.rank},
                    {"size", place.size},
                    {"local_rank", place.local_rank},
                    {"local_size", place.local_size},
                    {"cross_rank", place.cross_rank},
                    {"cross_size", place.cross_size},
                    {"generation", place.generation},
                    {"hostname", place.hostname},
                    {"start_timeout_seconds", place.start_timeout_seconds}});
}

std::string join_reply(const Place& place, const std::string& topology, bool waiting) {
  std::string text = to_json(place);
  text.pop_back();  // the closing brace
  return text.append(R"(,"topology":)").append(topology).append(waiting ? R"(,"waiting":true})" : "}");
}

std::string to_json(const JoinRequest& request) {
  Json document = {{"rank", request.rank}, {"pid", request.pid}};
  if (request.ready) {
    document["ready"] = {
        {"commit", request.ready->commit}, {"reason", request.ready->reason}, {"steps", request.ready->steps}};
  }
  return json_text(document);
}

JoinRequest join_request_from_json(const std::string& text) {
  const Json document = try_parse_json(text);
  if (!document.is_object() || !document.contains("rank") || !document["rank"].is_number_integer())
    throw Error(Errc::kProtocol, "a join needs a JSON object with the integers \"rank\" and \"pid\"");
  return decode(text, [](const Json& join) {
    JoinRequest request;
    request.rank =
        static_cast<int>(std::clamp<std::int64_t>(json_integer<std::int64_t>(join.at("rank")), -1, kMaxRanks));
    if (const auto pid = join.find("pid"); pid != join.end()) request.pid = json_integer<std::int64_t>(*pid);
    if (const auto ready = join.find("ready"); ready != join.end())
      request.ready = {json_integer<std::int64_t>(ready->at("commit")), ready->at("reason").get<std::string>(),
                       ready->contains("steps") ? json_integer<std::int64_t>((*ready)["steps"]) : -1};
    return request;
  });
}

std::string to_json(const Notice& notice) {
  return json_text({{"sequence", notice.sequence},
                    {"ended", notice.ended},
                    {"reason", notice.reason},
                    {"outdated", notice.outdated},
                    {"only_added", notice.only_added},
                    {"leaving", notice.leaving}});
}

Notice notice_from_json(const std::string& text) {
  return decode(text, [](const Json& document) {
    Notice notice;
    document.at("sequence").get_to(notice.sequence);
    document.at("ended").get_to(notice.ended);
    document.at("reason").get_to(notice.reason);
    document.at("outdated").get_to(notice.outdated);
    document.at("only_added").get_to(notice.only_added);
    document.at("leaving").get_to(notice.leaving);
    return notice;
  });
}

JoinReply join_reply_from_json(const std::string& text) {
  return decode(text, [](const Json& document) {
    JoinReply reply;
    static_cast<Place&>(reply) = place_from(document);
    const Json& topology = document.at("topology");
    reply.hosts = from_runs(topology.at("hosts"), reply.size);
    topology.at("hostnames").get_to(reply.hostnames);
    reply.waiting = document.value("waiting", false);
    reply.commits = topology.value("commits", std::vector<std::int64_t>());
    check(reply);
    return reply;
  });
}

Place place_from_json(const std::string& text) {
  return decode(text, place_from);
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
