#include "base/pmix/pmix_values.hpp"

#include <utility>

namespace runjob {

pmix::Status put_pmix_value(const PmixLibrary& library, const std::string& key, const std::string& bytes) {
  std::string copy = bytes;
  pmix::Value entry{};
  entry.type = pmix::kByteObject;
  entry.data.bytes = {copy.data(), copy.size()};
  return library.put(pmix::kScopeGlobal, key.c_str(), &entry);
}

PmixQuestion::PmixQuestion(const PmixLibrary& library, const pmix::Proc& self, std::uint32_t rank,
                           const std::string& key) {
  const auto found = [](pmix::Status status, pmix::Value* value, void* context) noexcept {
    Answer answer{status, "", 0};
    if (status == pmix::kSuccess && value != nullptr) {  // owned by the library until this function returns
      if (value->type == pmix::kByteObject) answer.bytes.assign(value->data.bytes.bytes, value->data.bytes.size);
      if (value->type == pmix::kUint32) answer.number = value->data.uint32;
    }
    PmixPromise<Answer>::finish(context, std::move(answer));
  };
  PmixRequest& request = answer_.request();
  request.process = self;
  request.process.rank = rank;
  request.key = key;
  void* context = answer_.context();
  const pmix::Status started = library.get(&request.process, request.key.c_str(), nullptr, 0, found, context);
  if (started != pmix::kSuccess) PmixPromise<Answer>::finish(context, {started, "", 0});  // libpmix will not call it
}

}  // namespace runjob
