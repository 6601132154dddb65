// The compiler's builtin that Swift has no name for: asks for memory that is needed soon, without
// waiting for it. Any address may be asked for.
#ifndef TIMELINE_GATEWAY_CPREFETCH_SHIM_H
#define TIMELINE_GATEWAY_CPREFETCH_SHIM_H

static inline void gateway_prefetch(const void *address) {
    __builtin_prefetch(address);
}

#endif
