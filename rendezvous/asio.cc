// The functions of Boost.Asio that are not templates, for all folders: compiled here once instead of in every
// source that uses them.
#include <netdb.h>

// Weak references do not link a definition. The static agent therefore gets no resolver of glibc, which would look for
// shared libraries; the agent looks up no names. The other programs find these functions in the shared glibc.
#pragma weak getaddrinfo
#pragma weak getnameinfo
#pragma weak freeaddrinfo

#include <boost/asio/impl/src.hpp>
