#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/json_integer.hpp"
#include "base/json_text.hpp"

/// Messages between processes, as CBOR (RFC 8949) or JSON documents. Each message has one list of its fields, which
/// serves both directions:
///
///   void fields(auto& io, Is<Credit> auto& m) { io("bytes", m.bytes); }
///   void check(const Credit& m);   // optional; throws Error(kProtocol) for values that no message may have
///   constexpr Step last(Step);     // the last value of an enumeration
///
/// A field is a bool, a number, a string, an enumeration, a message, an Environment, or a list or an optional of these.
/// Another type has two functions, which convert it to a value of a document and back:
///
///   nlohmann::json to_document(const Body& body);
///   void from_document(const nlohmann::json& value, Body& body);   // throws as nlohmann's get()
///
/// All of these functions stand in the namespace of their type. A reader ignores fields that it does not know. Strings
/// are bytes: CBOR carries them as they are; in JSON, bytes that are not UTF-8 become U+FFFD.
/// Private to the sources of messages: includes nlohmann/json.
/// Threads  any.
namespace runjob {

template <class M, class Message>
concept Is = std::same_as<std::remove_const_t<M>, Message>;

/// Takes part in `fields` as `io`. It only shows the compiler which types have a list.
struct AnyFields {};
template <class T>
concept HasFields = requires(AnyFields& io, T& value) {
  fields(io, value);
};

/// bool has bytes of its own in CBOR, and is read as such.
template <class T>
concept IsInteger = std::integral<T> && !std::same_as<T, bool>;

template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

void check(const auto&) {}

/// Writes fields into a document.
class FieldWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    if constexpr (kIsOptional<T>) {
      if (value) document_[name] = json_of(*value);
    } else {
      document_[name] = json_of(value);
    }
  }
  void optional(const char* name, const auto& value) { (*this)(name, value); }

  template <class T>
  static nlohmann::json json_of(const T& value) {
    if constexpr (requires { to_document(value); }) {
      return to_document(value);
    } else if constexpr (HasFields<const T>) {
      FieldWriter writer;
      fields(writer, value);
      return std::move(writer.document_);
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<int>(value);
    } else if constexpr (kIsList<T>) {
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

 private:
  nlohmann::json document_ = nlohmann::json::object();
};

/// The text of nlohmann's error without its number: "[json.exception.type_error.302] ".
inline std::string reason_of(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

/// Reads fields from a document.
/// Errors  Error(kProtocol) with the field's name for one that is missing or of another type, for a number that it
///         cannot hold, and for a value that check() refuses.
class FieldReader {
 public:
  explicit FieldReader(const nlohmann::json& document) : document_(document) {
    if (!document.is_object()) refuse(document, "fields are");
  }

  template <class T>
  void operator()(const char* name, T&& value) const {
    const auto found = document_.find(name);
    using Value = std::remove_cvref_t<T>;
    if constexpr (kIsOptional<Value>) {
      // clang 14 does not know that a class within another one can be made without arguments, as emplace() needs it.
      if (found != document_.end()) read_field(name, *found, value.emplace(typename Value::value_type{}));
    } else {
      if (found == document_.end()) throw Error(Errc::kProtocol, fmt::format("{} is missing", name));
      read_field(name, *found, value);
    }
  }
  /// A field that a sender may leave out; it keeps its value then.
  template <class T>
  void optional(const char* name, T&& value) const {
    if (document_.contains(name)) (*this)(name, value);
  }

  template <class T>
  static void read(const nlohmann::json& document, T& value) {
    if constexpr (requires { from_document(document, value); }) {
      from_document(document, value);
    } else if constexpr (HasFields<T>) {
      FieldReader reader(document);
      fields(reader, value);
      check(value);
    } else if constexpr (std::is_enum_v<T>) {
      const int number = json_integer<int>(document);
      if (number < 0 || number > static_cast<int>(last(T())))
        throw Error(Errc::kProtocol, fmt::format("{} is unknown", number));
      value = static_cast<T>(number);
    } else if constexpr (kIsList<T>) {
      if (!document.is_array()) refuse(document, "a list is");
      for (const nlohmann::json& each : document) read(each, value.emplace_back());
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

 private:
  template <class T>
  static void read_field(const char* name, const nlohmann::json& document, T& value) {
    try {
      read(document, value);
    } catch (const nlohmann::json::exception& error) {
      throw Error(Errc::kProtocol, fmt::format("{}: {}", name, reason_of(error)));
    } catch (const Error& error) {
      throw Error(Errc::kProtocol, fmt::format("{}: {}", name, error.what()));
    }
  }

  [[noreturn]] static void refuse(const nlohmann::json& document, const char* expected) {
    throw Error(Errc::kProtocol, fmt::format("{} stands where {} expected", document.type_name(), expected));
  }

  const nlohmann::json& document_;
};

template <class Message>
std::string encode_cbor(const Message& message) {
  return cbor_bytes(FieldWriter::json_of(message));
}

template <class Message>
std::string encode_json(const Message& message) {
  return json_text(FieldWriter::json_of(message));
}

/// The message in the document that `parse` makes of `bytes`. `malformed` begins the error, and names the message and
/// its sender: "the address of rank 3 is malformed".
/// Errors  Error(kProtocol) for everything that is not such a message.
template <class Message>
Message decode_document(nlohmann::json (*parse)(std::string_view), std::string_view bytes, std::string_view malformed) {
  const auto error = [malformed](const std::string& reason) {
    return Error(Errc::kProtocol, fmt::format("{}: {}", malformed, reason));
  };
  try {
    Message message;
    FieldReader::read(parse(bytes), message);
    return message;
  } catch (const nlohmann::json::exception& no_document) {
    throw error(reason_of(no_document));
  } catch (const Error& field) {
    throw error(field.what());
  }
}

template <class Message>
Message decode_cbor(std::string_view bytes, std::string_view malformed) {
  return decode_document<Message>(parse_cbor, bytes, malformed);
}

template <class Message>
Message decode_json(std::string_view text, std::string_view malformed) {
  return decode_document<Message>(parse_json, text, malformed);
}

}  // namespace runjob
