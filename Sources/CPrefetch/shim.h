// What the core needs of C, none of which is I/O.
#ifndef TIMELINE_GATEWAY_CPREFETCH_SHIM_H
#define TIMELINE_GATEWAY_CPREFETCH_SHIM_H

#include <arpa/inet.h>

// The compiler's builtin that Swift has no name for: asks for memory that is needed soon, without
// waiting for it. Any address may be asked for.
static inline void gateway_prefetch(const void *address) {
    __builtin_prefetch(address);
}

// Reads an address into 4 or 16 bytes; returns 1 if the text is one.
static inline int gateway_read_ipv4(const char *text, unsigned char *bytes) {
    return inet_pton(AF_INET, text, bytes);
}
static inline int gateway_read_ipv6(const char *text, unsigned char *bytes) {
    return inet_pton(AF_INET6, text, bytes);
}

#endif
