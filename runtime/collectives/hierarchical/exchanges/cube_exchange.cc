#include "runtime/collectives/hierarchical/exchanges/cube_exchange.hpp"

#include "runtime/collectives/copy_bytes.hpp"

namespace runjob::runtime {
namespace {

void send(const CubeMember& member, int peer, const void* data, std::size_t bytes) {
  member.transport.send_short(peer, data, bytes).throw_if_failed();
}

void receive(const CubeMember& member, int peer, void* data, std::size_t bytes) {
  member.transport.receive_short(peer, data, bytes).throw_if_failed();
}

/// Parts of several hosts as one message.
class Bundle {
 public:
  Bundle(const std::vector<std::vector<Range>>& parts, const Cube& cube, std::byte* data)
      : parts_(parts), cube_(cube), data_(data) {}

  /// The parts of `number` hosts of the cube from `first` on, and of their companions.
  template <class Each>
  std::size_t for_each(int first, int number, Each each) const {
    std::size_t bytes = 0;
    for (int host = first; host < first + number; ++host) {
      for (const int owner : {host, cube_.companion(host)}) {
        if (owner < 0) continue;
        for (const Range& range : parts_[static_cast<std::size_t>(owner)]) {
          each(data_ + range.first, bytes, range.count);
          bytes += range.count;
        }
      }
    }
    return bytes;
  }
  std::size_t pack(int first, int number, std::byte* message) const {
    return for_each(first, number, [message](const std::byte* from, std::size_t at, std::size_t bytes) {
      copy_bytes(message + at, from, bytes);
    });
  }
  void unpack(int first, int number, const std::byte* message) const {
    for_each(first, number,
             [message](std::byte* to, std::size_t at, std::size_t bytes) { copy_bytes(to, message + at, bytes); });
  }
  std::size_t bytes(int first, int number) const {
    return for_each(first, number, [](const std::byte*, std::size_t, std::size_t) {});
  }

 private:
  const std::vector<std::vector<Range>>& parts_;
  const Cube& cube_;
  std::byte* const data_;
};

/// A message of one host's own parts.
template <class Each>
std::size_t for_own(const std::vector<Range>& ranges, Each each) {
  std::size_t bytes = 0;
  for (const Range& range : ranges) {
    each(range, bytes);
    bytes += range.count;
  }
  return bytes;
}

}  // namespace

void cube_allreduce(const CubeMember& member, void* sum, void* room, std::size_t count,
                    const HostReduction& reduction) {
  const Cube cube(member.hosts);
  const std::size_t bytes = count * size_of(reduction.wide());
  const int companion = cube.companion(member.host);
  if (!cube.contains(member.host)) {
    send(member, companion, sum, bytes);
    return receive(member, companion, sum, bytes);
  }
  if (companion >= 0) {
    receive(member, companion, room, bytes);
    reduction.join(sum, sum, room, count);
  }
  for (int distance = 1; distance < cube.size; distance *= 2) {
    const int peer = member.host ^ distance;
    send(member, peer, sum, bytes);
    receive(member, peer, room, bytes);
    reduction.join(sum, member.host < peer ? sum : room, member.host < peer ? room : sum, count);
  }
  if (companion >= 0) send(member, companion, sum, bytes);
}

void cube_broadcast(const CubeMember& member, int root, void* data, std::size_t bytes) {
  const Cube cube(member.hosts);
  const int companion = cube.companion(member.host);
  if (!cube.contains(member.host)) {
    if (member.host == root) return send(member, companion, data, bytes);
    return receive(member, companion, data, bytes);
  }
  const int source = cube.contains(root) ? root : cube.companion(root);
  if (member.host == source && source != root) receive(member, root, data, bytes);
  const int distance_to_source = member.host ^ source;
  for (int distance = cube.size / 2; distance > 0; distance /= 2) {
    const int place = distance_to_source % (2 * distance);
    if (place == 0) send(member, member.host ^ distance, data, bytes);
    if (place == distance) receive(member, member.host ^ distance, data, bytes);
  }
  if (companion >= 0 && companion != root) send(member, companion, data, bytes);
}

void cube_allgather(const CubeMember& member, const std::vector<std::vector<Range>>& parts, std::byte* data,
                    std::byte* room) {
  const Cube cube(member.hosts);
  const Bundle bundle(parts, cube, data);
  const int companion = cube.companion(member.host);
  const auto copy_in = [&](const Range& range, std::size_t at) {
    copy_bytes(room + at, data + range.first, range.count);
  };
  const auto copy_out = [&](const Range& range, std::size_t at) {
    copy_bytes(data + range.first, room + at, range.count);
  };
  if (!cube.contains(member.host)) {
    send(member, companion, room, for_own(parts[static_cast<std::size_t>(member.host)], copy_in));
    receive(member, companion, room, bundle.bytes(0, cube.size));
    return bundle.unpack(0, cube.size, room);
  }
  if (companion >= 0) {
    const std::vector<Range>& theirs = parts[static_cast<std::size_t>(companion)];
    receive(member, companion, room, for_own(theirs, [](const Range&, std::size_t) {}));
    for_own(theirs, copy_out);
  }
  for (int distance = 1; distance < cube.size; distance *= 2) {
    const int peer = member.host ^ distance, own_first = member.host & ~(distance - 1), first = peer & ~(distance - 1);
    send(member, peer, room, bundle.pack(own_first, distance, room));
    receive(member, peer, room, bundle.bytes(first, distance));
    bundle.unpack(first, distance, room);
  }
  if (companion >= 0) send(member, companion, room, bundle.pack(0, cube.size, room));
}

}  // namespace runjob::runtime
