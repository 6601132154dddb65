// The system's libcurl (Debian libcurl4-openssl-dev) as a Swift module.
// Wrapped here are only the variadic functions, which Swift does not import.
#ifndef TIMELINE_GATEWAY_CCURL_SHIM_H
#define TIMELINE_GATEWAY_CCURL_SHIM_H

#include <curl/curl.h>

#endif
