#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/json_integer.hpp"
#include "base/json_text.hpp"
#include "rendezvous/protocol.hpp"

/// Messages as CBOR documents. Each message has one list of its fields, which serves both directions:
///
///   void fields(auto& io, Is<Credit> auto& m) { io("bytes", m.bytes); }
///   void check(const Credit& m);   // optional; throws Error(kProtocol) for values that no message may have
///   constexpr Step last(Step);     // the last value of an enumeration
///
/// These functions stand in the namespace of their types. Private to the sources of messages: includes nlohmann/json.
namespace runjob {

template <class M, class Message>
concept Is = std::same_as<std::remove_const_t<M>, Message>;

/// Takes part in `fields` as `io`. It only shows the compiler which types have a list.
struct AnyFields {
  void operator()(const char*, auto&&) {}
};
template <class T>
concept HasFields = requires(AnyFields& io, T& value) {
  fields(io, value);
};

/// bool has bytes of its own in CBOR, and is read as such.
template <class T>
concept IsInteger = std::integral<T> && !std::same_as<T, bool>;

template <class T>
struct IsList : std::false_type {};
template <class T>
requires HasFields<T> || IsInteger<T>
struct IsList<std::vector<T>> : std::true_type {
};

void check(const auto&) {}

/// Writes fields into a document.
class FieldWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    document_[name] = json_of(value);
  }

  template <class T>
  static nlohmann::json json_of(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<int>(value);
    } else if constexpr (HasFields<const T>) {
      FieldWriter writer;
      fields(writer, value);
      return std::move(writer.document_);
    } else if constexpr (IsList<T>()) {
      nlohmann::json::array_t list;
      for (const auto& each : value) list.push_back(json_of(each));
      return list;
    } else {
      return value;
    }
  }
  static nlohmann::json json_of(const Environment& environment) {
    nlohmann::json::array_t pairs;  // an array, so that names need not be UTF-8 either
    for (const auto& [name, value] : environment) pairs.push_back(nlohmann::json::array({name, value}));
    return pairs;
  }
  static nlohmann::json json_of(const rendezvous::Place& place) { return rendezvous::to_json(place); }
  static nlohmann::json json_of(const rendezvous::Body& body) { return body.str(); }

 private:
  nlohmann::json document_ = nlohmann::json::object();
};

/// Reads fields from a document. Errors  nlohmann::json::exception for a field that is missing or of another type, and
/// for a number that its field cannot hold.
class FieldReader {
 public:
  explicit FieldReader(const nlohmann::json& document) : document_(document) {}

  template <class T>
  void operator()(const char* name, T& value) const {
    if constexpr (std::is_enum_v<T>) {
      const int number = json_integer<int>(document_.at(name));
      if (number < 0 || number > static_cast<int>(last(T())))
        throw Error(Errc::kProtocol, fmt::format("an unknown {}: {}", name, number));
      value = static_cast<T>(number);
    } else {
      read(document_.at(name), value);
    }
  }

  template <class T>
  static void read(const nlohmann::json& document, T& value) {
    if constexpr (HasFields<T>) {
      FieldReader reader(document);
      fields(reader, value);
      check(value);
    } else if constexpr (IsList<T>()) {
      const auto& list = document.get_ref<const nlohmann::json::array_t&>();
      for (const nlohmann::json& each : list) read(each, value.emplace_back());
    } else if constexpr (IsInteger<T>) {
      value = json_integer<T>(document);
    } else {
      value = document.get<T>();
    }
  }
  static void read(const nlohmann::json& pairs, Environment& environment) {
    for (const nlohmann::json& pair : pairs)
      environment.emplace(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
  }
  static void read(const nlohmann::json& text, rendezvous::Place& place) {
    place = rendezvous::place_from_json(text.get<std::string>());
  }
  static void read(const nlohmann::json& text, rendezvous::Body& body) { body = text.get<std::string>(); }

 private:
  const nlohmann::json& document_;
};

template <class Message>
std::string encode_fields(const Message& message) {
  return cbor_bytes(FieldWriter::json_of(message));
}

/// Errors  Error(kProtocol).
template <class Message>
Message decode_fields(std::string_view payload) {
  try {
    Message message;
    FieldReader::read(parse_cbor(payload), message);
    return message;
  } catch (const nlohmann::json::exception& error) {
    throw Error(Errc::kProtocol, fmt::format("a control message that cannot be read: {}", error.what()));
  }
}

}  // namespace runjob
