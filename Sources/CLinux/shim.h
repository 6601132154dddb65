// Calls of Linux that Swift's Glibc module leaves out: epoll(7), eventfd(2), affinity, and the state
// of the clock. Wrapped here are only those behind syscall(2), which is variadic, and macros.
#ifndef TIMELINE_GATEWAY_CLINUX_SHIM_H
#define TIMELINE_GATEWAY_CLINUX_SHIM_H

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

// The calling thread's cores as a mask of `bytes` bytes, lowest core first. The first returns how
// many bytes the kernel filled, the second 0; both -1 with errno on failure.
static inline long gateway_get_affinity(void *mask, unsigned long bytes) {
    return syscall(SYS_sched_getaffinity, 0, bytes, mask);
}
static inline long gateway_set_affinity(const void *mask, unsigned long bytes) {
    return syscall(SYS_sched_setaffinity, 0, bytes, mask);
}

// Accepts a connection as a socket with `flags`, those of open(2); -1 with errno when there is none.
// accept4(2) has its own names for them, which the ABI makes the same.
static inline int gateway_accept(int listener, int flags) {
    return (int)syscall(SYS_accept4, listener, 0, 0, flags);
}

// Whether the kernel says that something keeps its clock right (adjtimex(2)): 1 or 0, and -1 when it
// does not say.
static inline int gateway_clock_is_synchronised(void) {
    struct timex state = {0};
    if (adjtimex(&state) < 0) return -1;
    return (state.status & STA_UNSYNC) ? 0 : 1;
}

#endif
