// The system's libnghttp2 (Debian libnghttp2-dev) as a Swift module.
#ifndef TIMELINE_GATEWAY_CNGHTTP2_SHIM_H
#define TIMELINE_GATEWAY_CNGHTTP2_SHIM_H

#include <nghttp2/nghttp2.h>

#endif
