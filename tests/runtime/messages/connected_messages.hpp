#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/messages/rank_messages.hpp"
#include "tests/catch.hpp"

/// The messages of several ranks, all in this process.
namespace runjob::runtime {

struct ConnectedMessages {
  struct Options {
    std::vector<int> hosts;  ///< of each rank
    bool may_read = true;
    bool encrypts = false;
  };

  explicit ConnectedMessages(const Options& options) {
    const int size = static_cast<int>(options.hosts.size());
    std::vector<std::string> names;
    std::vector<Listener> listeners;
    std::vector<LinkAddress> addresses;
    for (const int host : options.hosts) {
      names.push_back("host" + std::to_string(host));
      listeners.push_back(listen_for_members("127.0.0.1", size));
      addresses.push_back(listeners.back().address);
    }
    for (int rank = 0; rank < size; ++rank) {
      MessageTerms terms;
      terms.rank = rank;
      terms.members = Members(names);
      terms.hosts = options.hosts;
      terms.may_read = options.may_read;
      terms.encrypts = options.encrypts;
      terms.key.bytes().fill(7);
      terms.addresses = addresses;
      if (size > 1) terms.listener = std::move(listeners[static_cast<std::size_t>(rank)]);
      ranks.push_back(std::make_unique<RankMessages>(std::move(terms)));
      all.ranks.push_back(rank);
    }
  }
  static ConnectedMessages on_one_host(int size) {
    return ConnectedMessages({std::vector<int>(static_cast<std::size_t>(size), 0)});
  }

  using Pending = std::shared_ptr<Completion>;

  Pending send(int from, int to, const std::string& text, std::int64_t tag = 0) {
    return at(from).send(text.data(), text.size(), to, tag, all);
  }
  Pending receive(int at_rank, int from, std::string& room, std::int64_t tag = 0) {
    return at(at_rank).receive(room.data(), room.size(), from, tag, all);
  }
  Status wait(int rank, const Pending& pending) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    return at(rank).wait(*pending, limit).value_or(Status(Errc::kBug, "it is not over after 100 s"));
  }
  bool is_over_soon(int rank, const Pending& pending) {
    return at(rank).wait(*pending, std::chrono::steady_clock::now() + std::chrono::milliseconds(30)).has_value();
  }
  RankMessages& at(int rank) { return *ranks[static_cast<std::size_t>(rank)]; }

  MessageSet all{0, {}};
  std::vector<std::unique_ptr<RankMessages>> ranks;
};

}  // namespace runjob::runtime
