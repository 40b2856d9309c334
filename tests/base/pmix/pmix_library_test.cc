#include "base/pmix/pmix_library.hpp"

#include <cstddef>
#include <type_traits>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/thrown.hpp"

#if __has_include(<pmix.h>)
#include <pmix.h>
#endif

using namespace runjob;

#if __has_include(<pmix.h>)
TEST_CASE("what we declare of PMIx is what its header says", "[unit]") {
  CHECK(sizeof(pmix::Proc) == sizeof(pmix_proc_t));
  CHECK(offsetof(pmix::Proc, rank) == offsetof(pmix_proc_t, rank));
  CHECK(sizeof(pmix::Value) >= sizeof(pmix_value_t));
  CHECK(offsetof(pmix::Value, data) == offsetof(pmix_value_t, data));
  CHECK(sizeof(pmix::ByteObject) == sizeof(pmix_byte_object_t));
  CHECK(offsetof(pmix::ByteObject, size) == offsetof(pmix_byte_object_t, size));
  CHECK(offsetof(pmix::Info, flags) == offsetof(pmix_info_t, flags));
  CHECK(offsetof(pmix::Info, value) == offsetof(pmix_info_t, value));
  CHECK(std::is_same_v<pmix::Status, pmix_status_t>);
  CHECK(pmix::kSuccess == PMIX_SUCCESS);
  CHECK(pmix::kOperationSucceeded == PMIX_OPERATION_SUCCEEDED);
  CHECK(pmix::kUnreachable == PMIX_ERR_UNREACH);
  CHECK(pmix::kLostConnection == PMIX_ERR_LOST_CONNECTION);
  CHECK(pmix::kLostConnectionToServer == PMIX_ERR_LOST_CONNECTION_TO_SERVER);
  CHECK(pmix::kRankWildcard == PMIX_RANK_WILDCARD);
  CHECK(pmix::kBool == PMIX_BOOL);
  CHECK(pmix::kUint32 == PMIX_UINT32);
  CHECK(pmix::kByteObject == PMIX_BYTE_OBJECT);
  CHECK(pmix::kScopeGlobal == PMIX_GLOBAL);
  CHECK(pmix::kJobSizeKey == std::string(PMIX_JOB_SIZE));
  CHECK(pmix::kCollectDataKey == std::string(PMIX_COLLECT_DATA));
  CHECK(pmix::kMaxNamespaceBytes == PMIX_MAX_NSLEN + 1);
  CHECK(pmix::kMaxKeyBytes == PMIX_MAX_KEYLEN + 1);
}

TEST_CASE("the system's libpmix has all that we call", "[unit]") {
  const PmixLibrary library = open_pmix_library({"/nowhere"});
  CHECK_THAT(library.error_text(pmix::kSuccess), ContainsSubstring("SUCCESS"));
}
#else
#error "PMIx's header is missing (Debian: libpmix-dev): the test of what we declare of it needs it"
#endif
